//! The paths of the status API: a request and a source in, a response out.
//!
//! Each answer computes anew whether there is a leader, from the snapshot's status, its moment and the
//! driver's last turn.

use super::Source;
use super::json::{
    EpochBody, ErrorBody, ErrorDetail, IsFollowerBody, IsLeaderBody, LeaderBody, MembersBody, NameBody,
    StatusBody, follows, leader, leads,
};
use super::readiness::why_not_ready;
use super::request::Request;
use serde::Serialize;
use std::io::Cursor;
use tiny_http::{Header, Method, StatusCode};

/// What is sent back: a status, headers, and a body in memory.
pub type Response = tiny_http::Response<Cursor<Vec<u8>>>;

const JSON: &str = "application/json";
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// What answers at a path.
type Handler = fn(&Request<'_>, &dyn Source) -> Response;

/// All paths.
const ROUTES: [(&str, Handler); 9] = [
    ("/", get_name),
    ("/leader", get_leader),
    ("/is-leader", get_is_leader),
    ("/is-follower", get_is_follower),
    ("/epoch", get_epoch),
    ("/members", get_members),
    ("/healthz", get_health),
    ("/readyz", get_readiness),
    ("/metrics", get_metrics),
];

/// The paths that have answers.
pub const PATHS: [&str; ROUTES.len()] = {
    let mut paths = [""; ROUTES.len()];
    let mut at = 0;
    while at < paths.len() {
        paths[at] = ROUTES[at].0;
        at += 1;
    }
    paths
};

/// The path as one of [`PATHS`], else `other`: a client must not choose what is counted.
pub fn known_path(path: &str) -> &'static str {
    PATHS.into_iter().find(|known| *known == path).unwrap_or("other")
}

/// Answers `request` from `source`. It has no other input, and no effect.
pub fn route(request: &Request<'_>, source: &dyn Source) -> Response {
    if request.method == Method::Options && request.path == "*" {
        return options();
    }
    let Some((_, handler)) = ROUTES.iter().find(|(path, _)| *path == request.path) else {
        return not_found();
    };
    match request.method {
        Method::Get | Method::Head => handler(request, source),
        Method::Options => options(),
        _ => {
            error(405, "this path is only read; use GET, HEAD or OPTIONS").with_header(header("Allow", ALLOW))
        }
    }
}

/// An error: its status, and a message that says what was wrong and what is expected.
pub fn error(status: u16, message: &str) -> Response {
    json(status, &ErrorBody { error: ErrorDetail { status, message } })
}

fn not_found() -> Response {
    error(404, &format!("no such path; there are {}", PATHS.join(", ")))
}

fn options() -> Response {
    response(204, JSON, Vec::new()).with_header(header("Allow", ALLOW))
}

/// The leader's name, for clients of the classic leader-elector sidecar. Without a leader the name is empty,
/// and the status says so to clients that only look at that.
fn get_name(_: &Request<'_>, source: &dyn Source) -> Response {
    let snapshot = source.snapshot();
    match leader(&snapshot) {
        Some(leader) => json(200, &NameBody { name: &leader.peer.name }),
        None => json(503, &NameBody { name: "" }),
    }
}

fn get_leader(_: &Request<'_>, source: &dyn Source) -> Response {
    let snapshot = source.snapshot();
    let status = if leader(&snapshot).is_some() { 200 } else { 503 };
    json(status, &LeaderBody::new(&snapshot))
}

fn get_is_leader(request: &Request<'_>, source: &dyn Source) -> Response {
    let is_leader = leads(&source.snapshot());
    yes_or_no(request, is_leader, &IsLeaderBody { is_leader })
}

fn get_is_follower(request: &Request<'_>, source: &dyn Source) -> Response {
    let is_follower = follows(&source.snapshot());
    yes_or_no(request, is_follower, &IsFollowerBody { is_follower })
}

