//! `--safety majority`: at every instant at most one process answers that it leads.
//!
//! The clauses of docs/safety.md, and where they are:
//!
//! | clauses | what | file |
//! | --- | --- | --- |
//! | 1 to 9 | the voter: its vote, its promise, its restart grace | `voter` |
//! | 10 to 12, 22, 23 | a voter without a record: recovery, the first start | `recovery` |
//! | 13 to 15, 24, 25, 27 | the candidate: pre-vote, vote, the contest rule | `candidate` |
//! | 1, 16, 17 | the leader: its lease and its rounds | `lease` |
//! | 18 to 21, 26 | the configuration | `reconfiguration` |
//! | 28 | leadership transfer | `transfer` |
//!
//! A process leads by [`Machine::win`](super::Machine) alone.

mod candidate;
mod lease;
mod reconfiguration;
mod recovery;
#[cfg(test)]
mod tests;
mod transfer;
mod voter;

use super::{Machine, Mutation};
use crate::election::campaign::Campaign;
use crate::election::contenders::Contenders;
use crate::election::recovery::Recovery;
use crate::election::term::Term;
use crate::election::voters::{fingerprint, milliseconds};
use crate::election::{
    Body, Epoch, Flags, Instance, Moment, Notification, Now, ProcessId, Record, RecoveredState, Settings,
    VoterConfig,
};
use std::collections::{BTreeMap, BTreeSet};
use voter::Promise;

/// From which process a message comes, in which epoch, and when.
#[derive(Clone, Copy)]
struct Heard {
    now: Now,
    from: ProcessId,
    epoch: Epoch,
}

/// What a process in `majority` keeps beside what every process keeps. In `classic` it stays as it is made.
#[derive(Clone, Hash, Debug, Default)]
pub(super) struct Majority {
    /// What this process was started with: `--voters` (none in `classic`), and what stands for them and the lease.
    pub(super) target: BTreeSet<String>,
    pub(super) given: Flags,
    /// The lease that its requests and rounds ask for, in milliseconds; at most the configuration's.
    asks_ms: u32,
    /// What it knows from its record. All else is volatile.
    pub(super) state: RecoveredState,
    promise: Option<Promise>,
    /// The latest vote of this incarnation, which it repeats to the same process (clause 3).
    voted: Option<(Epoch, Instance)>,
    /// Until when it votes for no process, since it may have forgotten a promise (clause 8). On the slow clock.
    pub(super) grace_until: Option<Moment>,
    /// Whether it may still win, as far as it knows (clause 25).
    contender: bool,
    /// The contenders that have asked it.
    pub(super) contenders: Contenders,
    campaign: Option<Campaign>,
    pub(super) recovery: Option<Recovery>,
    /// While it leads.
    pub(super) term: Option<Term>,
    /// When the leader that it follows was last heard.
    pub(super) leader_heard: Moment,
    /// What each member was started with. At most one entry a member.
    pub(super) flags: BTreeMap<ProcessId, Flags>,
}

impl Majority {
    /// What the settings ask for. No candidacy and no leadership survives a restart (clause 17).
    pub(super) fn new(settings: &Settings, record: Option<&Record>) -> Majority {
        let (target, lease_ms) = (settings.voters(), milliseconds(settings.failure_timeout));
        let given = Flags { voters: fingerprint(&target), lease_ms };
        let state = RecoveredState::of(record.and_then(|record| record.vote.as_ref()), &target, lease_ms);
        Majority { target, given, state, asks_ms: u32::MAX, contender: true, ..Majority::default() }
    }

    /// Whether voters decide at all.
    pub(super) fn votes(&self) -> bool {
        !self.target.is_empty()
    }

    /// The configuration that it votes by; none before it has a vote.
    pub(super) fn config(&self) -> Option<&VoterConfig> {
        self.state.founded()
    }
}

impl Machine {
    /// Begins an incarnation: with its record a voter waits for the restart grace, without one it recovers.
    pub(super) fn start_majority(&mut self, now: Now) {
        match self.majority.config().map(VoterConfig::bound) {
            _ if !self.majority.votes() => {}
            Some(bound) => {
                self.note_lease();
                self.begin_grace(now, bound);
            }
            None => self.begin_recovery(now),
        }
    }

