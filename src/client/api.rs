//! The status API as a client sees it.
//!
//! Each answer comes from a network, so it is bounded in time and size.

use crate::base::blocking_tcp;
use crate::base::resolver::Addresses;
use crate::base::url::{addresses, is_host_and_port};
use crate::telemetry::escape::shortened;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use ureq::http::header::CONTENT_LENGTH;
use ureq::http::{Method, Request, Uri};
use ureq::unversioned::transport::DefaultConnector;

/// The longest reply that is read: several times that of a full cluster with the longest names.
const REPLY_BYTES_MAX: u64 = 1024 * 1024;
/// How much of a text that should not be there is shown in an error.
const SHOWN_BYTES_MAX: usize = 200;
/// The port of `--http` where nothing else is said.
const PORT_DEFAULT: u16 = 4040;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    #[error("--url {0:?} is not a plain HTTP address; write it like 127.0.0.1:4040, without a path")]
    /// `--url` is no address of a status API.
    BadUrl(String),
    #[error(
        "no answer from {url}: {why}; is bellwether running there? Its address is its --http; give it with \
         --url http://HOST:PORT"
    )]
    /// It cannot be connected.
    Unreachable {
        /// What was asked.
        url: String,
        /// What the connection came to.
        why: String,
    },
    #[error("no answer from {url} in time; is the process there short of CPU time, or stopped?")]
    /// It may be connected, and nothing came.
    Late {
        /// What was asked.
        url: String,
    },
    #[error(
        "{url} answered with status {status}: {body:?}; is that bellwether's status API? Give it with --url"
    )]
    /// Something came with another status than any that bellwether answers there.
    Status {
        /// What was asked.
        url: String,
        /// The status.
        status: u16,
        /// The beginning of what came.
        body: String,
    },
    #[error("{url} answered what bellwether does not: {why}; give the address of its --http with --url")]
    /// What came is no answer of bellwether's.
    Garbage {
        /// What was asked.
        url: String,
        /// What is wrong with it.
        why: String,
    },
}

/// A sidecar's status API.
pub struct Api {
    base: String,
    agent: ureq::Agent,
}

impl Api {
    /// Where to ask: what is given, else where this machine's own process answers by its environment, else
    /// the default.
    ///
    /// # Errors
    /// [`Trouble::BadUrl`].
    pub fn at(given: Option<&str>) -> Result<Api, Trouble> {
        let agent = ureq::Agent::config_builder()
            .proxy(None) // A proxy for the wide world has no business between a process and its sidecar.
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .build();
        let agent = ureq::Agent::with_parts(agent, DefaultConnector::default(), Addresses);
        Ok(Api { base: base_url(given)?, agent })
    }

    /// Where it is.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Whether it is on this machine, by its address.
    pub(super) fn is_here(&self) -> bool {
        let uri: Option<Uri> = self.base.parse().ok();
        uri.as_ref().and_then(addresses).is_some_and(|found| found.iter().all(|at| at.ip().is_loopback()))
    }

    /// A connection of its own, where the address is known without a look-up.
    ///
    /// # Errors
    /// None comes in time.
    pub(super) fn connect(&self, within: Duration) -> io::Result<TcpStream> {
        let uri: Option<Uri> = self.base.parse().ok();
        let addresses = uri.as_ref().and_then(addresses).unwrap_or_default();
        blocking_tcp::connect(&addresses, Instant::now() + within)
    }

    /// The body of a reply with one of these statuses, in this time, the look-up of the host's name included.
    ///
    /// # Errors
    /// No such reply came in time.
    pub fn ask(&self, path: &str, expected: &[u16], within: Duration) -> Result<Vec<u8>, Trouble> {
        self.send(Method::GET, path, expected, within).map(|(_, body)| body)
    }

    /// The same for any method, without a body of its own. Returns the status too.
    ///
    /// # Errors
    /// As [`Api::ask`].
    pub(super) fn send(
        &self,
        method: Method,
        path: &str,
        expected: &[u16],
        within: Duration,
    ) -> Result<(u16, Vec<u8>), Trouble> {
        let url = format!("{}{path}", self.base);
        let unreachable = |error: ureq::Error| match error {
            ureq::Error::Timeout(_) => Trouble::Late { url: url.clone() },
            _ => Trouble::Unreachable { url: url.clone(), why: error.to_string() },
        };
        let mut request = Request::builder().uri(&url);
        if matches!(method, Method::POST | Method::PUT) {
            // Without this a request with such a method has a body in chunks.
            request = request.header(CONTENT_LENGTH, "0");
        }
        let request = request.method(method).body(()).map_err(|error| unreachable(error.into()))?;
        let question = self.agent.configure_request(request).timeout_global(Some(within)).build();
        let reply = self.agent.run(question).map_err(unreachable)?;
        let status = reply.status().as_u16();
        let body =
            reply.into_body().into_with_config().limit(REPLY_BYTES_MAX).read_to_vec().map_err(unreachable)?;
        if !expected.contains(&status) {
            let body = shortened(String::from_utf8_lossy(&body).trim().to_owned(), SHOWN_BYTES_MAX);
            return Err(Trouble::Status { url, status, body });
        }
        Ok((status, body))
    }

