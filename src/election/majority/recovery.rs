//! Recovery: clauses 10 to 12. A voter without a record asks the others what it has to know before it may
//! vote. A first start ends here too (clause 23).

use super::Majority;
use super::recovery_answers::{ROUNDS_A_LEASE, ROUNDS_APART, Recovery};
use crate::election::clauses::Clauses;
use crate::election::core::{Core, Heard, Phase};
use crate::election::{
    Body, Epoch, Flags, Incarnation, Member, Notification, Now, ProcessId, Reason, RecoveredState, Timer,
    VoterConfig,
};

impl Core<Majority> {
    /// Begins to ask what this process has to know before it may vote.
    pub(super) fn begin_recovery(&mut self, now: Now) {
        self.note(Notification::Recovering);
        self.protocol.recovery = Some(Recovery::new(now.slow));
        self.ask_to_recover(now);
    }

    /// Asks every process that it is connected with again, and goes on doing so.
    pub(super) fn ask_to_recover(&mut self, now: Now) {
        let (members, discovered) = (&self.members, &self.dial_targets.discovered);
        let m = &mut self.protocol;
        let Some(recovery) = &mut m.recovery else { return };
        // A stranger that is gone keeps this process from nothing.
        recovery.keep(|name| {
            let here = |member: &Member| member.linked || discovered.contains(&member.peer.address);
            m.target.contains(name) || members.iter().any(|m| m.peer.name == name && here(m))
        });
        recovery.ask(now.slow);
        let (round, incarnation) = (recovery.round, self.me.incarnation);
        self.send_each(self.ids(|m| m.linked), &Body::Recover { round, incarnation });
        let apart = (self.settings.failure_timeout / ROUNDS_A_LEASE).min(ROUNDS_APART);
        self.arm(Timer::Recover, self.settings.heartbeat.max(apart));
        // A process without others has none to ask.
        self.judge_recovery(now);
        self.say_what_is_missing(now);
    }

    /// The log of a voter that has no vote for long says why, as its status does.
    fn say_what_is_missing(&mut self, now: Now) {
        let Some(not_ready) = self.not_ready() else { return };
        let recovery = self.protocol.recovery.as_mut();
        if recovery.is_some_and(|recovery| recovery.is_worth_a_line(now.slow, &not_ready)) {
            self.note(Notification::NoVoteYet(not_ready));
        }
    }

    /// A process is connected, another incarnation perhaps. While this one recovers it need not wait for the
    /// next round.
    pub(super) fn ask_newcomer_to_recover(&mut self, id: ProcessId) {
        // Nothing that is kept of a member outlives that member.
        self.protocol.flags.retain(|known, _| *known != id && self.members.get(*known).is_some());
        self.protocol.seen_recovering.retain(|known, _| self.members.get(*known).is_some());
        self.ask_one_to_recover(id);
    }

    /// Sends the question of the present round to one process, if this one recovers.
    pub(super) fn ask_one_to_recover(&mut self, id: ProcessId) {
        if let Some(recovery) = &self.protocol.recovery {
            let (round, incarnation) = (recovery.round, self.me.incarnation);
            self.send(id, Body::Recover { round, incarnation });
        }
    }

    /// Tells another what this process knows from its record.
    pub(super) fn on_recover(&mut self, by: Heard, round: u32, incarnation: Incarnation) {
        let (state, flags) = (self.protocol.state.clone(), self.protocol.given);
        self.send(by.from, Body::Recovered { round, incarnation, state, flags });
        self.ask_back(by.from, round);
        self.name_recovering(by);
    }

    /// The log of a voter with a record names each voter without one, once an incarnation. Before the first
    /// epoch that is no loss: the voters start one after another.
    fn name_recovering(&mut self, by: Heard) {
        let Some(peer) = self.members.get(by.from).map(|member| member.peer.clone()) else { return };
        let name = self.voter(by.now, by.from);
        let config = self.protocol.config().filter(|_| self.epoch > Epoch::default());
        let votes = config.is_some_and(|config| name.is_some_and(|name| config.voters.contains(name)));
        let seen = &mut self.protocol.seen_recovering;
        if votes && seen.insert(by.from, peer.incarnation) != Some(peer.incarnation) {
            self.note(Notification::VoterRecovers(peer));
        }
    }

    /// An answer. Only one to this incarnation counts (clause 11).
    pub(super) fn on_recovered(
        &mut self,
        by: Heard,
        round: u32,
        to: Incarnation,
        state: RecoveredState,
        flags: Flags,
    ) {
        let to_this = self.clauses.answer_is_mine(to, self.me.incarnation);
        let name = self.voter(by.now, by.from).map(str::to_owned).filter(|_| to_this);
        if let (Some(name), Some(recovery)) = (name, &mut self.protocol.recovery) {
            let differs = state == RecoveredState::Empty && flags != self.protocol.given;
            let news = recovery.hear(name, round, by.epoch, state, flags);
            let peer = self.members.get(by.from).map(|member| member.peer.clone());
            if let Some(peer) = peer.filter(|_| differs && news) {
                self.note(Notification::VotersDiffer { peer, first_start: true });
            }
            self.judge_recovery(by.now);
        }
    }

    /// Whether it has learned enough to vote, or to take the next step of a first start.
    fn judge_recovery(&mut self, now: Now) {
        let (m, me, clauses) = (&self.protocol, self.me.name.as_str(), self.clauses);
        let Some(recovery) = &m.recovery else { return };
        match &m.state {
            RecoveredState::Empty => match recovery.recovered(me, &m.flagged(), clauses) {
                Some((epoch, config)) => self.recovered(now, epoch, config),
                None if self.may_begin_founding(recovery) => self.begin_founding(now),
                None => {}
            },
            RecoveredState::Founding(own) => {
                if let Some(config) = clauses.founded(recovery.founded(me, own), own).cloned() {
                    self.recovered(now, self.epoch, config);
                }
            }
            RecoveredState::Founded(_) => {}
        }
    }

    /// It may vote from now on.
    fn recovered(&mut self, now: Now, epoch: Epoch, config: VoterConfig) {
        self.disarm(Timer::Recover);
        self.protocol.recovery = None;
        self.use_state(RecoveredState::Founded(config));
        if epoch > self.epoch {
            self.lose_leader(Reason::Superseded);
            self.set_epoch(epoch);
        }
        self.note(Notification::Recovered(self.epoch));
        if self.leader.is_none() && !matches!(self.phase, Phase::Asking(_) | Phase::Leaving) {
            self.start_campaign(now);
        } else {
            self.answer_postponed(now);
        }
    }
}
