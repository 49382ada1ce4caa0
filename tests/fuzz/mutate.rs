//! Changes that bring forth new inputs from old ones: what a fuzzer would do, without its feedback.

use fastrand::Rng;

/// How many changes one input gets at most.
const CHANGES_MAX: usize = 4;
/// The longest result, in bytes: above the limits of all targets but the record's.
const BYTES_MAX: usize = 160 * 1024;

/// Numbers at the edges of what lengths, counts, epochs and versions may be.
const EDGES: [u64; 14] =
    [0, 1, 31, 32, 127, 128, 253, 256, 257, 1024, u32::MAX as u64, 1 << 62, (1 << 62) + 1, u64::MAX];

/// What the text formats are made of.
const WORDS: [&str; 20] = [
    "\r\n",
    "\n",
    "\r\n\r\n",
    ": ",
    "Host: a\r\n",
    "Content-Length: 1\r\n",
    "content-length: 0\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close, keep-alive\r\n",
    " HTTP/1.1",
    "HTTP/2.0",
    "http://a/",
    "?",
    "*",
    "null",
    "{}",
    "[]",
    "\"\\u0007\"",
    "1e99",
    "-1",
];

/// One of the seeds, with one to four changes.
pub fn mutated(seeds: &[(String, Vec<u8>)], random: &mut Rng) -> Vec<u8> {
    let mut bytes = random.choice(seeds).map(|(_, bytes)| bytes.clone()).unwrap_or_default();
    // Few changes more often than many: what is changed much gets less far.
    let changes = random.usize(1..=CHANGES_MAX);
    for _ in 0..random.usize(1..=changes) {
        change(&mut bytes, seeds, random);
        bytes.truncate(BYTES_MAX);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[(String, Vec<u8>)], random: &mut Rng) {
    let part = part(bytes.len(), random);
    match random.u8(0..12) {
        0 | 1 => {
            if let Some(byte) = bytes.get_mut(part.start) {
                *byte ^= 1 << random.u8(0..8);
            }
        }
        2 | 3 => {
            if let Some(byte) = bytes.get_mut(part.start) {
                *byte = random.u8(..);
            }
        }
        4 => bytes.truncate(part.start),
        5 => drop(bytes.drain(part)),
        6 => {
            let copy = bytes[part.clone()].to_vec();
            bytes.splice(part.start..part.start, copy);
        }
        // A length field of a frame, or the digits of a number.
        7 => set_frame_length(bytes, random),
        8 => {
            let number = EDGES[random.usize(..EDGES.len())];
            let digits = bytes[part.start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let end = part.start + digits.max(1).min(bytes.len() - part.start);
            let new = if digits > 0 { number.to_string().into_bytes() } else { varint(number) };
            bytes.splice(part.start..end, new);
        }
        9 => drop(bytes.splice(part, WORDS[random.usize(..WORDS.len())].bytes())),
        // The end, or a part, of another seed.
        10 => {
            let other = random.choice(seeds).map(|(_, bytes)| bytes.as_slice()).unwrap_or_default();
            let from = self::part(other.len(), random);
            let taken = if random.bool() { &other[from.start..] } else { &other[from] };
            bytes.splice(part, taken.iter().copied());
        }
        // Past a limit.
        _ => {
            if random.u8(0..32) == 0 && !part.is_empty() {
                let times = (BYTES_MAX / part.len()).min(1 << random.u8(0..16));
                let copies = bytes[part.clone()].repeat(times);
                bytes.splice(part, copies);
            }
        }
    }
}

/// Somewhere in so many bytes: a place, and mostly a few bytes from there on.
fn part(length: usize, random: &mut Rng) -> std::ops::Range<usize> {
    let start = random.usize(0..=length);
    let longest = length - start;
    let bytes =
        if random.u8(0..8) == 0 { random.usize(0..=longest) } else { random.usize(0..=longest.min(12)) };
    start..start + bytes
}

fn set_frame_length(bytes: &mut [u8], random: &mut Rng) {
    let true_length = bytes.len().saturating_sub(4) as u32;
    let length = match random.u8(0..3) {
        0 => true_length,
        1 => true_length.wrapping_add_signed(random.i32(-8..=8)),
        _ => EDGES[random.usize(..EDGES.len())] as u32,
    };
    if let Some(field) = bytes.first_chunk_mut() {
        *field = length.to_le_bytes();
    }
}

/// A number as postcard writes it.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 127 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}
