//! What a voter without a record has asked, and what the answers amount to: recovery (clauses 10 to 12), the first start
//! (clauses 22 and 23).

use super::mutation::Mutation;
use super::{Epoch, Flags, Moment, RecoveredState, VoterConfig};
use std::collections::{BTreeMap, VecDeque};

/// How many rounds of asking are remembered, for when an answer was given; answers to older ones do not count.
const ROUNDS_MAX: usize = 16;

/// The questions and answers of one incarnation. All moments are of the slow clock.
#[derive(Clone, Hash, Debug, Default)]
pub(super) struct Recovery {
    started: Moment,
    /// Counts the rounds of asking.
    pub(super) round: u32,
    /// The latest rounds and when they were asked, newest last.
    asked: VecDeque<(u32, Moment)>,
    /// The latest answer of each other member, by its name. At most one entry a member.
    answers: BTreeMap<String, Answer>,
    /// Whether the log has said that this process may not found a cluster.
    pub(super) refused: bool,
}

#[derive(Clone, Hash, Debug)]
struct Answer {
    /// It was given after this moment.
    asked: Moment,
    epoch: Epoch,
    state: RecoveredState,
    flags: Flags,
}

impl Recovery {
    pub(super) fn new(started: Moment) -> Recovery {
        Recovery { started, ..Recovery::default() }
    }

    /// Begins the next round of asking.
    pub(super) fn ask(&mut self, now: Moment) {
        self.round = self.round.wrapping_add(1);
        if self.asked.len() == ROUNDS_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back((self.round, now));
    }

    /// An answer to a round of this incarnation. It counts as given when that round was asked.
    pub(super) fn hear(
        &mut self,
        name: String,
        round: u32,
        epoch: Epoch,
        state: RecoveredState,
        flags: Flags,
    ) {
        if let Some((_, asked)) = self.asked.iter().find(|(number, _)| *number == round) {
            self.answers.insert(name, Answer { asked: *asked, epoch, state, flags });
        }
    }

    /// Forgets the answer of a member that is gone.
    pub(super) fn forget(&mut self, name: &str) {
        self.answers.remove(name);
    }

    /// The highest configuration that a process with a record has told.
    pub(super) fn highest(&self) -> Option<&VoterConfig> {
        self.answers.values().filter_map(|answer| answer.state.founded()).max_by_key(|config| config.version)
    }

    /// The epoch and the configuration of a process that has lost its record: the highest told, once a majority of that
    /// configuration, itself not counted, has answered from records, one bound or more after its start.
    pub(super) fn recovered(
        &self,
        me: &str,
        flagged: &VoterConfig,
        without: impl Fn(Mutation) -> bool + Copy,
    ) -> Option<(Epoch, VoterConfig)> {
        if without(Mutation::NoRecovery) {
            return Some((Epoch::ZERO, flagged.clone()));
        }
        let told = || self.answers.iter().filter(|(name, a)| *name != me && a.state.founded().is_some());
        let highest = self.highest()?;
        let late_from = self.started.plus(highest.bound());
        let late = told().filter(|(_, a)| a.asked >= late_from || without(Mutation::RecoveryEarly));
        let itself = Some(me).filter(|_| without(Mutation::RecoveryCountsItself));
        let known = highest.has_majority(late.map(|(name, _)| name.as_str()).chain(itself));
        let epoch = told().map(|(_, answer)| answer.epoch).max().unwrap_or_default();
        let epoch = if without(Mutation::RecoveredEpochForgotten) { Epoch::ZERO } else { epoch };
        let lowest = told().filter_map(|(_, a)| a.state.founded()).min_by_key(|config| config.version);
        let config = lowest.filter(|_| without(Mutation::RecoveredConfigLowest)).unwrap_or(highest);
        known.then(|| (epoch, config.clone()))
    }

    /// Whether this is a first start, as far as every peer that it knows can tell: all others of its list have answered,
    /// and were started with the same list and lease; so have all that it is connected with; and none has voted.
    pub(super) fn is_first_start<'a>(
        &self,
        me: &str,
        flagged: &VoterConfig,
        given: Flags,
        mut connected: impl Iterator<Item = &'a str>,
        without: impl Fn(Mutation) -> bool + Copy,
    ) -> bool {
        let agrees = |answer: &Answer| {
            (answer.flags.voters == given.voters || without(Mutation::FoundedWithOtherList))
                && (answer.flags.lease_ms == given.lease_ms || without(Mutation::FoundedWithOtherLease))
        };
        let agree = |name: &&str| *name == me || self.answers.get(*name).is_some_and(agrees);
        let list = || flagged.voters.iter().map(String::as_str);
        let by_majority = without(Mutation::FoundedByMajority) && flagged.has_majority(list().filter(agree));
        let founded = self.highest().is_some() && !without(Mutation::FoundedBesideRecord);
        let all = list().all(|name| agree(&name)) && connected.all(|name| self.answers.contains_key(name));
        !founded && (all || by_majority)
    }

    /// The configuration of a process that is founding, once it may vote: its own, if all others of the list are founding
    /// with it, or that of one of the list that may vote already.
    pub(super) fn founded<'a>(&'a self, me: &str, own: &'a VoterConfig) -> Option<&'a VoterConfig> {
        let founding = |name: &String| {
            let state = self.answers.get(name).map(|answer| &answer.state);
            name == me || matches!(state, Some(RecoveredState::Founding(config)) if config == own)
        };
        let listed = self.answers.iter().filter(|(name, _)| own.voters.contains(*name));
        let founded =
            listed.filter_map(|(_, answer)| answer.state.founded()).max_by_key(|config| config.version);
        founded.or(Some(own).filter(|own| own.voters.iter().all(founding)))
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
