//! `/watch` and `/sse`: what is asked for, and what is answered at once. [`watchers`](super::watchers)
//! answers those that wait.

use super::Source;
use super::app_clients::refusal;
use super::feed::{Change, Observed, Position, VERSION_CHARS_MAX};
use super::json::{LeaderBody, NameBody};
use super::query::parameter;
use super::request::Request;
use super::response::{Response, error, etag, events, json};
use crate::base::duration;
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// Where clients watch.
pub(super) const PATHS: [&str; 2] = ["/watch", "/sse"];
/// How long a long poll waits for a change that does not say for how long.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
/// What `timeout=` may be.
const TIMEOUTS: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(60);
/// What `every=` may be.
const REPEATS: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_secs(60);
/// What `valid_for=` may be.
const VALIDITIES: RangeInclusive<Duration> = REPEATS;
/// How soon an answer is told again at the soonest, whose validity is too short for its client.
const SOONEST: Duration = Duration::from_millis(50);

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
    /// For how long each answer is to hold at least; none: the client does not act on validities.
    valid_for: Option<Duration>,
}

/// What a client that waits is told from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waiting {
    pub(super) mode: Mode,
    /// The number of the first change to tell of.
    pub(super) next: u64,
    pub(super) telling: Telling,
    /// For how long each answer is to hold at least.
    pub(super) valid_for: Option<Duration>,
    /// How long it waits for a change before it is told the state. None: without end.
    pub(super) pause: Option<Duration>,
}

impl Waiting {
    /// As it waits after this state. An application hears sooner of a validity that is too short for it,
    /// since leases lengthen with the next round of heartbeats.
    pub(super) fn after(self, latest: &Observed) -> Waiting {
        let asked = match self.mode {
            Mode::LongPoll { timeout } => Some(timeout),
            Mode::Events { every } => every,
        };
        let short = self.valid_for.and_then(|wanted| short_validity(latest, wanted));
        let soon = short.map(|left| (left / 4).max(SOONEST));
        let pause = asked.map(|asked| soon.map_or(asked, |soon| soon.min(asked)));
        Waiting { next: latest.change.number + 1, pause, ..self }
    }
}

/// In what time the leader of this state is none any more, unless the driver turns.
pub(super) fn expiry(latest: &Observed) -> Option<Duration> {
    let snapshot = &latest.snapshot;
    snapshot.leader()?;
    let stale = snapshot.turned.plus(snapshot.status.answer_ttl);
    let until = snapshot.status.valid_until.map_or(stale, |until| until.min(stale));
    Some(until.since(snapshot.now))
}

/// What is left of this leader's validity, where that is less than an application wants. None: it is enough,
/// or leases cannot be long enough.
fn short_validity(latest: &Observed, wanted: Duration) -> Option<Duration> {
    let snapshot = &latest.snapshot;
    expiry(latest).filter(|left| *left < wanted && snapshot.leads() && snapshot.status.can_hold_for(wanted))
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
        // A name alone has no validity.
        let valid_for = if form == Form::Leader { value("valid_for")? } else { None };
        let events = request.events || form == Form::Name;
        if let Some(version) = after.as_deref().filter(|version| !is_version(version)) {
            return Err(refused(format!(
                "after is no version (it has {} characters); expected the \"version\" of an answer: 1 to \
                 {VERSION_CHARS_MAX} letters, digits, '-' and '.'",
                version.chars().count(),
            )));
        }
        let timeout = within("timeout", timeout, TIMEOUTS).map_err(refused)?;
        let every = within("every", every, REPEATS).map_err(refused)?;
        let valid_for = within("valid_for", valid_for, VALIDITIES).map_err(refused)?;
        let mode = match (events, every) {
            (true, every) => Mode::Events { every },
            (false, None) => Mode::LongPoll { timeout: timeout.unwrap_or(TIMEOUT_DEFAULT) },
            (false, Some(_)) => {
                let message = "every is for events only; ask with Accept: text/event-stream, or leave it out";
                return Err(refused(message.to_owned()));
            }
        };
        // An id of another server's is one that this process does not know: a browser asks no more once it is
        // refused.
        let last_seen = request.last_event_id.filter(|_| events);
        let after = after.or(last_seen.map(|id| String::from_utf8_lossy(id).into_owned()));
        Ok(Watch { form, mode, after, valid_for })
    }
}

/// What becomes of a request to watch.
pub(super) enum Look {
    /// Its client waits, or is told more than once.
    Waits(Waiting),
    /// It is answered at once.
    Answered(Response),
}

/// Looks at a request and the state once, so that what is told is of one instant.
pub(super) fn look(request: &Request<'_>, remote: IpAddr, source: &dyn Source) -> Look {
    let watch = match Watch::read(request) {
        Ok(watch) => watch,
        Err(refused) => return Look::Answered(refused),
    };
    // It changes how long leases are.
    let refused = watch.valid_for.and_then(|_| refusal(request, remote, source));
    if let Some(refused) = refused {
        return Look::Answered(refused);
    }
    let (latest, position) = source.feed().look(watch.after.as_deref(), || source.snapshot());
    let missed = matches!(position, Some(Position::Unknown));
    let telling = Telling { form: watch.form, missed };
    let Watch { mode, valid_for, .. } = watch;
    let now = latest.change.number;
    let waiting = Waiting { mode, next: now, telling, valid_for, pause: None }.after(&latest);
    // The first answer waits until leases are long enough for it.
    let early = valid_for.is_some_and(|wanted| short_validity(&latest, wanted).is_some());
    let waits = waiting.pause.is_some_and(|pause| !pause.is_zero());
    let change = match (position, mode) {
        (Some(Position::Before(next)), _) => next,
        (Some(Position::Latest), Mode::LongPoll { .. }) if waits => return Look::Waits(waiting),
        _ if waits && early => return Look::Waits(waiting),
        _ => Arc::clone(&latest.change),
    };
    match mode {
        Mode::Events { .. } => Look::Waits(Waiting { next: change.number, ..waiting }),
        Mode::LongPoll { .. } => Look::Answered(told(&change, &latest, telling)),
    }
}

/// What is answered to a client that cannot wait: one of HEAD. It lengthens no lease, so any client may ask.
pub(super) fn answer(request: &Request<'_>, source: &dyn Source) -> Response {
    match look(request, Ipv4Addr::LOCALHOST.into(), source) {
        Look::Answered(response) => response,
        Look::Waits(Waiting { mode: Mode::Events { .. }, .. }) => events(),
        Look::Waits(Waiting { telling, .. }) => {
            let latest = source.observe();
            told(&latest.change, &latest, telling)
        }
    }
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
    Leader(Box<LeaderBody<'a>>),
    Name(NameBody<'a>),
}

fn body<'a>(change: &'a Change, latest: &'a Observed, telling: Telling) -> Body<'a> {
    match telling.form {
        Form::Leader => Body::Leader(Box::new(LeaderBody::of(change, latest, telling.missed))),
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
