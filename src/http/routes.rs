//! The paths of the status API that only read: a request and a source in, a response out.
//!
//! Each answer computes anew whether there is a leader, from the snapshot's status, its moment and the
//! driver's last turn.

use super::Source;
use super::holds;
use super::json::{IsFollowerBody, IsLeaderBody, LeaderBody, MembersBody, NameBody};
use super::lifelines;
use super::query::parameter;
use super::readiness::why_not_ready;
use super::redirect;
use super::request::{REDIRECT, Request, redirected};
use super::response::{JSON, Response, error, etag, header, json, no_content, response};
use super::watch;
use serde::Serialize;
use serde_json::json as object;
use tiny_http::Method;

const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const ALLOW: &str = "GET, HEAD, OPTIONS";
/// What this port answers, as OpenAPI 3.1. `src/http/routes/tests/openapi.rs` holds it equal to the answers.
const DOCUMENT: &str = include_str!("openapi.json");

/// What answers at a path.
type Handler = fn(&Request<'_>, &dyn Source) -> Response;

/// All paths.
const ROUTES: [(&str, Handler); 12] = [
    ("/", get_name),
    ("/sse", watch::answer),
    ("/leader", get_leader),
    ("/watch", watch::answer),
    ("/is-leader", get_is_leader),
    ("/is-follower", get_is_follower),
    ("/epoch", get_epoch),
    ("/members", get_members),
    ("/healthz", get_health),
    ("/readyz", get_readiness),
    ("/metrics", get_metrics),
    ("/openapi.json", get_document),
];

/// The paths that have answers.
pub const PATHS: [&str; ROUTES.len() + 4] = {
    let mut paths = [holds::PATH; ROUTES.len() + 4];
    paths[ROUTES.len() + 1] = REDIRECT;
    paths[ROUTES.len() + 2] = lifelines::ALIVE;
    paths[ROUTES.len() + 3] = lifelines::LIFELINE;
    let mut at = 0;
    while at < ROUTES.len() {
        paths[at] = ROUTES[at].0;
        at += 1;
    }
    paths
};

/// The path as one of [`PATHS`], else `other`: a client must not choose what is counted.
pub fn known_path(path: &str) -> &'static str {
    let path = if holds::is_one(path) { holds::PATH } else { path };
    let path = if redirected(path).is_some() { REDIRECT } else { path };
    PATHS.into_iter().find(|known| *known == path).unwrap_or("other")
}

/// Answers `request` from `source`. It has no other input, and no effect.
pub fn route(request: &Request<'_>, source: &dyn Source) -> Response {
    if request.method == Method::Options && request.path == "*" {
        return options();
    }
    if let Some(rest) = redirected(request.path) {
        return redirect::answer(request, rest, source);
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

fn not_found() -> Response {
    error(404, &format!("no such path; there are {}", PATHS.join(", ")))
}

fn options() -> Response {
    no_content().with_header(header("Allow", ALLOW))
}

/// The leader's name, for clients of leader-elector and nais/elector. Without a leader the name is empty.
fn get_name(_: &Request<'_>, source: &dyn Source) -> Response {
    json(200, &NameBody::of(&source.observe().change))
}

fn get_leader(_: &Request<'_>, source: &dyn Source) -> Response {
    let latest = source.observe();
    let status = if latest.snapshot.leader().is_some() { 200 } else { 503 };
    json(status, &LeaderBody::of(&latest.change, &latest, false)).with_header(etag(&latest.change))
}

fn get_is_leader(request: &Request<'_>, source: &dyn Source) -> Response {
    let is_leader = source.snapshot().leads();
    yes_or_no(request, is_leader, &IsLeaderBody { is_leader })
}

fn get_is_follower(request: &Request<'_>, source: &dyn Source) -> Response {
    let is_follower = source.snapshot().follows();
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
    let snapshot = source.snapshot();
    let leader_id = snapshot.leader().map(|leader| leader.peer.id.to_string());
    json(200, &object!({ "epoch": snapshot.status.epoch.0, "leader_id": leader_id }))
}

fn get_members(_: &Request<'_>, source: &dyn Source) -> Response {
    json(200, &MembersBody::new(&source.snapshot(), &source.peer_keys(), source.discovery_warning()))
}

fn get_health(_: &Request<'_>, source: &dyn Source) -> Response {
    match source.snapshot().health {
        Ok(()) => json(200, &object!({ "status": "ok" })),
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
        None => json(200, &object!({ "status": "ready" })),
        Some(why) => match source.unproved() {
            Some(unproved) => error(503, &format!("{why}; {unproved}")),
            None => error(503, &why),
        },
    }
}

fn get_metrics(_: &Request<'_>, source: &dyn Source) -> Response {
    response(200, PROMETHEUS_TEXT, source.metrics().into_bytes())
}

fn get_document(_: &Request<'_>, _: &dyn Source) -> Response {
    response(200, JSON, DOCUMENT.into())
}

/// The status for a no: 503, or what `standby=` says.
fn standby_status(query: &str) -> Result<u16, &'static str> {
    const EXPECTED: &str = "standby is not a status; expected one number of 200 to 599, such as ?standby=200";
    let Some(value) = parameter(query, "standby").map_err(|_| EXPECTED)? else { return Ok(503) };
    let digits = value.len() == 3 && value.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.parse().ok().filter(|number| digits && (200..=599).contains(number));
    number.ok_or(EXPECTED)
}

#[cfg(test)]
mod tests;
