//! The checksum of frames and of the record: CRC-32 as zlib and Ethernet have it (CRC-32/ISO-HDLC).

use crc::{CRC_32_ISO_HDLC, Crc, Table};

/// With a table of 1 KiB. Frames and records are short, and a faster table would be a hundredth of the
/// program.
static CRC: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISO_HDLC);

/// The checksum of these bytes, one part after the other.
pub fn checksum(parts: &[&[u8]]) -> u32 {
    let mut digest = CRC.digest();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_is_the_one_of_the_catalogue() {
        assert_eq!(checksum(&[b"123456789"]), 0xcbf4_3926);
        assert_eq!((checksum(&[]), checksum(&[b""])), (0, 0));
    }

    proptest! {
        #[test]
        fn another_library_says_the_same(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..4),
        ) {
            let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(checksum(&slices), crc32fast::hash(&parts.concat()));
        }
    }
}
