//! `/redirect`: sends clients to the leader's application, at the URL that the leader announces.
//!
//! The URL is the leader's word, so it is checked as a flag's is. A client chooses what stands behind it, and
//! never the host.

use super::request::Request;
use super::response::{JSON, Response, error, header, response};
use super::{Snapshot, Source};
use crate::base::url::{climbs, is_application_url};
use crate::election::ANNOUNCED_URL;
use tiny_http::Header;

/// Answers a request of any method for that part of the leader's URL.
pub(super) fn answer(request: &Request<'_>, rest: &str, source: &dyn Source) -> Response {
    if climbs(rest) {
        return error(400, "the path has .. in it, or malformed percent-encoding; leave that out");
    }
    let snapshot = source.snapshot();
    let Some(leader) = snapshot.leader() else {
        let message = "no leader is known; ask again once /leader names one";
        return error(503, message).with_header(header("Retry-After", "1"));
    };
    let Some(url) = leaders_url(&snapshot) else {
        let name = &leader.peer.name;
        return error(404, &format!("the leader {name:?} announces no URL; give it --announce url=http://…"));
    };
    let query = request.query.map(|query| format!("?{query}")).unwrap_or_default();
    // A client that asks for nothing in particular gets the URL as it is.
    let base = if rest.is_empty() { url } else { url.trim_end_matches('/') };
    // A query never follows the host itself.
    let slash = if rest.is_empty() && url.matches('/').count() == 2 { "/" } else { "" };
    match Header::from_bytes("Location", format!("{base}{slash}{rest}{query}")) {
        Ok(location) => response(307, JSON, Vec::new()).with_header(location),
        Err(()) => error(400, "the path or query has characters that are not ASCII; encode them"),
    }
}

fn leaders_url(snapshot: &Snapshot) -> Option<&str> {
    let url = snapshot.leader_announces()?.0.get(ANNOUNCED_URL)?;
    is_application_url(url).then_some(url)
}
