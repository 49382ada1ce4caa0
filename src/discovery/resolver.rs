//! One question to the system's resolver.

use core::net::SocketAddr;
use dns_lookup::{AddrFamily, AddrInfoHints, LookupError, LookupErrorKind, SockType};
use std::collections::BTreeSet;

/// getaddrinfo's "the name exists, but not in this address family" (`EAI_ADDRFAMILY`), the same number in
/// glibc and musl. The crate has no kind for it.
const EAI_ADDRFAMILY: i32 = -9;

/// What the crate puts before getaddrinfo's own words.
const REASON_PREFIX: &str = "failed to lookup address information: ";

/// The kind of address that is asked for. Each is a question of its own: asked together, the failure of one
/// would spoil the answer to the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Family {
    /// A records.
    V4,
    /// AAAA records.
    V6,
}

impl Family {
    /// The record type's name.
    pub fn record(self) -> &'static str {
        match self {
            Family::V4 => "A",
            Family::V6 => "AAAA",
        }
    }
}

/// What came of one question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// These addresses, at least one; their port is 0.
    Found(BTreeSet<SocketAddr>),
    /// The name server says that there is none.
    Empty,
    /// No name server gave an answer; the reason, for people.
    Unknown(String),
}

/// Asks getaddrinfo. Blocks for as long as that does.
pub fn system(name: &str, family: Family) -> Resolution {
    let hints = AddrInfoHints {
        address: match family {
            Family::V4 => AddrFamily::Inet,
            Family::V6 => AddrFamily::Inet6,
        }
        .into(),
        // Without a type there would be one entry an address for each of stream, datagram and raw.
        socktype: SockType::Stream.into(),
        ..AddrInfoHints::default()
    };
    let entries = match dns_lookup::getaddrinfo(Some(name), None, Some(hints)) {
        Ok(entries) => entries,
        Err(error) => return failed(error),
    };
    // An entry that is no IP address is nothing that a peer could be dialled at.
    let found: BTreeSet<SocketAddr> = entries.flatten().map(|entry| entry.sockaddr).collect();
    if found.is_empty() { Resolution::Empty } else { Resolution::Found(found) }
}

/// "There is none" only where a name server said so; everything else means that none gave an answer.
fn failed(error: LookupError) -> Resolution {
    match error.kind() {
        LookupErrorKind::NoName | LookupErrorKind::NoData => Resolution::Empty,
        _ if error.error_num() == EAI_ADDRFAMILY => Resolution::Empty,
        _ => {
            let text = error.to_string();
            Resolution::Unknown(text.strip_prefix(REASON_PREFIX).unwrap_or(&text).to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed_with(number: i32) -> Resolution {
        failed(LookupError::new(number))
    }

    #[test]
    fn says_empty_only_where_the_name_server_said_so() {
        const EAI_NONAME: i32 = -2;
        const EAI_NODATA: i32 = -5;
        for number in [EAI_NONAME, EAI_NODATA, EAI_ADDRFAMILY] {
            assert_eq!(failed_with(number), Resolution::Empty, "{number}");
        }
        const EAI_AGAIN: i32 = -3;
        const EAI_FAIL: i32 = -4;
        const EAI_MEMORY: i32 = -10;
        const EAI_SYSTEM: i32 = -11;
        for number in [EAI_AGAIN, EAI_FAIL, EAI_MEMORY, EAI_SYSTEM] {
            assert!(matches!(failed_with(number), Resolution::Unknown(_)), "{number}");
        }
        let again = Resolution::Unknown("Temporary failure in name resolution".into());
        assert_eq!(failed_with(EAI_AGAIN), again);
    }

    #[test]
    fn a_name_that_cannot_be_asked_for_is_unknown() {
        assert!(matches!(system("a\0b", Family::V4), Resolution::Unknown(_)));
    }

    #[test]
    fn asks_for_one_family_at_a_time() {
        let here: BTreeSet<SocketAddr> = [SocketAddr::from(([127, 0, 0, 1], 0))].into();
        assert_eq!(system("127.0.0.1", Family::V4), Resolution::Found(here));
        assert_eq!(system("127.0.0.1", Family::V6), Resolution::Empty);
    }
}
