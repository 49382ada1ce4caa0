//! `/holds`: promises to applications of this pod, as the driver gives them.

use super::Source;
use super::app_clients::{Asked, Held, Look, Unheld, busy, refusal};
use super::feed::{Observed, name};
use super::json::{HoldJson, LeaderBody, whole_ms};
use super::query::parameter;
use super::request::Request;
use super::response::{Response, error, etag, header, json, no_content};
use crate::base::duration::{self, DurationError};
use crate::election::{HOLDS_MAX, HoldAnswer, HoldOutcome, HoldRequest, Incarnation};
use std::net::IpAddr;
use std::time::Duration;
use tiny_http::Method;

/// Where holds are asked for.
pub(super) const PATH: &str = "/holds";
const ALLOW: &str = "POST, OPTIONS";
const ALLOW_ONE: &str = "PUT, DELETE, OPTIONS";

/// Whether a path is that of one hold.
pub(super) fn is_one(path: &str) -> bool {
    path.strip_prefix(PATH).is_some_and(|rest| rest.starts_with('/'))
}

/// The request, if it is one about holds.
pub(super) fn look(request: &Request<'_>, remote: IpAddr, source: &dyn Source) -> Option<Look> {
    if request.path != PATH && !is_one(request.path) {
        return None;
    }
    let id = request.path[PATH.len()..].strip_prefix('/');
    let allow = if id.is_none() { ALLOW } else { ALLOW_ONE };
    let read = match (&request.method, id) {
        (Method::Post, None) | (Method::Put | Method::Delete, Some(_)) => {
            refusal(request, remote, source).map_or_else(|| read(request, id, source), Err)
        }
        (Method::Options, _) => Err(no_content().with_header(header("Allow", allow))),
        _ => {
            let message = "a hold is taken by POST /holds, extended by PUT and ended by DELETE of /holds/ID";
            Err(error(405, message).with_header(header("Allow", allow)))
        }
    };
    Some(read.map_or_else(Look::Answered, |hold| Look::Asks(Asked::Hold(hold))))
}

fn read(request: &Request<'_>, id: Option<&str>, source: &dyn Source) -> Result<HoldRequest, Response> {
    let Some(id) = id else { return Ok(HoldRequest::Take { lasts: lasts(request)? }) };
    let hold = number(id, source.feed().incarnation());
    if request.method == Method::Delete {
        return hold.map(|hold| HoldRequest::End { hold }).ok_or_else(no_content);
    }
    let lasts = lasts(request)?;
    hold.map(|hold| HoldRequest::Extend { hold, lasts }).ok_or_else(unknown)
}

/// What `for=` says. A longer time than is ever granted is no error.
fn lasts(request: &Request<'_>) -> Result<Duration, Response> {
    const EXPECTED: &str = "for has to say for how long once, such as for=500ms, at least 1ms";
    let text = parameter(request.query.unwrap_or_default(), "for").ok().flatten();
    match text.map(|text| duration::parse_positive(&text)) {
        Some(Ok(lasts)) => Ok(lasts),
        Some(Err(DurationError::TooLong)) => Ok(duration::LONGEST),
        _ => Err(error(400, EXPECTED)),
    }
}

/// The number of the hold that has this name.
fn number(id: &str, incarnation: Incarnation) -> Option<u64> {
    let hold = id.rsplit_once('-')?.1.parse().ok()?;
    (id == name(incarnation, hold)).then_some(hold)
}

fn unknown() -> Response {
    error(404, "there is no such hold: it has run out, has ended, or is of an earlier run of this process")
}

/// The answer, as of the turn in which the driver has given it.
pub(super) fn answer(
    request: HoldRequest,
    answered: Result<Held, Unheld>,
    latest: &Observed,
    source: &impl Source,
) -> Response {
    let (own, election) = (source.feed().incarnation(), source.election());
    let (HoldAnswer { outcome, longest, stop_wait }, reading) = match answered {
        Ok(held) => held,
        Err(_) => return busy(),
    };
    let (status, id, epoch, lasts) = match outcome {
        HoldOutcome::Granted { hold, epoch, lasts } => {
            let status = if matches!(request, HoldRequest::Take { .. }) { 201 } else { 200 };
            (status, Some(name(own, hold)), Some(epoch.0), lasts)
        }
        HoldOutcome::Nothing => (200, None, None, Duration::ZERO),
        HoldOutcome::TooMany => {
            let message =
                format!("{HOLDS_MAX} holds are out, which is the most; end one, or wait for its end");
            return error(503, &message).with_header(header("Retry-After", "1"));
        }
        HoldOutcome::Unknown => return unknown(),
        HoldOutcome::Ended => return no_content(),
    };
    let (ms, max_ms, stop_wait_ms) = (whole_ms(lasts), whole_ms(longest), whole_ms(stop_wait));
    let hold = HoldJson { election, id, epoch, ms, max_ms, stop_wait_ms };
    let body = LeaderBody::of(&latest.change, latest, false).with_hold(hold, &reading);
    json(status, &body).with_header(etag(&latest.change))
}

