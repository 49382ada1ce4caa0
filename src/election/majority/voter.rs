//! The voter: clauses 1 to 9. For which candidate it votes, what it promises, keeps and frees.

use super::Majority;
use crate::election::clauses::Clauses;
use crate::election::core::{Announcement, Core, Heard, Phase};
use crate::election::types::time::{duration, milliseconds};
use crate::election::{
    Action, Body, ConfigVersion, Denial, Instance, Moment, Notification, Now, Pace, ProcessId, Reason,
    RecoveredState, Stage, Timer, VoteRecord, VoteRequest,
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

/// A request for votes.
#[derive(Clone, Hash, Debug)]
pub(super) struct Asked {
    pub(super) by: ProcessId,
    pub(super) request: VoteRequest,
    /// When it came.
    pub(super) at: Moment,
}

impl Core<Majority> {
    /// A candidate asks. A request of a former incarnation does not count, nor does one for more than the
    /// lease that it names (clause 5).
    pub(super) fn on_vote_request(&mut self, now: Now, asked: Asked) {
        let Asked { by: from, ref request, .. } = asked;
        let VoteRequest { ballot, config, .. } = request;
        let Some(candidate) = self.instance(from) else { return };
        if !self.clauses.lease_allowed(ballot.lease_ms, config) || candidate.incarnation != ballot.incarnation
        {
            return;
        }
        if self.phase == Phase::Leaving {
            // Another process has heard its resignation, and sees to the rest.
            return self.act(Action::Exit);
        }
        self.learn_contender(now, &asked);
        let denial = self.denial(now, candidate, request);
        if ballot.stage == Stage::Vote && denial.is_none() {
            self.vote(now, candidate, request);
        }
        let own = self.protocol.config().filter(|own| own.version > config.version).cloned();
        self.send(from, Body::Vote { ballot: *ballot, outcome: denial.into(), config: own });
        let postponed = matches!(denial, Some(Denial::Promised { .. } | Denial::NoRecord));
        self.protocol.postponed = postponed.then_some(asked);
        if denial == Some(Denial::Outranked) && self.outranks_as_contender(from) {
            // The Bully's answer: this process becomes a candidate.
            self.pre_vote(now);
        }
    }

    /// Why this voter denies a candidate, itself included, its vote; none: it votes (clauses 3, 4, 7, 8, 13,
    /// 25 and 29).
    pub(super) fn denial(&self, now: Now, candidate: Instance, request: &VoteRequest) -> Option<Denial> {
        let (VoteRequest { ballot, transfer, config, .. }, clauses) = (request, self.clauses);
        let Some(own) = self.protocol.config() else { return Some(Denial::NoRecord) };
        let repeats = self.protocol.voted == Some((ballot.epoch, candidate));
        if !clauses.may_vote_in(ballot.epoch, self.epoch, repeats) {
            return Some(Denial::Stale);
        }
        if !clauses.may_vote_with(config.version, own.version) {
            return Some(Denial::OlderConfig);
        }
        if !self.is_listed(candidate.id) {
            return Some(Denial::Unlisted);
        }
        if let Some(rest) = self.grace(now, candidate) {
            return Some(Denial::Grace { for_ms: milliseconds(rest) });
        }
        let transfers = ballot.stage == Stage::PreVote && *transfer == Some(self.epoch);
        let freed = transfers && self.protocol.promise.is_some_and(|promise| self.leads(promise.to.id));
        if let Some(rest) = self.promised_to_another(now, candidate).filter(|_| !freed) {
            return Some(Denial::Promised { for_ms: milliseconds(rest) });
        }
        let ranks = ballot.stage == Stage::PreVote && transfer.is_none() && candidate != self.myself();
        (ranks && self.refuses_for_rank(now, candidate.id)).then_some(Denial::Outranked)
    }

    /// How long a promise to another still stands in the way of a process (clause 4).
    fn promised_to_another(&self, now: Now, process: Instance) -> Option<Duration> {
        let Promise { to, until, .. } = self.protocol.promise?;
        let binds = self.clauses.promise_binds(to, process, self.myself());
        (binds && now.slow < until).then(|| until.since(now.slow))
    }

    /// How long its own promise to another process, or its restart grace, keeps it from campaigning.
    pub(super) fn held_for(&self, now: Now) -> Option<Duration> {
        self.promised_to_another(now, self.myself()).max(self.grace(now, self.myself()))
    }

    /// Votes: the vote is durable before the answer leaves, and it ends a candidacy of this process's own
    /// (clauses 2, 15).
    pub(super) fn vote(&mut self, now: Now, candidate: Instance, request: &VoteRequest) {
        assert!(!self.phase.leading(), "a leader has promised itself, for longer than it leads");
        let (epoch, dirty) = (request.ballot.epoch, self.outbox.dirty);
        if epoch > self.epoch {
            self.lose_leader(Reason::Superseded);
            self.set_epoch(epoch);
            self.outbox.dirty = dirty || self.clauses.vote_is_durable();
        }
        if self.clauses.vote_stores_config() {
            self.adopt_config(&request.config);
        }
        let another = candidate != self.myself() && !self.leads(candidate.id);
        if another && self.clauses.vote_ends_candidacy() {
            self.wait_for(candidate.id);
        }
        self.protocol.voted = Some((epoch, candidate));
        self.promise(now, candidate, duration(request.ballot.lease_ms));
    }

    /// Promises from now on, for this lease. It never ends an earlier promise to the same process early. The
    /// rest of the restart grace becomes part of the promise (clauses 5, 8).
    pub(super) fn promise(&mut self, now: Now, to: Instance, lease: Duration) {
        let (m, clauses) = (&mut self.protocol, self.clauses);
        let earlier = m.promise.filter(|promise| promise.to == to).map(|promise| promise.until);
        let grace = m.grace_until.take();
        let end = now.slow.plus(clauses.promise_lasts(lease));
        let until = clauses.promise_ends(end, earlier.unwrap_or_default(), grace.unwrap_or_default());
        m.promise = Some(Promise { to, until });
        self.disarm(Timer::Grace);
    }

    /// A leader's heartbeat. An acknowledgement is a promise under three conditions. The epoch is not lower
    /// than this voter's own and will be durable. The voter stores just the configuration that the round
    /// names. The lease is not longer than that configuration's (clauses 5 to 8). Any other process only
    /// follows.
    pub(super) fn on_renew(&mut self, by: Heard, sequence: u32, pace: Pace, named: ConfigVersion) {
        let clauses = self.clauses;
        if by.epoch < self.epoch && clauses.stale_round_ends_grace() {
            self.end_grace();
        }
        self.announced(by, Announcement::Heartbeat(pace));
        let stale = clauses.is_stale(by.epoch, self.epoch);
        let Some(leader) = self.instance(by.from) else { return };
        if self.phase != Phase::Following || !self.leads(by.from) || stale {
            return;
        }
        let promised = self.protocol.config().is_some_and(|own| {
            clauses.may_acknowledge(named, own.version) && clauses.lease_allowed(pace.lease_ms, own)
        });
        if promised {
            self.promise(by.now, leader, duration(pace.lease_ms));
        }
        let config = self.protocol.config().map(|config| config.version).unwrap_or_default();
        let (membership, flags) = (self.members.version_held(), self.protocol.given);
        let firm = promised && self.promises_firmly();
        self.send(by.from, Body::Renewed { sequence, membership, promised, firm, config, flags });
    }

    /// A resignation in an epoch at or above its own frees the promise to its sender, and nothing else
    /// (clause 9).
    pub(super) fn free_resigned(&mut self, by: Heard) {
        let Heard { now, from, epoch } = by;
        let (sender, own, clauses) = (self.instance(from), self.epoch, self.clauses);
        let freed = self.free(|promise| clauses.resignation_frees(promise.to, sender, epoch, own));
        if clauses.resignation_ends_grace() {
            self.end_grace();
        }
        if freed {
            self.answer_postponed(now);
        }
    }

    /// Answers the latest request that this voter denied for a promise, or for want of a record. It must have
    /// come within an answer timeout. The request may overtake what frees the promise, which comes from
    /// another process. At a first start the voters have their votes one after another.
    pub(super) fn answer_postponed(&mut self, now: Now) {
        if self.protocol.config().is_none() {
            return;
        }
        let Some(asked) = self.protocol.postponed.take() else { return };
        if now.at.since(asked.at) < self.answer_timeout() {
            self.on_vote_request(now, asked);
        }
    }

    /// Crash evidence about one incarnation of a member frees the promise to it. This needs the operator's
    /// word that refused dials prove a death (`--crash-evidence release`). It frees nothing that an earlier
    /// incarnation without that word may have promised: the rest of the restart grace is back then.
    pub(super) fn release(&mut self, now: Now, instance: Instance) {
        if self.promises_firmly() || !self.free(|promise| promise.to == instance) {
            return;
        }
        let firm_until = self.protocol.firm_until.filter(|until| now.slow < *until);
        if let Some(until) = firm_until.filter(|_| self.clauses.evidence_keeps_grace()) {
            self.protocol.grace_until = Some(until);
            self.arm(Timer::Grace, until.since(now.slow));
        }
    }

    /// Whether no crash evidence frees a promise of this voter (rule 2 of holds).
    fn promises_firmly(&self) -> bool {
        !self.settings.crash_evidence.frees_promises()
    }

    /// Whether this voter may be bound by a firm promise, of this incarnation or an earlier one.
    pub(super) fn may_have_promised_firmly(&self) -> bool {
        self.promises_firmly() || self.protocol.firm_until.is_some_and(|until| self.last_turn.slow < until)
    }

    /// Says whether there was a promise to free.
    pub(super) fn free(&mut self, which: impl Fn(&Promise) -> bool) -> bool {
        self.protocol.promise.take_if(|promise| which(promise)).is_some()
    }

    /// How long the restart grace still stands in the way of a process, this one included (clause 8).
    fn grace(&self, now: Now, process: Instance) -> Option<Duration> {
        let until = self.protocol.grace_until?;
        let binds = self.clauses.grace_binds(process, self.myself());
        (binds && now.slow < until).then(|| until.since(now.slow))
    }

    /// This incarnation votes for no process for one bound: a former incarnation may have promised that long.
    /// The record says whether firmly. Each start writes it, before the first promise.
    pub(super) fn begin_grace(&mut self, now: Now, bound: Duration) {
        let bound = self.clauses.grace_lasts(bound, self.settings.lease_min);
        let until = now.slow.plus(bound);
        self.protocol.grace_until = Some(until);
        self.protocol.firm_until = self.protocol.was_firm.then_some(until);
        self.note(Notification::RestartGrace(bound));
        self.arm(Timer::Grace, bound);
    }

    fn end_grace(&mut self) {
        self.disarm(Timer::Grace);
        self.protocol.grace_until = None;
    }

    /// The restart grace may be over. Its timer runs on the fast clock, and so may come early.
    pub(super) fn on_grace_timer(&mut self, now: Now) {
        match self.protocol.grace_until.filter(|until| now.slow < *until) {
            Some(until) => self.arm(Timer::Grace, until.since(now.slow)),
            None => self.end_grace(),
        }
    }

    /// Whether this voter knows of a contender that outranks the candidate: itself, or one that has asked it
    /// within one coordinator timeout. A voter does not refuse the leader that it follows (clause 25).
    fn refuses_for_rank(&self, now: Now, candidate: ProcessId) -> bool {
        let Some(rank) = self.members.get(candidate).map(|member| member.rank()) else { return false };
        let better = self.protocol.contenders.better(rank, now.at, self.coordinator_timeout());
        let refuses = better.is_some() || self.outranks_as_contender(candidate);
        refuses && !self.leads(candidate) && self.clauses.rank_counts()
    }

    /// Whether this process outranks a candidate, and may win itself.
    fn outranks_as_contender(&self, candidate: ProcessId) -> bool {
        let outranks = self.members.get(candidate).is_some_and(|member| self.rank().outranks(member.rank()));
        // A resumed process knows of no election before its peers have answered.
        let paused = matches!(&self.phase, Phase::Asking(asking) if asking.after_pause);
        let busy = paused || matches!(self.phase, Phase::Leading(_) | Phase::Following | Phase::Leaving);
        outranks && !busy && self.protocol.contender && self.may_campaign()
    }

    /// A pre-vote says whether its sender may still win.
    fn learn_contender(&mut self, now: Now, asked: &Asked) {
        let Asked { by, request, at } = asked;
        let named = self.voter(now, *by).is_some_and(|name| request.config.voters.contains(name))
            && self.is_listed(*by);
        if let Some(member) = self.members.get(*by)
            && request.ballot.stage == Stage::PreVote
            && request.transfer.is_none()
        {
            self.protocol.contenders.hear(member.rank(), request.contender && named, *at);
        }
    }

    /// The vote's part of the durable record.
    pub(super) fn vote_record(&self) -> Option<VoteRecord> {
        let (founding, config) = match &self.protocol.state {
            RecoveredState::Empty => return None,
            RecoveredState::Founding(config) => (true, config.clone()),
            RecoveredState::Founded(config) => (false, config.clone()),
        };
        let firm = self.may_have_promised_firmly();
        Some(VoteRecord { name: self.me.name.clone(), founding, firm, config })
    }
}
