//! What a request of an application asks for, by the text of its head.

use super::app_clients::{Asked, Look};
use super::request::{Request, parse};
use super::{Feed, Snapshot, Source};
use crate::election::Incarnation;
use std::net::{IpAddr, Ipv4Addr};

struct Stateless(Feed);

impl Source for Stateless {
    fn snapshot(&self) -> Snapshot {
        unreachable!("a request of an application is read without the state")
    }
    fn feed(&self) -> &Feed {
        &self.0
    }
    fn metrics(&self) -> String {
        String::new()
    }
}

type Looks = fn(&Request<'_>, IpAddr, &dyn Source) -> Option<Look>;

/// What a request asks for of a process of incarnation 0xb, or the status that it is answered with.
pub(super) fn asks(look: Looks, request: &str, headers: &str, remote: Ipv4Addr) -> Result<Asked, u16> {
    let text = format!("{request} HTTP/1.1\r\n{headers}\r\n");
    let (request, _) = parse(text.as_bytes()).unwrap().unwrap();
    match look(&request, remote.into(), &Stateless(Feed::new(Incarnation(0xb)))).unwrap() {
        Look::Asks(asked) => Ok(asked),
        Look::Answered(response) => Err(response.status_code().0),
    }
}
