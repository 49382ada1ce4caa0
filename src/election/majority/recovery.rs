//! A voter without a record: recovery (clauses 10 to 12) and the first start (clauses 22, 23).

use super::Majority;
use super::recovery_answers::{ROUNDS_A_LEASE, ROUNDS_APART, Recovery};
use crate::election::clauses::Clauses;
use crate::election::core::{Core, Heard, Phase};
use crate::election::{
    Body, Epoch, Flags, Incarnation, Member, Notification, Now, ProcessId, Reason, RecoveredState, Timer,
    VoterConfig,
};

impl Majority {
    /// The configuration that the flags name: of a first start.
    pub(super) fn flagged(&self) -> VoterConfig {
        VoterConfig::first(self.target.clone(), self.given.lease_ms)
    }
}

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
    fn ask_one_to_recover(&mut self, id: ProcessId) {
        if let Some(recovery) = &self.protocol.recovery {
            let (round, incarnation) = (recovery.round, self.me.incarnation);
            self.send(id, Body::Recover { round, incarnation });
        }
    }

    /// Tells another what this process knows from its record.
    pub(super) fn on_recover(&mut self, by: Heard, round: u32, incarnation: Incarnation) {
        let (state, flags) = (self.protocol.state.clone(), self.protocol.given);
        self.send(by.from, Body::Recovered { round, incarnation, state, flags });
        self.ask_back(by.from);
        self.name_recovering(by);
    }

    /// A process asks all others anew once it takes the first step of a first start. One that has taken it
    /// before, and waits for the others, need not wait for its own next round to hear of that. It asks back
    /// those alone that have not said yet that they have taken it, and each once in a round of its own. So
    /// two do not ask each other without end, also where their answers come too late to count.
    fn ask_back(&mut self, asker: ProcessId) {
        let founds = matches!(self.protocol.state, RecoveredState::Founding(_));
        let name = self.members.get(asker).map(|member| member.peer.name.as_str());
        let (Some(name), Some(recovery)) = (name, &mut self.protocol.recovery) else { return };
        if founds && recovery.may_ask_back(name) {
            self.ask_one_to_recover(asker);
        }
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
            RecoveredState::Empty => {
                if let Some((epoch, config)) = recovery.recovered(me, &m.flagged(), clauses) {
                    return self.recovered(now, epoch, config);
                }
                let connected = self.members.iter().filter(|m| m.linked).map(|m| m.peer.name.as_str());
                let first_start = recovery.is_first_start(me, &m.flagged(), m.given, connected, clauses);
                // A process whose list names it alone waits for the peers that discovery names, as long as at
                // any start.
                let asked = self.dial_targets.discovery_complete
                    && (m.target.len() > 1 || !matches!(self.phase, Phase::Asking(_)));
                if first_start && asked {
                    self.begin_founding(now);
                }
            }
            RecoveredState::Founding(own) => {
                if let Some(config) = clauses.founded(recovery.founded(me, own), own).cloned() {
                    self.recovered(now, self.epoch, config);
                }
            }
            RecoveredState::Founded(_) => {}
        }
    }

    /// The first of two durable steps: it has asked all, and has not voted (clause 22).
    fn begin_founding(&mut self, now: Now) {
        let m = &mut self.protocol;
        if self.settings.may_found(m.target.len()) {
            let config = m.flagged();
            self.use_state(RecoveredState::Founding(config));
            // The others may have taken this step already.
            return self.ask_to_recover(now);
        }
        let said = m.recovery.as_mut().is_none_or(|recovery| std::mem::replace(&mut recovery.refused, true));
        if !said {
            self.note(Notification::FoundingRefused(self.settings.founding));
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
        }
    }
}
