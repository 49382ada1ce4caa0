//! How single values of flags are read.

use crate::base::duration::parse_positive;
use crate::base::url::{addresses, is_application_url, is_host_and_port};
use crate::election::{ANNOUNCED_URL, AnnouncedValues, CrashEvidence, Preempt};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use core::net::SocketAddr;
use std::{fmt, ops::RangeInclusive};
use ureq::http::Uri;

/// What `--buffers-max` may be, in MiB. Less than the first does not hold the longest messages.
const BUFFERS_MIB: RangeInclusive<usize> = 2..=1024;

/// How an answer is printed.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// A table for people
    Table,
    /// One JSON object
    Json,
}

/// Which applications may ask for what changes something.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppClients {
    /// Those that come over a loopback address
    Loopback,
    /// None
    None,
}

/// Reads a whole number of this range, which must fit into `T`.
pub(super) fn whole<T: TryFrom<u64>>(text: &str, range: RangeInclusive<u64>) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("write a whole number from {} to {}", range.start(), range.end()))
}

/// Reads a number of bytes: a whole number of MiB.
pub(super) fn mebibytes(text: &str) -> Result<usize, String> {
    let number = text.strip_suffix("MiB").and_then(|number| number.parse::<usize>().ok());
    let number = number.filter(|number| BUFFERS_MIB.contains(number));
    number.map(|number| number << 20).ok_or_else(|| {
        let (least, most) = (BUFFERS_MIB.start(), BUFFERS_MIB.end());
        format!("write a whole number of MiB from {least}MiB to {most}MiB, such as 8MiB")
    })
}

/// Reads `--preempt`.
pub(super) fn preempt(text: &str) -> Result<Preempt, String> {
    match text {
        "always" => Ok(Preempt::Always),
        "never" => Ok(Preempt::Never),
        delay if delay.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            parse_positive(delay).map(Preempt::After).map_err(|error| error.to_string())
        }
        _ => Err("write always, never, or a delay such as 5s".to_owned()),
    }
}

/// What is probed of the application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppHealth {
    /// Where it may listen: one of these.
    pub addresses: Vec<SocketAddr>,
    /// The host and the path that are asked for; none: a connection is enough.
    pub http: Option<(String, String)>,
}

impl fmt::Display for AppHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.http, self.addresses.as_slice()) {
            (Some((host, path)), _) => write!(f, "http://{host}{path}"),
            (None, [address, ..]) => write!(f, "tcp://{address}"),
            (None, []) => f.write_str("tcp"),
        }
    }
}

/// Reads `--app-health`.
pub(super) fn app_health(text: &str) -> Result<AppHealth, String> {
    const EXPECTED: &str = "write http://127.0.0.1:8080/healthz or tcp://127.0.0.1:8080; the host is an address \
                            or localhost, without a user, and nothing follows a #";
    let uri: Uri = text.parse().ok().filter(|_| !text.contains('#')).ok_or(EXPECTED)?;
    let (scheme, authority) = (uri.scheme_str().ok_or(EXPECTED)?, uri.authority().ok_or(EXPECTED)?);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let http = match scheme {
        "http" => Some((authority.to_string(), path.to_owned())),
        "tcp" if matches!(path, "" | "/") && authority.port().is_some() => None,
        _ => return Err(EXPECTED.to_owned()),
    };
    let addresses = addresses(&uri).filter(|all| all.iter().all(|address| address.port() != 0));
    match addresses.filter(|_| is_host_and_port(authority)) {
        Some(addresses) => Ok(AppHealth { addresses, http }),
        None => Err(EXPECTED.to_owned()),
    }
}

/// One of these names, each of which stands for a value.
pub(super) fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    named: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    // The parser lets no other name through.
    let value = move |said: String| named.into_iter().find(|(name, _)| said == *name).unwrap_or(named[0]).1;
    PossibleValuesParser::new(named.map(|(name, _)| name)).map(value)
}

/// Reads `--announce`.
pub(super) fn announced(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, such as url=http://10.0.0.1:8080")?;
    let pair = AnnouncedValues([(key.to_owned(), value.to_owned())].into());
    pair.check().map_err(|error| error.to_string())?;
    if key == ANNOUNCED_URL && !is_application_url(value) {
        return Err(
            "write http or https, a host, and perhaps a port and a path, such as http://10.0.0.1:8080 \
                    or http://[fd00::1]:8080; no user, query, fragment or .."
                .to_owned(),
        );
    }
    Ok((key.to_owned(), value.to_owned()))
}

/// `--crash-evidence`, wherever there is such a flag.
pub(super) fn crash_evidence() -> impl TypedValueParser<Value = CrashEvidence> {
    use CrashEvidence::{Off, Release, Suspect};
    one_of([("off", Off), ("suspect", Suspect), ("release", Release)])
}

/// Reads a port, which a Service of a certain name would have Kubernetes set to something else.
pub(super) fn peer_port(text: &str) -> Result<u16, String> {
    if text.starts_with("tcp://") {
        return Err(
            "Kubernetes makes this variable for a Service named bellwether-peer; give the flag --peer-port, \
             or set enableServiceLinks: false in the pod's spec (with the chart: extraEnv)"
                .to_owned(),
        );
    }
    whole(text, 1..=65_535)
}

/// Reads an address to listen on.
pub(super) fn socket_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port = text.strip_prefix(':').unwrap_or(text);
    Err(if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) {
        format!(
            "the address is missing; write [::]:{port} for all addresses, or 127.0.0.1:{port} for loopback"
        )
    } else if let Ok(address) = text.parse::<core::net::IpAddr>() {
        let example = SocketAddr::new(address, 4041);
        format!("the port is missing; write it like {example}")
    } else {
        "not an IP address and a port; write it like 10.0.0.1:4041 or [fd00::1]:4041, no host name".to_owned()
    })
}
