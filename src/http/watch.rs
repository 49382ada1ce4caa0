//! `/watch` and `/sse`: what is asked for, and what is answered at once. [`watchers`](super::watchers)
//! answers those that wait.

use super::Source;
use super::feed::{Change, Observed, Position, VERSION_CHARS_MAX};
use super::json::{LeaderBody, NameBody};
use super::query::parameter;
use super::request::Request;
use super::response::{Response, error, etag, json};
use crate::base::duration;
use serde::Serialize;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use tiny_http::Method;

/// How long a long poll waits for a change that does not say for how long.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
/// What `timeout=` may be.
const TIMEOUTS: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(60);
/// What `every=` may be.
const REPEATS: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_secs(60);

/// What a client wants to be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// The record of `/leader`.
    Leader,
    /// The leader's name, as leader-elector and nais/elector told it.
    Name,
}

/// For how long, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// One answer: at the next change, or after this time.
    LongPoll { timeout: Duration },
    /// Server-Sent Events: one for each change, and the state again each time that this passes.
    Events { every: Option<Duration> },
}

/// A request to watch.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Watch {
    form: Form,
    mode: Mode,
    /// The version that the client knows.
    after: Option<String>,
}

/// What a client that waits is told from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waiting {
    pub(super) mode: Mode,
    /// The number of the first change to tell of.
    pub(super) next: u64,
    pub(super) telling: Telling,
}

/// What is told of one change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Telling {
    pub(super) form: Form,
    /// Whether the client has named a version that this process does not know.
    pub(super) missed: bool,
}

impl Watch {
    /// What a request asks for; else the answer that says what is wrong.
    pub(super) fn read(request: &Request<'_>) -> Result<Watch, Response> {
        let form = if request.path == "/sse" { Form::Name } else { Form::Leader };
        let refused = |message: String| error(400, &message);
        let query = request.query.unwrap_or_default();
        let value = |name: &str| {
            let expected = || refused(format!("{name} is there twice, or badly encoded; expected it once"));
            parameter(query, name).map_err(|_| expected())
        };
        let (after, timeout, every) = (value("after")?, value("timeout")?, value("every")?);
        let events = request.events || form == Form::Name;
        let after = match (after, request.last_event_id) {
            (None, Some(id)) if events => Some(String::from_utf8_lossy(id).into_owned()),
            (after, _) => after,
        };
        if let Some(version) = after.as_deref().filter(|version| !is_version(version)) {
            return Err(refused(format!(
                "after is no version (it has {} characters); expected the \"version\" of an answer: 1 to \
                 {VERSION_CHARS_MAX} letters, digits, '-' and '.'",
                version.chars().count(),
            )));
        }
        let timeout = within("timeout", timeout, TIMEOUTS).map_err(refused)?;
        let every = within("every", every, REPEATS).map_err(refused)?;
        let mode = match (events, every) {
            (true, every) => Mode::Events { every },
            (false, None) => Mode::LongPoll { timeout: timeout.unwrap_or(TIMEOUT_DEFAULT) },
            (false, Some(_)) => {
                let message = "every is for events only; ask with Accept: text/event-stream, or leave it out";
                return Err(refused(message.to_owned()));
            }
        };
        Ok(Watch { form, mode, after })
    }

    /// The first change to tell of, and how. None: a long poll waits, since the client knows the latest.
    fn first(&self, source: &dyn Source, latest: &Observed) -> Option<(Arc<Change>, Telling)> {
        let position = self.after.as_deref().map(|version| source.feed().position(version));
        let missed = matches!(position, Some(Position::Unknown));
        let change = match position {
            Some(Position::Latest) if matches!(self.mode, Mode::LongPoll { .. }) => return None,
            Some(Position::Before(next)) => next,
            _ => Arc::clone(&latest.change),
        };
        Some((change, Telling { form: self.form, missed }))
    }
}

/// What the client of this request waits for. None: it is answered at once, and [`answer`] says what.
pub(super) fn waits(request: &Request<'_>, source: &dyn Source) -> Option<Waiting> {
    if request.method != Method::Get || !matches!(request.path, "/watch" | "/sse") {
        return None;
    }
    let watch = Watch::read(request).ok()?;
    let latest = source.observe();
    let first = watch.first(source, &latest);
    let (next, telling) = match (watch.mode, first) {
        (Mode::Events { .. }, Some((change, telling))) => (change.number, telling),
        (Mode::LongPoll { timeout }, None) if !timeout.is_zero() => {
            (latest.change.number + 1, Telling { form: watch.form, missed: false })
        }
        _ => return None,
    };
    Some(Waiting { mode: watch.mode, next, telling })
}

/// What is answered to a request that does not wait.
pub(super) fn answer(request: &Request<'_>, source: &dyn Source) -> Response {
    let watch = match Watch::read(request) {
        Ok(watch) => watch,
        Err(refused) => return refused,
    };
    let latest = source.observe();
    let same = || (Arc::clone(&latest.change), Telling { form: watch.form, missed: false });
    let (change, telling) = watch.first(source, &latest).unwrap_or_else(same);
    told(&change, &latest, telling)
}

/// One answer of a long poll: 200 also without a leader.
pub(super) fn told(change: &Change, latest: &Observed, telling: Telling) -> Response {
    json(200, &body(change, latest, telling)).with_header(etag(change))
}

/// One event of a stream, as bytes on the wire.
pub(super) fn event(change: &Change, latest: &Observed, telling: Telling) -> Vec<u8> {
    // Only a map with keys that are not text can fail, and no body has one.
    let data = serde_json::to_string(&body(change, latest, telling)).unwrap_or_default();
    format!("id: {}\ndata: {data}\n\n", change.version).into_bytes()
}

#[derive(Serialize)]
#[serde(untagged)]
enum Body<'a> {
    Leader(LeaderBody<'a>),
    Name(NameBody<'a>),
}

fn body<'a>(change: &'a Change, latest: &'a Observed, telling: Telling) -> Body<'a> {
    match telling.form {
        Form::Leader => Body::Leader(LeaderBody::of(change, latest, telling.missed)),
        Form::Name => Body::Name(NameBody::of(change)),
    }
}

fn is_version(text: &str) -> bool {
    (1..=VERSION_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
}

/// A duration of this range.
fn within(
    name: &str,
    text: Option<String>,
    range: RangeInclusive<Duration>,
) -> Result<Option<Duration>, String> {
    let Some(text) = text else { return Ok(None) };
    let (least, most) = (duration::show(*range.start()), duration::show(*range.end()));
    match duration::parse(&text) {
        Ok(read) if range.contains(&read) => Ok(Some(read)),
        Ok(_) => Err(format!("{name} is out of range; expected {least} to {most}")),
        Err(error) => Err(format!("{name}: {error}; expected {least} to {most}")),
    }
}
