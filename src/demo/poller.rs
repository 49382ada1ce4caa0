//! Asks the processes of a cluster what they say of themselves, and finds when they agree.

use crate::base::resolver::Addresses;
use serde::Deserialize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use ureq::unversioned::transport::DefaultConnector;

/// How long one of the repeated questions may take; no answer by then counts as none.
const ASK_TIMEOUT: Duration = Duration::from_millis(500);
/// The longest answer that is read, in bytes.
pub(super) const ANSWER_BYTES_MAX: u64 = 256 * 1024;

/// What a process answered at `/leader`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct LeaderAnswer {
    /// The process that it holds to be the leader.
    pub leader: Option<Leader>,
    /// Whether that is itself.
    pub is_leader: bool,
    /// Its epoch.
    pub epoch: u64,
}

/// A leader, as `/leader` names it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Leader {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// The latest that is known of one process.
#[derive(Clone, Debug, Default)]
pub struct Sighting {
    /// Its answer; none: it does not answer.
    pub answer: Option<LeaderAnswer>,
    /// Since when it says so.
    pub since: Option<Instant>,
    /// How many answers there have been.
    pub answers: u64,
    /// Of those, how many said that it leads.
    pub yes: u64,
}

/// What all processes say.
#[derive(Debug)]
pub(super) struct Observed {
    pub(super) sightings: Vec<Sighting>,
    /// How often the process of each place was started: an answer of a former incarnation says nothing about
    /// this one.
    pub(super) starts: Vec<u32>,
    /// Between two questions to one process; none: none are asked.
    pub(super) ask_every: Option<Duration>,
    pub(super) stopped: bool,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) observed: Mutex<Observed>,
    pub(super) changed: Condvar,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Observed> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All of a cluster's processes in agreement.
#[derive(Clone, Debug)]
pub struct Agreement {
    /// The place of the leader.
    pub leader: usize,
    /// Its epoch.
    pub epoch: u64,
    /// When the last of them came to say so.
    pub since: Instant,
}

/// Whether `running` agree, and since when.
pub(super) fn agreement(sightings: &[Sighting], running: &[usize], epoch: u64) -> Option<Agreement> {
    let first = sightings[*running.first()?].answer.as_ref()?;
    let (named, at) = (first.leader.as_ref()?, first.epoch);
    let answers = || running.iter().map(|place| (*place, &sightings[*place]));
    let agreed = answers().all(|(_, s)| {
        s.answer
            .as_ref()
            .is_some_and(|a| a.epoch == at && a.leader.as_ref().is_some_and(|l| l.id == named.id))
    });
    let mut leading = answers().filter(|(_, s)| s.answer.as_ref().is_some_and(|a| a.is_leader));
    let (leader, _) = leading.next()?;
    let since = answers().filter_map(|(_, s)| s.since).max()?;
    (agreed && leading.next().is_none() && at > epoch).then_some(Agreement { leader, epoch: at, since })
}

pub(super) fn describe(place: usize, sighting: &Sighting) -> String {
    match &sighting.answer {
        None => format!("{}: nothing", place + 1),
        Some(a) => {
            let leader = a.leader.as_ref().map_or("none", |l| &l.name);
            let own = if a.is_leader { " (itself)" } else { "" };
            format!("{}: {leader}{own} leads in epoch {}", place + 1, a.epoch)
        }
    }
}

pub(super) fn agent(timeout: Duration) -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .proxy(None)
        .build();
    ureq::Agent::with_parts(config, DefaultConnector::default(), Addresses)
}

/// Asks one process again and again, and notes what changes.
pub(super) fn watch(shared: &Shared, place: usize, port: u16) {
    let agent = agent(ASK_TIMEOUT);
    let url = format!("http://127.0.0.1:{port}/leader");
    let mut observed = shared.lock();
    while !observed.stopped {
        let Some(pause) = observed.ask_every else {
            observed = shared.changed.wait(observed).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let life = observed.starts[place];
        drop(observed);
        let answer = ask(&agent, &url);
        observed = shared.lock();
        if observed.starts[place] == life {
            let sighting = &mut observed.sightings[place];
            sighting.answers += u64::from(answer.is_some());
            sighting.yes += u64::from(answer.as_ref().is_some_and(|a| a.is_leader));
            if sighting.answer != answer {
                sighting.answer = answer;
                sighting.since = Some(Instant::now());
                shared.changed.notify_all();
            }
        }
        drop(observed);
        std::thread::sleep(pause);
        observed = shared.lock();
    }
}

fn ask(agent: &ureq::Agent, url: &str) -> Option<LeaderAnswer> {
    let mut response = agent.get(url).call().ok()?;
    let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec().ok()?;
    serde_json::from_slice(&body).ok()
}