    /// Takes a message that only `majority` has.
    pub(super) fn majority_message(&mut self, now: Now, from: ProcessId, epoch: Epoch, body: Body) {
        let by = Heard { now, from, epoch };
        match body {
            Body::VoteRequest(request) => self.on_vote_request(now, from, &request),
            Body::Vote { ballot, outcome, config } => self.on_vote(by, ballot, outcome, config),
            Body::Renew { sequence, lease_ms, config, .. } => self.on_renew(by, sequence, lease_ms, config),
            Body::Renewed { sequence, membership, promised, config, flags } => {
                self.learn_flags(from, flags);
                self.acknowledged(now, from, epoch, sequence, membership);
                self.on_renewed(by, sequence, promised.then_some(config));
            }
            Body::Configuration { config } => self.on_configuration(&config),
            Body::Recover { round, incarnation } => self.on_recover(from, round, incarnation),
            Body::Recovered { round, incarnation, state, flags } => {
                self.learn_flags(from, flags);
                self.on_recovered(by, round, incarnation, state, flags);
            }
            Body::ProposeTransfer => self.on_propose_transfer(by),
            Body::TransferReady { majority } => self.on_transfer_ready(by, majority),
            _ => {}
        }
    }

    /// This process.
    fn myself(&self) -> Instance {
        Instance { id: self.me.id, incarnation: self.me.incarnation }
    }

    /// The incarnation of a member that is known here.
    fn instance(&self, id: ProcessId) -> Option<Instance> {
        let member = self.members.get(id)?;
        Some(Instance { id, incarnation: member.peer.incarnation })
    }

    /// The name under which another member votes. Of two live processes of one name the one known longer has it.
    fn voter(&self, now: Now, id: ProcessId) -> Option<&str> {
        let name = self.members.name(id, now.at, self.settings.failure_timeout)?;
        (name != self.me.name).then_some(name)
    }

    /// Whether this process may vote and lead at all: it has a vote, a configuration that names it, and a rank.
    fn may_campaign(&self) -> bool {
        self.rank().eligible()
            && self.majority.config().is_some_and(|config| config.voters.contains(&self.me.name))
    }

    /// Takes down what a member was started with. The log says once where its `--voters` differ.
    fn learn_flags(&mut self, from: ProcessId, flags: Flags) {
        let Some(peer) = self.members.get(from).map(|m| m.peer.clone()) else { return };
        let before = self.majority.flags.insert(from, flags).map(|before| before.voters);
        if flags.voters != self.majority.given.voters && before != Some(flags.voters) {
            self.note(Notification::VotersDiffer(peer));
        }
    }

    /// Forgets what is kept of a member that is gone; what hangs on its name goes unless another member has it.
    pub(super) fn forget_voter(&mut self, id: ProcessId, name: &str) {
        self.majority.flags.remove(&id);
        self.majority.contenders.forget(id);
        if !self.members.iter().any(|member| member.peer.id != id && member.peer.name == name) {
            self.majority.term.iter_mut().for_each(|term| _ = term.stores.remove(name));
            self.majority.recovery.iter_mut().for_each(|recovery| recovery.forget(name));
        }
    }

    /// A process says that it leads, by an announcement or a heartbeat. This process follows it in an epoch at or above its
    /// own. No rank counts here: voters have elected it.
    pub(super) fn announced(&mut self, now: Now, from: ProcessId, epoch: Epoch, elected_at_ms: Option<u64>) {
        let Some(peer) = self.members.get(from).map(|m| m.peer.clone()) else { return };
        let resigned = self.resigned == Some((from, epoch)) && !self.mutant(Mutation::ResignedEpochFollowed);
        // Two processes never lead in one epoch (invariant 4): a sender of this leader's epoch is mistaken.
        if resigned || epoch == self.epoch && self.phase.leading() || !peer.rank().eligible() {
            return;
        }
        if epoch < self.epoch && !self.mutant(Mutation::StaleRoundAcknowledged) {
            return self.answer_stale(from);
        }
        self.follow(now, peer, epoch.max(self.epoch), elected_at_ms);
        self.majority.leader_heard = now.at;
        self.majority.contender = true;
    }

    /// A leader's end frees its own promise to itself: it never leads that epoch again (clause 17).
    pub(super) fn stopped_leading(&mut self) {
        let myself = self.myself();
        self.majority.term = None;
        self.free(|promise| promise.to == myself);
    }
}