/// 200 for a yes; for a no 503, or what `standby=` says.
fn yes_or_no(request: &Request<'_>, yes: bool, body: &impl Serialize) -> Response {
    let standby = match standby_status(request.query.unwrap_or_default()) {
        Ok(status) => status,
        Err(message) => return error(400, message),
    };
    let status = if yes { 200 } else { standby };
    match status {
        // These have no body.
        204 | 205 | 304 => response(status, JSON, Vec::new()),
        _ => json(status, body),
    }
}

fn get_epoch(_: &Request<'_>, source: &dyn Source) -> Response {
    json(200, &EpochBody::new(&source.snapshot()))
}

fn get_members(_: &Request<'_>, source: &dyn Source) -> Response {
    json(200, &MembersBody::new(&source.snapshot(), &source.peer_keys()))
}

fn get_health(_: &Request<'_>, source: &dyn Source) -> Response {
    match source.snapshot().health {
        Ok(()) => json(200, &StatusBody { status: "ok" }),
        Err(reason) => error(500, &reason),
    }
}

fn get_readiness(request: &Request<'_>, source: &dyn Source) -> Response {
    const EXPECTED: &str = "leader is not known; expected ?leader=known, or no leader= at all";
    let leader_wanted = match parameter(request.query.unwrap_or_default(), "leader") {
        Ok(None) => false,
        Ok(Some(value)) if value == "known" => true,
        _ => return error(400, EXPECTED),
    };
    match why_not_ready(&source.snapshot(), leader_wanted) {
        None => json(200, &StatusBody { status: "ready" }),
        Some(why) => error(503, &why),
    }
}

fn get_metrics(_: &Request<'_>, source: &dyn Source) -> Response {
    response(200, PROMETHEUS_TEXT, source.metrics().into_bytes())
}

/// The status for a no: 503, or what `standby=` says.
fn standby_status(query: &str) -> Result<u16, &'static str> {
    const EXPECTED: &str = "standby is not a status; expected one number of 200 to 599, such as ?standby=200";
    let Some(value) = parameter(query, "standby").map_err(|Malformed| EXPECTED)? else { return Ok(503) };
    let digits = value.len() == 3 && value.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.parse().ok().filter(|number| digits && (200..=599).contains(number));
    number.ok_or(EXPECTED)
}

/// A parameter is there twice, or its value is badly encoded.
struct Malformed;

/// The value of a query's parameter; none: it is not there. Other parameters are not looked at.
fn parameter(query: &str, name: &str) -> Result<Option<String>, Malformed> {
    let mut found = None;
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if decode(key).as_deref() != Some(name) {
            continue;
        }
        if found.replace(decode(value).ok_or(Malformed)?).is_some() {
            return Err(Malformed);
        }
    }
    Ok(found)
}

/// Undoes percent-encoding. None when it is malformed, or not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

fn json(status: u16, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(mut body) => {
            // So that a shell prompt after curl begins on a new line.
            body.push(b'\n');
            response(status, JSON, body)
        }
        // Only a map with keys that are not text can fail, and no body here has one; a status is right in any
        // case.
        Err(_) => response(500, JSON, Vec::new()),
    }
}

fn response(status: u16, content_type: &'static str, body: Vec<u8>) -> Response {
    let mut headers = vec![header("Server", "bellwether"), header("Cache-Control", "no-store")];
    if !body.is_empty() {
        headers.push(header("Content-Type", content_type));
    }
    let length = body.len();
    Response::new(StatusCode(status), headers, Cursor::new(body), Some(length), None)
}

/// A header. Both parts are of this program, never of a request or a peer: tiny_http does not reject line
/// breaks.
fn header(name: &'static str, value: &'static str) -> Header {
    // ASCII literals without white space in the name, all of which the tests go through.
    #[allow(clippy::expect_used)]
    Header::from_bytes(name, value).expect("an ASCII header")
}

#[cfg(test)]
mod tests;