#[cfg(test)]
mod tests {
    use super::super::asks::asks as asked;
    use super::*;
    use std::net::Ipv4Addr;

    fn asks(request: &str, headers: &str, remote: Ipv4Addr) -> Result<HoldRequest, u16> {
        asked(look, request, headers, remote).map(|asked| match asked {
            Asked::Hold(hold) => hold,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn only_programs_of_this_host_may_ask() {
        let take = Ok(HoldRequest::Take { lasts: Duration::from_millis(500) });
        for (headers, remote, expected) in [
            ("Host: localhost\r\n", Ipv4Addr::LOCALHOST, take),
            ("Host: LocalHost:4040\r\n", Ipv4Addr::LOCALHOST, take),
            ("Host: 127.0.0.9:4040\r\n", Ipv4Addr::LOCALHOST, take),
            ("Host: [::1]:4040\r\n", Ipv4Addr::LOCALHOST, take),
            ("Host: ::1\r\n", Ipv4Addr::LOCALHOST, Err(403)),
            ("Host: localhost.example\r\n", Ipv4Addr::LOCALHOST, Err(403)),
            ("Host: 198.18.0.1:4040\r\n", Ipv4Addr::LOCALHOST, Err(403)),
            ("Host: \r\n", Ipv4Addr::LOCALHOST, Err(403)),
            ("Host: localhost\r\nOrigin: null\r\n", Ipv4Addr::LOCALHOST, Err(403)),
            ("Host: localhost\r\nSec-Fetch-Site: same-site\r\n", Ipv4Addr::LOCALHOST, Err(403)),
            ("Host: localhost\r\nSec-Fetch-Site: none\r\n", Ipv4Addr::LOCALHOST, take),
            ("Host: localhost\r\n", Ipv4Addr::new(198, 18, 0, 1), Err(403)),
        ] {
            assert_eq!(asks("POST /holds?for=500ms", headers, remote), expected, "{headers:?} {remote}");
        }
    }

    #[test]
    fn a_longer_time_than_is_ever_granted_is_no_error() {
        for (text, lasts) in
            [("1ms", 1), ("1h", 3_600_000), ("7001s", 3_600_000), ("99999999999999999999h", 3_600_000)]
        {
            let asked = asks(&format!("POST /holds?for={text}"), "Host: localhost\r\n", Ipv4Addr::LOCALHOST);
            assert_eq!(asked, Ok(HoldRequest::Take { lasts: Duration::from_millis(lasts) }), "{text}");
        }
        for text in ["", "0s", "1", "-1s", "1.5s", "1s&for=1s"] {
            let asked = asks(&format!("POST /holds?for={text}"), "Host: localhost\r\n", Ipv4Addr::LOCALHOST);
            assert_eq!(asked, Err(400), "{text}");
        }
    }

    #[test]
    fn a_hold_has_the_name_that_this_incarnation_gave_it() {
        let lasts = Duration::from_secs(1);
        let one = name(Incarnation(0xb), 7);
        for (request, expected) in [
            (format!("PUT /holds/{one}?for=1s"), Ok(HoldRequest::Extend { hold: 7, lasts })),
            (format!("DELETE /holds/{one}"), Ok(HoldRequest::End { hold: 7 })),
            (format!("PUT /holds/{one}0?for=1s"), Ok(HoldRequest::Extend { hold: 70, lasts })),
            (format!("PUT /holds/{}?for=1s", name(Incarnation(0xc), 7)), Err(404)),
            (format!("DELETE /holds/{}", name(Incarnation(0xc), 7)), Err(204)),
            ("PUT /holds/000000000000000b-07?for=1s".to_owned(), Err(404)),
            ("PUT /holds/?for=1s".to_owned(), Err(404)),
            ("DELETE /holds".to_owned(), Err(405)),
            (format!("GET /holds/{one}"), Err(405)),
            (format!("OPTIONS /holds/{one}"), Err(204)),
        ] {
            assert_eq!(asks(&request, "Host: localhost\r\n", Ipv4Addr::LOCALHOST), expected, "{request}");
        }
    }
}