    /// The same as [`Api::ask`], as JSON.
    ///
    /// # Errors
    /// As [`Api::ask`], or [`Trouble::Garbage`].
    pub fn json(
        &self,
        path: &str,
        expected: &[u16],
        within: Duration,
    ) -> Result<Map<String, Value>, Trouble> {
        let body = self.ask(path, expected, within)?;
        serde_json::from_slice(&body).map_err(|error| self.garbage(path, &error))
    }

    /// What a reply of that path means.
    ///
    /// # Errors
    /// [`Trouble::Garbage`].
    pub fn understood<T: DeserializeOwned>(
        &self,
        path: &str,
        record: &Map<String, Value>,
    ) -> Result<T, Trouble> {
        serde_json::from_value(Value::Object(record.clone())).map_err(|error| self.garbage(path, &error))
    }

    pub(super) fn garbage(&self, path: &str, error: &impl ToString) -> Trouble {
        Trouble::Garbage {
            url: format!("{}{path}", self.base),
            why: shortened(error.to_string(), SHOWN_BYTES_MAX),
        }
    }
}

/// Where to ask: what is given, else where this machine's own process answers by its environment, else the
/// default.
fn base_url(given: Option<&str>) -> Result<String, Trouble> {
    let Some(given) = given else {
        let http = std::env::var("BELLWETHER_HTTP").ok();
        return Ok(format!("http://{}", own_address(http.as_deref())));
    };
    let bad = || Trouble::BadUrl(shortened(given.to_owned(), SHOWN_BYTES_MAX));
    let uri: Uri = given.parse().map_err(|_| bad())?;
    let plain = matches!(uri.path(), "" | "/") && uri.query().is_none();
    let authority = uri.authority().filter(|a| plain && is_host_and_port(a)).ok_or_else(bad)?;
    match (uri.scheme_str(), authority.port()) {
        (Some("http"), _) | (None, Some(_)) => Ok(format!("http://{authority}")),
        (None, None) => Ok(format!("http://{authority}:{PORT_DEFAULT}")),
        (Some(_), _) => Err(bad()),
    }
}

/// Where a process that was given this as `--http` is reached from its own machine.
fn own_address(http: Option<&str>) -> SocketAddr {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    match http.and_then(|http| http.parse::<SocketAddr>().ok()) {
        Some(http) if http.ip().is_unspecified() => SocketAddr::new(loopback, http.port()),
        Some(http) => http,
        None => SocketAddr::new(loopback, PORT_DEFAULT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_where_it_is_told() {
        for (given, base) in [
            ("http://127.0.0.1:4040", Some("http://127.0.0.1:4040")),
            ("http://[::1]:4040/", Some("http://[::1]:4040")),
            ("http://web-0.web", Some("http://web-0.web")),
            ("https://web-0.web", None),
            ("127.0.0.1:4040", Some("http://127.0.0.1:4040")),
            ("[::1]:8080", Some("http://[::1]:8080")),
            ("web-0", Some("http://web-0:4040")),
            ("[::1]", Some("http://[::1]:4040")),
            ("::1", None),
            ("web-0/leader", None),
            ("web-0:99999", None),
            ("http://web-0:99999", None),
            ("/leader", None),
            ("user@", None),
            ("http://user:secret@web-0:4040", None),
            ("http://web-0/leader", None),
            ("http://web-0/?a", None),
            ("http://", None),
            ("http://:4040", None),
            ("", None),
        ] {
            assert_eq!(base_url(Some(given)).ok().as_deref(), base, "{given}");
        }
    }

    #[test]
    fn knows_what_is_on_this_machine() {
        for (given, here) in [
            ("127.0.0.1:4040", true),
            ("127.9.9.9", true),
            ("[::1]:4040", true),
            ("localhost", true),
            ("LocalHost:80", true),
            ("198.18.0.1:4040", false),
            ("[2001:db8::1]", false),
            ("web-0", false),
            ("localhost.example", false),
        ] {
            assert_eq!(Api::at(Some(given)).unwrap().is_here(), here, "{given}");
        }
    }

    #[test]
    fn asks_where_its_own_process_answers() {
        for (http, address) in [
            (None, "127.0.0.1:4040"),
            (Some(""), "127.0.0.1:4040"),
            (Some("[::]:8080"), "127.0.0.1:8080"),
            (Some("0.0.0.0:8080"), "127.0.0.1:8080"),
            (Some("[::1]:8080"), "[::1]:8080"),
        ] {
            assert_eq!(own_address(http).to_string(), address, "{http:?}");
        }
    }
}
