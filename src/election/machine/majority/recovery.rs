//! A voter without its record: rule 8. It counts as failed until it has learned what it may have forgotten.

use super::{Machine, Majority, lease_of};
use crate::election::machine::{Mutation, Phase};
use crate::election::{
    Body, Epoch, Incarnation, Moment, Note, Now, ProcessId, Reason, Recollection, Timer, VoterView, Waits,
};
use std::collections::{BTreeMap, VecDeque};

/// How many rounds of asking are remembered, for when an answer was given; answers to older ones do not count.
const ROUNDS_MAX: usize = 16;

/// How far it has come.
#[derive(Clone, Hash, Debug)]
pub(super) struct Recovery {
    started: Moment,
    round: u32,
    /// The latest rounds and when they were asked, newest last.
    asked: VecDeque<(u32, Moment)>,
    /// The latest answer of each voter. At most one entry a member.
    answers: BTreeMap<String, Answer>,
}

#[derive(Clone, Hash, Debug)]
struct Answer {
    /// It was given after this moment.
    asked: Moment,
    epoch: Epoch,
    recollection: Option<Recollection>,
    target: u64,
}

impl Recovery {
    /// The highest view among the answers.
    fn highest(&self) -> Option<&VoterView> {
        let recollections = self.answers.values().filter_map(|answer| answer.recollection.as_ref());
        recollections.map(|r| &r.view).max_by_key(|view| view.stamp)
    }

    /// Forgets the answer of a voter that is gone.
    pub(super) fn forget(&mut self, name: &str) {
        self.answers.remove(name);
    }
}

impl Majority {
    /// The view that the flags name: of a first start.
    pub(super) fn flagged(&self) -> VoterView {
        VoterView { voters: self.target.clone(), ..VoterView::default() }
    }
}

impl Machine {
    /// Begins to recover.
    pub(super) fn recover(&mut self, now: Now) {
        self.note(Note::Recovering);
        if let Some(m) = &mut self.majority {
            m.recovery = Some(Recovery {
                started: now.at,
                round: 0,
                asked: VecDeque::new(),
                answers: BTreeMap::new(),
            });
            if self.mutant(Mutation::NoRecovery) {
                return self.recovered(now);
            }
        }
        self.ask_to_recover(now);
        // Alone it has nobody to ask.
        self.judge_recovery(now);
    }

    /// Asks everybody again, and goes on doing so.
    pub(in crate::election::machine) fn ask_to_recover(&mut self, now: Now) {
        let incarnation = self.me.incarnation;
        let Some(recovery) = self.majority.as_mut().and_then(|m| m.recovery.as_mut()) else { return };
        recovery.round = recovery.round.wrapping_add(1);
        if recovery.asked.len() == ROUNDS_MAX {
            recovery.asked.pop_front();
        }
        recovery.asked.push_back((recovery.round, now.at));
        let round = recovery.round;
        let linked = self.ids(|m| m.linked);
        self.send_each(linked, &Body::Recover { round, incarnation });
        self.arm(Timer::Recover, self.settings.heartbeat);
    }

    /// A peer is connected while this voter recovers: it need not wait for the next round.
    pub(in crate::election::machine) fn ask_newcomer_to_recover(&mut self, id: ProcessId) {
        let incarnation = self.me.incarnation;
        if let Some(recovery) = self.majority.as_ref().and_then(|m| m.recovery.as_ref()) {
            let round = recovery.round;
            self.send(id, Body::Recover { round, incarnation });
        }
    }

    /// Tells another what this process knows from its record.
    pub(super) fn asked_to_recover(&mut self, from: ProcessId, round: u32, incarnation: Incarnation) {
        let Some(m) = &self.majority else { return };
        let recollection = m
            .view
            .clone()
            .map(|view| Recollection { view, lease_longest_ms: m.lease_longest_ms.max(m.lease_ms()) });
        let target = m.fingerprint;
        self.send(from, Body::Recovered { round, incarnation, recollection, target });
    }

