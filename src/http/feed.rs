//! The feed: the last changes of what `/leader` answers, each with a version.
//!
//! The driver has each status that it publishes looked at, and each answer with a version looks again. So a
//! change is there before any client can see it, also one that only the time has made: the end of a lease.

use super::Snapshot;
use crate::base::wall_ms;
use crate::election::{AnnouncedValues, Epoch, Incarnation, Incumbent};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many changes are kept for clients that come late.
pub const CHANGES_MAX: usize = 64;
/// The longest version that a client may name, in characters.
pub const VERSION_CHARS_MAX: usize = 64;

/// What `/leader` answers without its times. The time of the leader's election is one of those.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) leader: Option<Incumbent>,
    pub(super) is_leader: bool,
    pub(super) resigning: bool,
    pub(super) epoch: Epoch,
    /// What the leader announces.
    pub(super) announce: Option<AnnouncedValues>,
}

impl State {
    fn of(snapshot: &Snapshot) -> State {
        State {
            leader: snapshot.leader().cloned(),
            is_leader: snapshot.leads(),
            resigning: snapshot.resigning(),
            epoch: snapshot.status.epoch,
            announce: snapshot.leader_announces().cloned(),
        }
    }

    /// Whether this is the state of a snapshot. Another incarnation of the leader is another state.
    fn is_of(&self, snapshot: &Snapshot) -> bool {
        let same_leader = match (&self.leader, snapshot.leader()) {
            (Some(own), Some(other)) => own.peer == other.peer,
            (own, other) => own.is_none() && other.is_none(),
        };
        same_leader
            && self.is_leader == snapshot.leads()
            && self.resigning == snapshot.resigning()
            && self.epoch == snapshot.status.epoch
            && self.announce.as_ref() == snapshot.leader_announces()
    }
}

/// One change: the state that it has led to.
#[derive(Debug)]
pub struct Change {
    /// Its number among those of this incarnation, from 1 on.
    pub(super) number: u64,
    /// Its name for clients, which compare names for equality only.
    pub(super) version: String,
    pub(super) state: State,
    /// The wall clock's time, in milliseconds since 1970. Shown to people only.
    pub(super) wall_ms: u64,
}

/// The state at one moment, and the change that has led to it.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The state.
    pub snapshot: Snapshot,
    /// The latest change.
    pub change: Arc<Change>,
}

/// Where a client that names a version stands.
#[derive(Debug)]
pub(super) enum Position {
    /// It knows the latest change.
    Latest,
    /// It knows an earlier one; this one followed.
    Before(Arc<Change>),
    /// The version is of another incarnation, or is not kept any more, or does not exist yet.
    Unknown,
}

/// What clients call the change, or the hold, of this number: each incarnation counts its own.
pub(super) fn name(incarnation: Incarnation, number: u64) -> String {
    format!("{:016x}-{number}", incarnation.0)
}

/// The last [`CHANGES_MAX`] changes. All of it may be called from any thread.
pub struct Feed {
    incarnation: Incarnation,
    recent: Mutex<Recent>,
}

#[derive(Default)]
struct Recent {
    /// In order, without gaps; at most [`CHANGES_MAX`].
    changes: VecDeque<Arc<Change>>,
    /// A pipe that takes a byte at each change, once there has been a watcher.
    wake: Option<Arc<OwnedFd>>,
}

impl Recent {
    /// Adds the change that leads to this state.
    fn add(&mut self, incarnation: Incarnation, state: State) -> Arc<Change> {
        let number = self.changes.back().map_or(1, |latest| latest.number + 1);
        let version = name(incarnation, number);
        let change = Arc::new(Change { number, version, state, wall_ms: wall_ms() });
        if self.changes.len() >= CHANGES_MAX {
            self.changes.pop_front();
        }
        self.changes.push_back(Arc::clone(&change));
        change
    }

    fn position(&self, version: &str) -> Position {
        let known = self.changes.iter().position(|change| change.version == version);
        match known.map(|at| self.changes.get(at + 1)) {
            None => Position::Unknown,
            Some(None) => Position::Latest,
            Some(Some(next)) => Position::Before(Arc::clone(next)),
        }
    }
}

impl Feed {
    /// The feed of this incarnation, so far without a change.
    pub fn new(incarnation: Incarnation) -> Feed {
        Feed { incarnation, recent: Mutex::default() }
    }

    /// Of which incarnation its changes are.
    pub(super) fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Looks at the state now. `read` is called within the feed's lock, so that no later look has an earlier
    /// state.
    pub fn observe(&self, read: impl FnOnce() -> Snapshot) -> Observed {
        self.look(None, read).0
    }

    /// Looks at the state now, and where a client stands that knows the change of this version. Both are of
    /// one instant.
    pub(super) fn look(
        &self,
        version: Option<&str>,
        read: impl FnOnce() -> Snapshot,
    ) -> (Observed, Option<Position>) {
        let mut recent = self.lock();
        let snapshot = read();
        let same = recent.changes.back().filter(|latest| latest.state.is_of(&snapshot)).cloned();
        let wake = if same.is_none() { recent.wake.clone() } else { None };
        let change = same.unwrap_or_else(|| recent.add(self.incarnation, State::of(&snapshot)));
        let position = version.map(|version| recent.position(version));
        drop(recent);
        if let Some(wake) = wake {
            // A full pipe wakes just as well, and one without a reader has no watchers to wake.
            let _ = rustix::io::write(&*wake, &[0]);
        }
        (Observed { snapshot, change }, position)
    }

    /// The change of this number, if it is kept.
    pub(super) fn change(&self, number: u64) -> Option<Arc<Change>> {
        self.lock().changes.iter().find(|change| change.number == number).cloned()
    }

    /// Writes a byte to this pipe at each change from now on.
    pub(super) fn wake(&self, wake: Arc<OwnedFd>) {
        self.lock().wake = Some(wake);
    }

    fn lock(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
