//! The voter: clauses 1 to 9. For which candidate it votes, what it promises, and what frees a promise.

use super::{Heard, Machine};
use crate::election::machine::{Mutation, Phase};
use crate::election::voters::{duration, milliseconds};
use crate::election::{
    Action, Body, ConfigVersion, CrashEvidence, Denial, Epoch, Incarnation, Instance, Moment, Notification,
    Now, ProcessId, Reason, Stage, Timer, VoteRequest,
};
use std::time::Duration;

/// "I vote for no other process until then." A restart waits for every promise alike (clause 8).
#[derive(Clone, Copy, Hash, Debug)]
pub(super) struct Promise {
    /// To which process.
    pub(super) to: Instance,
    /// Until when, on the slow clock.
    until: Moment,
}

impl Machine {
    /// A candidate asks. A request of a former incarnation, or for more than the lease that it names, is none (clause 5).
    pub(super) fn on_vote_request(&mut self, now: Now, from: ProcessId, request: &VoteRequest) {
        let VoteRequest { ballot, config, .. } = request;
        let longer = ballot.lease_ms > config.lease_ms && !self.mutant(Mutation::LongerLeaseGranted);
        let Some(candidate) = self.instance(from) else { return };
        if longer || candidate.incarnation != ballot.incarnation {
            return;
        }
        if self.phase == Phase::Leaving {
            // Its resignation was heard, and another process sees to the rest.
            return self.act(Action::Exit);
        }
        self.learn_contender(now, from, request);
        let denial = self.denial(now, candidate, request);
        if ballot.stage == Stage::Vote && denial.is_none() {
            self.vote(now, candidate, request);
        }
        let own = self.majority.config().filter(|own| own.version > config.version).cloned();
        self.send(from, Body::Vote { ballot: *ballot, outcome: denial.into(), config: own });
        if denial == Some(Denial::Outranked) && self.outranks_as_contender(from) {
            // The Bully's answer: it stands itself.
            self.pre_vote(now);
        }
    }

    /// Why it does not vote for a candidate, itself included, if it does not (clauses 3, 4, 7, 8, 13 and 25).
    pub(super) fn denial(&self, now: Now, candidate: Instance, request: &VoteRequest) -> Option<Denial> {
        let (VoteRequest { ballot, transfer, config, .. }, without) = (request, self.without());
        let Some(own) = self.majority.config() else { return Some(Denial::NoRecord) };
        let repeats =
            self.majority.voted == Some((ballot.epoch, candidate)) || without(Mutation::EpochVotedTwice);
        if ballot.epoch < self.epoch || ballot.epoch == self.epoch && !repeats {
            return Some(Denial::Stale);
        }
        if own.version > config.version && !without(Mutation::OlderConfigVotedFor) {
            return Some(Denial::OlderConfig);
        }
        if let Some(rest) = self.grace(now, candidate) {
            return Some(Denial::Grace { for_ms: milliseconds(rest) });
        }
        let transfers = ballot.stage == Stage::PreVote && *transfer == Some(self.epoch);
        let freed = transfers && self.majority.promise.is_some_and(|promise| self.leads(promise.to.id));
        if let Some(rest) = self.promised_to_another(now, candidate).filter(|_| !freed) {
            return Some(Denial::Promised { for_ms: milliseconds(rest) });
        }
        let ranks = ballot.stage == Stage::PreVote && transfer.is_none() && candidate != self.myself();
        (ranks && self.refuses_for_rank(now, candidate.id)).then_some(Denial::Outranked)
    }

    /// How long a promise to another still stands in the way of a process (clause 4).
    fn promised_to_another(&self, now: Now, process: Instance) -> Option<Duration> {
        let (Promise { to, until }, without) = (self.majority.promise?, self.without());
        let exempt = process == self.myself() && without(Mutation::OwnVoteExempt);
        let same = exempt || to == process || to.id == process.id && without(Mutation::IncarnationIgnored);
        (!same && now.slow < until && !without(Mutation::PromiseIgnored)).then(|| until.since(now.slow))
    }

    /// How long its own promise to another process, or its restart grace, keeps it from standing.
    pub(super) fn held_for(&self, now: Now) -> Option<Duration> {
        self.promised_to_another(now, self.myself()).max(self.grace(now, self.myself()))
    }

    /// Votes: the vote is durable before the answer leaves, and it ends a candidacy of this process's own (clauses 2, 15).
    pub(super) fn vote(&mut self, now: Now, candidate: Instance, request: &VoteRequest) {
        assert!(!self.phase.leading(), "a leader has promised itself, for longer than it leads");
        let (epoch, dirty) = (request.ballot.epoch, self.dirty);
        if epoch > self.epoch {
            self.lose_leader(Reason::Superseded);
            self.set_epoch(epoch);
            self.dirty = dirty || !self.mutant(Mutation::VoteNotDurable);
        }
        if !self.mutant(Mutation::ConfigOfVoteNotStored) {
            self.take_config(&request.config);
        }
        let another = candidate != self.myself() && !self.leads(candidate.id);
        if another && !self.mutant(Mutation::CandidacySurvivesVote) {
            self.wait_for(candidate.id);
        }
        self.majority.voted = Some((epoch, candidate));
        self.promise(now, candidate, duration(request.ballot.lease_ms));
    }

    /// Promises from now on, for this lease. It never ends an earlier promise to the same process early, and what is left of
    /// the restart grace becomes part of the promise (clauses 5, 8).
    pub(super) fn promise(&mut self, now: Now, to: Instance, lease: Duration) {
        let without = self.without();
        let m = &mut self.majority;
        let lease = if without(Mutation::PromiseShort) { lease / 2 } else { lease };
        let before =
            m.promise.filter(|p| p.to == to && !without(Mutation::PromiseShortened)).map(|p| p.until);
        let grace = m.grace_until.take().filter(|_| !without(Mutation::GraceEndedByRound));
        let until = now.slow.plus(lease).max(before.unwrap_or_default()).max(grace.unwrap_or_default());
        m.promise = Some(Promise { to, until });
        self.disarm(Timer::Grace);
    }

