//! Where a client connects: what ureq asks for each new connection.

use crate::base::url::addresses;
use core::net::SocketAddr;
use std::net::ToSocketAddrs;
use std::sync::mpsc::sync_channel;
use std::thread;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// The most addresses of a name that are tried: as many as ureq takes.
const ADDRESSES_MAX: usize = 16;

/// Takes addresses as they are, and looks names up.
///
/// ureq's own resolver detaches a thread for each of both, and panics where the system has no thread left.
/// And pthread_detach of glibc (2.36) reads the memory of a thread that it has detached. If that thread has
/// ended and few stacks are kept, this is a segmentation fault.
#[derive(Debug)]
pub struct Addresses;

impl Resolver for Addresses {
    fn resolve(
        &self,
        uri: &Uri,
        _: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = addresses(uri).map_or_else(|| look_up(uri, timeout), Ok)?;
        if found.is_empty() {
            return Err(ureq::Error::HostNotFound);
        }
        let mut all = self.empty();
        found.into_iter().take(ADDRESSES_MAX).for_each(|address| all.push(address));
        Ok(all)
    }
}

/// Looks a name up on a thread of its own, since getaddrinfo has no timeout. A thread that answers in time is
/// waited for: only one that is blocked is detached.
fn look_up(uri: &Uri, timeout: NextTimeout) -> Result<Vec<SocketAddr>, ureq::Error> {
    let name = uri.scheme().zip(uri.authority());
    let name = name.and_then(|(scheme, authority)| DefaultResolver::host_and_port(scheme, authority));
    let name = name.ok_or(ureq::Error::HostNotFound)?;
    let (tell, told) = sync_channel(1);
    let thread = thread::Builder::new().name("look-up".to_owned()).spawn(move || {
        // The client may have given up.
        let _ = tell.send(name.to_socket_addrs().map(Vec::from_iter));
    })?;
    let found = told.recv_timeout(*timeout.after).map_err(|_| ureq::Error::Timeout(timeout.reason))?;
    // The thread has answered, and has nothing left to do.
    let _ = thread.join();
    Ok(found?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn resolved(url: &str, within: Duration) -> Result<Vec<String>, ureq::Error> {
        let timeout = NextTimeout { after: within.into(), ..NextTimeout::default() };
        let found = Addresses.resolve(&url.parse().unwrap(), &Config::default(), timeout)?;
        Ok(found.iter().map(SocketAddr::to_string).collect())
    }

    #[test]
    fn addresses_take_no_time() {
        for (url, all) in [
            ("http://127.0.0.1:4040/leader", vec!["127.0.0.1:4040"]),
            ("http://[::1]", vec!["[::1]:80"]),
            ("http://localhost:81", vec!["127.0.0.1:81", "[::1]:81"]),
        ] {
            assert_eq!(resolved(url, Duration::ZERO).unwrap(), all, "{url}");
        }
    }

    #[test]
    fn a_name_is_looked_up() {
        // The old form of an address: no name server is asked, but it is no address to Rust.
        assert_eq!(resolved("http://127.1:4040", Duration::MAX).unwrap(), ["127.0.0.1:4040"]);
        assert_eq!(resolved("http://127.1", Duration::MAX).unwrap(), ["127.0.0.1:80"]);
    }

    #[test]
    fn a_name_without_an_answer_is_an_error() {
        // An empty label: refused without a question.
        let wrong = resolved("http://a..b", Duration::MAX);
        assert!(matches!(wrong, Err(ureq::Error::Io(_))), "{wrong:?}");
    }
}
