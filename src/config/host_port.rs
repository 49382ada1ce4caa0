//! A peer given by hand: a host and a port.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::fmt;
use std::str::FromStr;

/// The longest host name that DNS knows, in bytes, without the dot of the root.
const HOST_BYTES_MAX: usize = 253;
/// The longest label of a host name that DNS knows, in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// Where a peer listens: a host name or an IP address, and a port that is not 0. Written `web-0.web:4041`,
/// `10.0.0.1:4041` or `[fd00::1]:4041`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostPort {
    /// A host name in lower case, or an address; an IPv6 address without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Why a text is not a [`HostPort`] or not a host name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HostError {
    /// There is nothing.
    #[error("an empty entry; write HOST:PORT, such as web-0.web:4041, and no comma too many")]
    Empty,
    /// A host alone.
    #[error("there is no port; write {0}:4041")]
    NoPort(String),
    /// The port is no number from 1 to 65535.
    #[error("{0:?} is not a port; write a number from 1 to 65535 after the last colon")]
    BadPort(String),
    /// Several colons and no brackets.
    #[error("an IPv6 address needs brackets before its port; write it like [fd00::1]:4041")]
    NeedsBrackets,
    /// The brackets hold something else.
    #[error("{0:?} is not an IPv6 address; write it like [fd00::1]:4041, and host names without brackets")]
    BadIpv6(String),
    /// A port where a name alone belongs.
    #[error("a name without a port belongs here; the port goes to --peer-port")]
    HasPort,
    /// DNS has no such names.
    #[error(
        "{0:?} is not a host name; it has letters, digits, hyphens, underscores and dots, at most 63 bytes \
         between dots and 253 in all"
    )]
    BadName(String),
}

impl FromStr for HostPort {
    type Err = HostError;

    fn from_str(text: &str) -> Result<HostPort, HostError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if let Some(rest) = text.strip_prefix('[') {
            let Some((inside, after)) = rest.split_once(']') else {
                return Err(HostError::NeedsBrackets);
            };
            let address: Ipv6Addr = inside.parse().map_err(|_| HostError::BadIpv6(inside.to_owned()))?;
            let port = after.strip_prefix(':').ok_or_else(|| HostError::NoPort(format!("[{inside}]")))?;
            return Ok(HostPort { host: address.to_string(), port: parse_port(port)? });
        }
        match text.bytes().filter(|&b| b == b':').count() {
            0 => {
                let host = host_name(text)?;
                Err(HostError::NoPort(host))
            }
            1 => {
                let (host, port) = text.split_once(':').unwrap_or((text, ""));
                Ok(HostPort { host: host_name(host)?, port: parse_port(port)? })
            }
            _ => Err(HostError::NeedsBrackets),
        }
    }
}

/// Reads a port; 0 is none, and neither is "+4041", which the standard library would take.
fn parse_port(text: &str) -> Result<u16, HostError> {
    match text.parse() {
        Ok(port) if port > 0 && text.bytes().all(|b| b.is_ascii_digit()) => Ok(port),
        _ => Err(HostError::BadPort(text.to_owned())),
    }
}

/// Checks a host name or IPv4 address as DNS would, and puts it in lower case. A dot at the end (an absolute
/// name) stays.
pub fn host_name(text: &str) -> Result<String, HostError> {
    if text.contains(':') {
        return Err(HostError::HasPort);
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let label_ok = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    // A name that looks like an IPv4 address must be one: the resolver reads "10.1" as 10.0.0.1 and asks for
    // "10.0.0.256".
    let number = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
    if name.len() > HOST_BYTES_MAX
        || !name.split('.').all(label_ok)
        || (number && name.parse::<Ipv4Addr>().is_err())
    {
        return Err(HostError::BadName(text.to_owned()));
    }
    Ok(text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<HostPort, HostError> {
        text.parse()
    }

    #[test]
    fn reads_names_and_addresses() {
        for (text, host, port) in [
            ("web-0.web:4041", "web-0.web", 4041),
            ("WEB-0.web.:1", "web-0.web.", 1),
            ("10.0.0.1:65535", "10.0.0.1", 65535),
            ("[FD00::1]:4041", "fd00::1", 4041),
            (" a:2 ", "a", 2),
        ] {
            assert_eq!(parse(text), Ok(HostPort { host: host.to_owned(), port }), "{text}");
        }
    }

    #[test]
    fn refuses_the_rest() {
        use HostError::*;
        for (text, error) in [
            ("", Empty),
            ("web-0", NoPort("web-0".to_owned())),
            ("[::1]", NoPort("[::1]".to_owned())),
            ("web-0:", BadPort(String::new())),
            ("web-0:0", BadPort("0".to_owned())),
            ("web-0:+1", BadPort("+1".to_owned())),
            ("web-0:65536", BadPort("65536".to_owned())),
            ("web-0:http", BadPort("http".to_owned())),
            ("::1:4041", NeedsBrackets),
            ("[::1:4041", NeedsBrackets),
            ("[web]:1", BadIpv6("web".to_owned())),
            (":4041", BadName(String::new())),
            ("a..b:1", BadName("a..b".to_owned())),
            ("a b:1", BadName("a b".to_owned())),
            ("10.0.0.256:1", BadName("10.0.0.256".to_owned())),
        ] {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
        assert_eq!(host_name("web:4041"), Err(HasPort));
        assert!(host_name(&"a".repeat(64)).is_err());
        assert!(host_name(&"a.".repeat(127)).is_ok());
        assert!(host_name(&"a.".repeat(128)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_parses_or_fails_cleanly(text in "\\PC*") {
            if let Ok(peer) = parse(&text) {
                prop_assert_eq!(parse(&peer.to_string()), Ok(peer));
            }
        }
    }
}