    /// An answer. Only one to this life counts, and it counts as given when its round was asked.
    #[allow(clippy::too_many_arguments)] // The fields of one message.
    pub(super) fn recovered_answer(
        &mut self,
        now: Now,
        from: ProcessId,
        epoch: Epoch,
        round: u32,
        incarnation: Incarnation,
        recollection: Option<Recollection>,
        target: u64,
    ) {
        self.learn_target(from, target);
        let echo = incarnation == self.me.incarnation || self.mutant(Mutation::RecoveryEchoIgnored);
        let Some(name) = self.voter(now, from).map(str::to_owned) else { return };
        let Some(recovery) = self.majority.as_mut().and_then(|m| m.recovery.as_mut()) else { return };
        let asked = recovery.asked.iter().find(|(number, _)| *number == round).map(|(_, at)| *at);
        let (Some(asked), true) = (asked, echo) else { return };
        recovery.answers.insert(name, Answer { asked, epoch, recollection, target });
        self.judge_recovery(now);
    }

    /// Whether it knows enough: (a) once a majority of the view, itself not counted, has answered from records, a lease
    /// or more after its start; or (b) once all others have answered, from records if there are any, and otherwise, at a
    /// first start, all naming the same voters.
    fn judge_recovery(&mut self, now: Now) {
        let counts_itself = self.mutant(Mutation::RecoveryCountsItself);
        let early = self.mutant(Mutation::RecoveryEarly);
        let me = self.me.name.clone();
        let Some(m) = &mut self.majority else { return };
        let Some(recovery) = &m.recovery else { return };
        let recollections = || recovery.answers.values().filter_map(|answer| answer.recollection.as_ref());
        let lease_ms =
            recollections().map(|r| r.lease_longest_ms).chain([m.lease_ms()]).max().unwrap_or_default();
        let highest = recovery.highest();
        let flagged = m.flagged();
        let view = highest.unwrap_or(&flagged);
        let others: Vec<&Answer> = view
            .voters
            .iter()
            .filter(|name| **name != me)
            .filter_map(|name| recovery.answers.get(name))
            .collect();
        let everybody = others.len() == view.voters.iter().filter(|name| **name != me).count();
        let first_start = highest.is_none() && everybody && others.iter().all(|a| a.target == m.fingerprint);
        let late_from = recovery.started.plus(lease_of(lease_ms));
        let late = others.iter().filter(|a| a.recollection.is_some() && (a.asked >= late_from || early));
        let known = late.count() + usize::from(counts_itself) >= view.majority();
        if !(first_start || highest.is_some() && (everybody || known)) {
            return;
        }
        let epoch = recovery.answers.values().map(|answer| answer.epoch).max().unwrap_or_default();
        let view = view.clone();
        m.lease_longest_ms = m.lease_longest_ms.max(lease_ms);
        m.view = Some(view);
        if epoch > self.epoch {
            // Nobody was granted it by this life, whoever was by a former one.
            m.granted_to = None;
            self.lose_leader(Reason::Superseded);
            self.set_epoch(epoch);
        }
        self.recovered(now);
    }

    /// It votes from now on, cautiously (rule 7).
    fn recovered(&mut self, now: Now) {
        self.disarm(Timer::Recover);
        let Some(m) = &mut self.majority else { return };
        let Some(recovery) = m.recovery.take() else { return };
        if m.view.is_none() {
            m.view = Some(m.flagged());
        }
        self.dirty = true;
        self.note(Note::Recovered(self.epoch));
        self.be_cautious(now, recovery.started);
        if self.leader.is_none() && !matches!(self.phase, Phase::Asking(_) | Phase::Leaving) {
            self.contest(now);
        }
    }

    /// Whose answers it still waits for, and whose `--voters` differ, where only a first start is left.
    pub(super) fn recovery_waits(&self) -> Waits {
        let mut waits = (Vec::new(), Vec::new());
        if let Some(m) = &self.majority
            && let Some(recovery) = &m.recovery
        {
            let view = recovery.highest().cloned().unwrap_or_else(|| m.flagged());
            let others = view.voters.iter().filter(|name| **name != self.me.name);
            for name in others {
                match recovery.answers.get(name) {
                    None => waits.0.push(name.clone()),
                    Some(answer) if answer.target != m.fingerprint => waits.1.push(name.clone()),
                    Some(_) => {}
                }
            }
        }
        Waits::Recovery { missing: waits.0, differ: waits.1 }
    }
}
