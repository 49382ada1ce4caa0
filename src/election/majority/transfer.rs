//! Leadership transfer: clause 28. A leader that goes on resigns only once its successor has won a pre-vote.

use super::Majority;
use crate::election::clauses::Clauses;
use crate::election::core::{Core, Heard, Resignation};
use crate::election::{Body, Now, ProcessId, Stage, Timer};

impl Core<Majority> {
    /// Another process is to take over: the leader asks it whether a majority would vote for it.
    pub(super) fn propose_transfer(&mut self, now: Now, to: ProcessId) {
        if !self.clauses.asks_successor() {
            return self.resign(now, Resignation::Transfer(Some(to)));
        }
        let wait = self.answer_timeout().saturating_mul(2);
        let Some(leading) = &mut self.protocol.leading else { return };
        if leading.proposed.replace(to) == Some(to) {
            // The successor has not answered.
            leading.proposed = None;
            return self.transfer_refused(now);
        }
        self.send(to, Body::ProposeTransfer);
        // Each heartbeat arms this timer anew, for no earlier than this.
        self.transfers.not_before = self.transfers.not_before.max(now.at.plus(wait));
        self.arm(Timer::Preempt, wait);
    }

    /// The leader asks: this process asks for pre-votes in which the promise to that leader does not count.
    pub(super) fn on_propose_transfer(&mut self, by: Heard) {
        let Heard { now, from, epoch } = by;
        let busy = self.protocol.campaign.is_some() || self.protocol.grace_until.is_some();
        if !self.follows(from, epoch) || busy || !self.may_campaign() {
            return self.send(from, Body::TransferReady { majority: false });
        }
        self.campaign(now, Stage::PreVote, Some(from));
    }

    /// Whether the successor has a majority. If so the leader stops, durably, before its resignation leaves.
    pub(super) fn on_transfer_ready(&mut self, by: Heard, majority: bool) {
        let Some(leading) = &mut self.protocol.leading else { return };
        if by.epoch == self.epoch && leading.proposed.take_if(|proposed| *proposed == by.from).is_some() {
            if majority {
                self.resign(by.now, Resignation::Transfer(Some(by.from)));
            } else {
                self.transfer_refused(by.now);
            }
        }
    }

    /// An operation asks another member. Without one the next attempt comes later, with doubling delay.
    fn transfer_refused(&mut self, now: Now) {
        if self.holds.resigning.is_some() {
            // Its applications have stopped already.
            return self.resign(now, Resignation::Transfer(None));
        }
        if self.pending.is_some() {
            return self.ask_next_successor(now);
        }
        self.transfers.under_way = true;
        self.transfer_failed(now);
        self.watch_for_better(now);
    }
}
