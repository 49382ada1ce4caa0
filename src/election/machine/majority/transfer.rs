//! Leadership transfer: clause 28. A leader that goes on resigns only once its successor has won a pre-vote.

use super::{Heard, Machine};
use crate::election::machine::{Mutation, Phase};
use crate::election::{Body, Member, Now, ProcessId, Stage, Timer};

impl Machine {
    /// Whether a member may lead after this process: in `majority` a voter.
    pub(in crate::election::machine) fn may_succeed(&self, member: &Member) -> bool {
        !self.majority.votes()
            || self.majority.config().is_some_and(|config| config.voters.contains(&member.peer.name))
    }

    /// A better process is to take over: it is asked whether a majority would vote for it.
    pub(in crate::election::machine) fn propose_transfer(&mut self, now: Now, to: ProcessId) {
        if self.mutant(Mutation::TransferUnprepared) {
            return self.hand_over(to);
        }
        let wait = self.settings.answer_timeout.saturating_mul(2);
        let Some(term) = &mut self.majority.term else { return };
        if term.proposed.take().is_some() {
            // It has not answered.
            return self.transfer_refused(now);
        }
        term.proposed = Some(to);
        self.send(to, Body::ProposeTransfer);
        self.arm(Timer::Preempt, wait);
    }

    /// The leader asks: this process asks for pre-votes in which the promise to that leader does not count.
    pub(super) fn on_propose_transfer(&mut self, by: Heard) {
        let Heard { now, from, epoch } = by;
        let follows = self.phase == Phase::Following && self.leads(from) && self.epoch == epoch;
        let busy = self.majority.campaign.is_some() || self.majority.grace_until.is_some();
        if !follows || busy || !self.may_campaign() {
            return self.send(from, Body::TransferReady { majority: false });
        }
        self.campaign(now, Stage::PreVote, Some(from));
    }

    /// Whether the successor has a majority. If so the leader stops, durably, before its resignation leaves.
    pub(super) fn on_transfer_ready(&mut self, by: Heard, majority: bool) {
        let Some(term) = &mut self.majority.term else { return };
        if by.epoch == self.epoch && term.proposed.take_if(|proposed| *proposed == by.from).is_some() {
            if majority { self.hand_over(by.from) } else { self.transfer_refused(by.now) }
        }
    }

    /// The next attempt comes later, with doubling delay.
    fn transfer_refused(&mut self, now: Now) {
        self.handing_over = true;
        self.handover_failed(now);
        self.watch_for_better(now);
    }
}
