//! What a voter without a record has asked, and what the answers amount to (clauses 10 to 12, 29). `founding`
//! has what they mean for a first start.

use crate::election::clauses::Clauses;
use crate::election::{Epoch, Flags, Moment, NotReady, RecoveredState, VoterConfig};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// How many rounds of asking are remembered, to tell when an answer was given. Answers to older rounds do not
/// count.
const ROUNDS_MAX: usize = 16;

/// Rounds begin this often in the time of a lease, so an answer may take two leases and counts. With a lease
/// above two seconds they are [`ROUNDS_APART`], and an answer may take four seconds.
pub(super) const ROUNDS_A_LEASE: u32 = ROUNDS_MAX as u32 / 2;
pub(super) const ROUNDS_APART: Duration = Duration::from_millis(250);

/// The log says what is missing once that has not changed for so long. At a healthy start voters come sooner.
const UNCHANGED: Duration = Duration::from_secs(10);

/// The questions and answers of one incarnation. All moments are of the slow clock.
#[derive(Clone, Hash, Debug, Default)]
pub(super) struct Recovery {
    started: Moment,
    /// Counts the rounds of asking.
    pub(super) round: u32,
    /// The latest rounds and when they were asked, newest last.
    asked: VecDeque<(u32, Moment)>,
    /// The latest answer of each other member, by its name. At most one entry a member.
    pub(super) answers: BTreeMap<String, RecoveryAnswer>,
    /// The members that it has asked back in this round, each with the latest round of theirs that it did so
    /// for.
    pub(super) asked_back: BTreeMap<String, u32>,
    /// Whether the log has said that this process may not found a cluster.
    pub(super) refused: bool,
    waits: Option<Waits>,
}

#[derive(Clone, Hash, Debug)]
pub(super) struct RecoveryAnswer {
    /// It was given after this moment.
    asked: Moment,
    epoch: Epoch,
    pub(super) state: RecoveredState,
    pub(super) flags: Flags,
}

/// What keeps this process from its vote, since when, and whether the log has said so.
#[derive(Clone, Debug)]
struct Waits {
    what: NotReady,
    since: Moment,
    said: bool,
}

/// It decides what the log says, and nothing else: a search of all states takes those that differ in it for
/// one.
impl Hash for Waits {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Recovery {
    pub(super) fn new(started: Moment) -> Recovery {
        Recovery { started, ..Recovery::default() }
    }

    /// Begins the next round of asking.
    pub(super) fn ask(&mut self, now: Moment) {
        self.round = self.round.wrapping_add(1);
        self.asked_back.clear();
        if self.asked.len() == ROUNDS_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back((self.round, now));
    }

    /// An answer to a round of this incarnation. It counts as given when that round was asked. Returns
    /// whether its flags are news.
    pub(super) fn hear(
        &mut self,
        name: String,
        round: u32,
        epoch: Epoch,
        state: RecoveredState,
        flags: Flags,
    ) -> bool {
        let Some((_, asked)) = self.asked.iter().find(|(number, _)| *number == round) else { return false };
        let answer = RecoveryAnswer { asked: *asked, epoch, state, flags };
        self.answers.insert(name, answer).is_none_or(|before| before.flags != flags)
    }

    /// Whether the log has to say now that the process waits for this.
    pub(super) fn is_worth_a_line(&mut self, now: Moment, what: &NotReady) -> bool {
        let waits = match self.waits.take() {
            Some(waits) if waits.what == *what => waits,
            _ => Waits { what: what.clone(), since: now, said: false },
        };
        let due = !waits.said && now.since(waits.since) >= UNCHANGED;
        self.waits = Some(Waits { said: waits.said || due, ..waits });
        due
    }

    /// Forgets the answer of a member that is gone.
    pub(super) fn forget(&mut self, name: &str) {
        self.answers.remove(name);
    }

    /// Forgets the answers of all processes but these.
    pub(super) fn keep(&mut self, counts: impl Fn(&str) -> bool) {
        self.answers.retain(|name, _| counts(name));
    }

    /// The highest configuration that a process with a record has told.
    pub(super) fn highest(&self) -> Option<&VoterConfig> {
        self.answers.values().filter_map(|answer| answer.state.founded()).max_by_key(|config| config.version)
    }

    /// The epoch and the configuration of a process that has lost its record: the highest told. A majority of
    /// that configuration has to answer from records, one bound or more after the start of this process. The
    /// process does not count itself.
    pub(super) fn recovered(
        &self,
        me: &str,
        flagged: &VoterConfig,
        clauses: impl Clauses,
    ) -> Option<(Epoch, VoterConfig)> {
        if let Some(known) = clauses.known_without_answers(flagged) {
            return Some(known);
        }
        let trusted = self.trusted(flagged);
        let counts = |name: &String| *name != me && clauses.counts_as_voter(trusted.contains(name));
        let told = || self.answers.iter().filter(|(name, a)| counts(name) && a.state.founded().is_some());
        let highest =
            told().filter_map(|(_, answer)| answer.state.founded()).max_by_key(|config| config.version)?;
        let late_from = self.started.plus(highest.bound());
        let late = told().filter(|(_, answer)| clauses.answer_is_late_enough(answer.asked, late_from));
        let known = clauses.recovery_is_told(highest, late.map(|(name, _)| name.as_str()), me);
        let epoch = clauses.recovered_epoch(told().map(|(_, answer)| answer.epoch));
        let config = clauses.recovered_config(told().filter_map(|(_, answer)| answer.state.founded()))?;
        known.then(|| (epoch, config.clone()))
    }

    /// The processes whose answers count: those of its own list, and the voters of the highest configuration
    /// that these have told. Any other process could name any configuration (clause 29).
    fn trusted<'a>(&'a self, flagged: &'a VoterConfig) -> BTreeSet<&'a String> {
        let mut trusted: BTreeSet<&String> = flagged.voters.iter().collect();
        loop {
            let told = self.answers.iter().filter(|(name, _)| trusted.contains(name));
            let configs = told.filter_map(|(_, answer)| answer.state.founded());
            let Some(highest) = configs.max_by_key(|config| config.version) else { return trusted };
            let before = trusted.len();
            trusted.extend(&highest.voters);
            // It only grows, up to the names that the answers have.
            if trusted.len() == before {
                return trusted;
            }
        }
    }

    /// How many other voters of the highest configuration have answered from a record, and how many have to;
    /// none: no process has told of a record.
    pub(super) fn records(&self, me: &str) -> Option<(usize, usize)> {
        let highest = self.highest()?;
        let told = |name: &&String| self.answers.get(*name).is_some_and(|a| a.state.founded().is_some());
        let others = highest.voters.iter().filter(|name| *name != me);
        Some((others.filter(told).count(), highest.majority()))
    }

    /// The voters whose answers it still waits for, and those that were started with other flags.
    pub(super) fn missing(
        &self,
        me: &str,
        flagged: &VoterConfig,
        given: Flags,
    ) -> (Vec<String>, Vec<String>) {
        let mut missing = (Vec::new(), Vec::new());
        for name in self.highest().unwrap_or(flagged).voters.iter().filter(|name| *name != me) {
            match self.answers.get(name) {
                None => missing.0.push(name.clone()),
                Some(answer) if answer.flags != given => missing.1.push(name.clone()),
                Some(_) => {}
            }
        }
        missing
    }
}