    /// A leader's heartbeat. An acknowledgement is a promise: the epoch is not lower than this voter's own and will be
    /// durable, the voter stores just the configuration that the round names, and the lease is not longer than that one's
    /// (clauses 5 to 8). Any other process only follows.
    pub(super) fn on_renew(&mut self, by: Heard, sequence: u32, lease_ms: u32, named: ConfigVersion) {
        let without = self.without();
        if by.epoch < self.epoch && without(Mutation::GraceEndedByStaleRound) {
            self.end_grace();
        }
        self.announced(by.now, by.from, by.epoch, None);
        let stale = by.epoch < self.epoch && !without(Mutation::StaleRoundAcknowledged);
        let Some(leader) = self.instance(by.from) else { return };
        if self.phase != Phase::Following || !self.leads(by.from) || stale {
            return;
        }
        let promised = self.majority.config().is_some_and(|own| {
            (own.version == named || without(Mutation::OlderConfigAcknowledged))
                && (lease_ms <= own.lease_ms || without(Mutation::LongerLeaseGranted))
        });
        if promised {
            self.promise(by.now, leader, duration(lease_ms));
        }
        let config = self.majority.config().map(|config| config.version).unwrap_or_default();
        let (membership, flags) = (self.members.held(), self.majority.given);
        self.send(by.from, Body::Renewed { sequence, membership, promised, config, flags });
    }

    /// A resignation in an epoch at or above its own frees the promise to its sender, and nothing else (clause 9).
    pub(in crate::election::machine) fn on_resign(&mut self, from: ProcessId, epoch: Epoch) {
        let (process, any) = (self.instance(from), self.mutant(Mutation::ResignFreesAny));
        if epoch >= self.epoch || any || self.mutant(Mutation::LateResignFrees) {
            self.free(|promise| Some(promise.to) == process || any);
        }
        if any {
            self.end_grace();
        }
    }

    /// Crash evidence about one incarnation of a member frees the promise to it, where the operator has said that refused
    /// dials prove a death (`--crash-evidence release`).
    pub(in crate::election::machine) fn release(&mut self, id: ProcessId, incarnation: Incarnation) {
        if self.settings.crash_evidence == CrashEvidence::Release {
            self.free(|promise| promise.to == Instance { id, incarnation });
        }
    }

    pub(super) fn free(&mut self, which: impl Fn(&Promise) -> bool) {
        self.majority.promise = self.majority.promise.filter(|promise| !which(promise));
    }

    /// How long the restart grace still stands in the way of a process, this one included (clause 8).
    fn grace(&self, now: Now, process: Instance) -> Option<Duration> {
        let (until, without) = (self.majority.grace_until?, self.without());
        let exempt =
            without(Mutation::NoGrace) || process == self.myself() && without(Mutation::OwnVoteInGrace);
        (now.slow < until && !exempt).then(|| until.since(now.slow))
    }

    /// This incarnation votes for no process for one bound: a former one may have promised so much.
    pub(super) fn begin_grace(&mut self, now: Now, bound: Duration) {
        self.majority.grace_until = Some(now.slow.plus(bound));
        self.note(Notification::RestartGrace(bound));
        self.arm(Timer::Grace, bound);
    }

    fn end_grace(&mut self) {
        self.disarm(Timer::Grace);
        self.majority.grace_until = None;
    }

    /// The restart grace may be over. Its timer runs on the fast clock, and so may come early.
    pub(in crate::election::machine) fn grace_over(&mut self, now: Now) {
        match self.majority.grace_until.filter(|until| now.slow < *until) {
            Some(until) => self.arm(Timer::Grace, until.since(now.slow)),
            None => self.end_grace(),
        }
    }

    /// Whether this voter knows of a contender that outranks the candidate: itself, or one that has asked it within one
    /// coordinator timeout. It does not refuse the leader that it follows (clause 25).
    fn refuses_for_rank(&self, now: Now, candidate: ProcessId) -> bool {
        let Some(rank) = self.members.get(candidate).map(|member| member.rank()) else { return false };
        let better = self.majority.contenders.better(rank, now.at, self.settings.coordinator_timeout);
        let refuses = better.is_some() || self.outranks_as_contender(candidate);
        refuses && !self.leads(candidate) && !self.mutant(Mutation::NoRanks)
    }

    /// Whether this process outranks a candidate, and may win itself.
    fn outranks_as_contender(&self, candidate: ProcessId) -> bool {
        let outranks = self.members.get(candidate).is_some_and(|member| self.rank().outranks(member.rank()));
        // A process that was paused knows of no contest before its peers have answered.
        let paused = matches!(&self.phase, Phase::Asking(asking) if asking.after_pause);
        let busy = paused || matches!(self.phase, Phase::Leading(_) | Phase::Following | Phase::Leaving);
        outranks && !busy && self.majority.contender && self.may_campaign()
    }

    /// A pre-vote says whether its sender may still win.
    fn learn_contender(&mut self, now: Now, from: ProcessId, request: &VoteRequest) {
        let named = self.voter(now, from).is_some_and(|name| request.config.voters.contains(name));
        if let Some(member) = self.members.get(from)
            && request.ballot.stage == Stage::PreVote
            && request.transfer.is_none()
        {
            self.majority.contenders.hear(member.rank(), request.contender && named, now.at);
        }
    }
}
