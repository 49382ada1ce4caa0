//! Heartbeats: the rounds of a leader, and their acknowledgements.

use super::heartbeat_recipients::{LastRecipients, Recipients};
use super::{Core, Heard, Protocol};
use crate::election::{
    Body, DELAY_MAX, Incarnation, MembershipVersion, Moment, Now, ProcessId, State, Timer,
};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// How many rounds a leader remembers for measuring round trips, however old. Older ones than [`DELAY_MAX`]
/// teach no longer delay, and each that is kept is a further state for the model.
const SENT_MIN: usize = 16;

/// The most that it remembers: those of more than [`DELAY_MAX`], 10 ms apart.
const SENT_MAX: usize = 64;

/// No round comes sooner after another one.
const ROUNDS_APART: Duration = Duration::from_millis(20);

/// The heartbeats of this incarnation.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Heartbeats {
    /// The number of the latest.
    pub(crate) sequence: u32,
    /// The latest ones, newest last, for their round trips.
    pub(crate) sent: VecDeque<Sent>,
    /// When the next one is due.
    due: Option<Moment>,
    pub(super) recipients: LastRecipients,
    /// For each member, the number of the heartbeat after which the leader sent it the list. At most one more
    /// than there may be members.
    pub(crate) lists: BTreeMap<ProcessId, u32>,
}

/// One round of heartbeats.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Sent {
    sequence: u32,
    at: Moment,
    /// How many acknowledgements it needs that have not come.
    missing: usize,
}

impl Heartbeats {
    /// Different incarnations count with different numbers. So an acknowledgement of a heartbeat of one never
    /// counts for another. Half of all numbers are left to count with, for eight years at eight a second.
    pub(super) fn of(incarnation: Incarnation) -> Heartbeats {
        let sequence = (incarnation.0 >> 33) as u32;
        Heartbeats {
            sequence,
            sent: VecDeque::new(),
            due: None,
            recipients: LastRecipients::default(),
            lists: BTreeMap::new(),
        }
    }

    /// A new term begins: what was sent before counts no more.
    pub(super) fn begin_term(&mut self) {
        self.sent.clear();
        self.lists.clear();
        self.due = None;
    }

    /// A round leaves, and needs as many acknowledgements as are missing.
    fn remember(&mut self, at: Moment, missing: usize) {
        let most = |first: &Sent| if at.since(first.at) > DELAY_MAX { SENT_MIN } else { SENT_MAX };
        while self.sent.front().is_some_and(|first| self.sent.len() >= most(first)) {
            self.sent.pop_front();
        }
        self.sent.push_back(Sent { sequence: self.sequence, at, missing });
    }

    /// When the first of the latest rounds left that too few have acknowledged.
    fn unacknowledged_since(&self) -> Option<Moment> {
        self.sent.iter().rev().take_while(|sent| sent.missing > 0).last().map(|sent| sent.at)
    }
}

impl<P: Protocol> Core<P> {
    /// The leader's round of heartbeats, and its look at members that have been silent.
    pub(crate) fn on_heartbeat_timer(&mut self, now: Now) {
        if !self.phase.leading() {
            return;
        }
        self.fail_silent(now);
        self.resign_if_unhealthy(now);
        if !self.phase.leading() {
            return;
        }
        self.tell_priorities();
        let unacknowledged = self.heartbeats.unacknowledged_since();
        self.adaptation.await_answers(unacknowledged.map_or(Duration::ZERO, |since| now.at.since(since)));
        self.heartbeats.sequence = self.heartbeats.sequence.wrapping_add(1);
        P::send_heartbeats(self, now);
    }

    /// A leader's turn begins: how late its next round is. This comes before the end of a term that the
    /// lateness costs. What is much later is that of a process that was stopped, and nothing to learn from. A
    /// follower's first answer begins what a leader learns.
    pub(crate) fn learn_of_lateness(&mut self, now: Moment) {
        let late = self.heartbeats.due.map(|due| now.since(due));
        if let Some(late) = late.filter(|late| *late <= DELAY_MAX && self.phase.leading())
            && self.adaptation.worst(now).is_some()
        {
            self.adaptation.observe(now, late);
        }
    }

    /// Sends a round of heartbeats, which names how long this leader may be silent. Silent members that are
    /// still connected get it too: that is how a paused member hears of this leader.
    pub(crate) fn send_round(&mut self, now: Now, lease: Duration, heartbeat: impl Fn(Duration) -> Body) {
        self.former_pace = self.pace.replace(lease);
        let longest = P::longest_lease(self).unwrap_or(self.settings.failure_timeout);
        let Recipients { often, seldom } = self.recipients(now.at, lease < longest);
        let alive = |id: &&ProcessId| self.members.get(**id).is_some_and(|m| m.state == State::Alive);
        let answering = often.iter().filter(alive).count();
        // What the acknowledgements of the round are compared with.
        let missing = if self.adaptation.is_on() { P::answers_needed(self, answering) } else { 0 };
        self.heartbeats.remember(now.at, missing);
        self.send_each(often, &heartbeat(lease));
        self.send_each(seldom, &heartbeat(longest));
        let interval = self.heartbeat_interval(lease);
        self.heartbeats.due = self.adaptation.is_on().then(|| now.at.plus(interval));
        self.arm(Timer::Heartbeat, interval);
        self.watch_for_better(now);
    }

    /// The leader's side of the acknowledgement: the round trip, and the list for a follower with another
    /// list.
    pub(crate) fn on_heartbeat_ack(&mut self, by: Heard, sequence: u32, held: MembershipVersion) {
        let Heard { now, from, epoch } = by;
        if !self.phase.leading() {
            return;
        }
        if epoch < self.epoch {
            return self.send_coordinator(from);
        }
        if epoch > self.epoch {
            return self.query_leader(from);
        }
        let sent = self.heartbeats.sent.iter_mut().rev().find(|sent| sent.sequence == sequence);
        if let (Some(sent), Some(member)) = (sent, self.members.get_mut(from)) {
            let delay = now.at.since(sent.at);
            member.round_trip = Some(delay);
            // A short lease is for those that are told often.
            let counts = self.heartbeats.recipients.are_often(from);
            sent.missing = sent.missing.saturating_sub(usize::from(counts));
            // A member that had failed was stopped or away, which says nothing of the next delay.
            if counts && member.alive_since <= sent.at {
                self.adaptation.observe(now.at, delay);
            }
        }
        // A resumed follower acknowledges many heartbeats at once, with the list that it had before. One copy
        // of the list is enough, until it acknowledges a heartbeat that was sent after that.
        let sent_since = self.heartbeats.lists.get(&from).is_some_and(|at| sequence <= *at);
        if held != self.members.version && !sent_since {
            self.send_list(from);
        }
    }

    /// Between two rounds of heartbeats that ask for this lease: what the flags say, or less for a lease that
    /// is not theirs.
    pub(crate) fn heartbeat_interval(&self, asked: Duration) -> Duration {
        if asked == self.settings.failure_timeout {
            return self.settings.heartbeat;
        }
        self.settings.heartbeat.min(self.adaptation.interval(self.last_turn.at, asked))
    }

    /// An application asks for what only a longer lease can give. The next round asks for that lease, and
    /// comes at once; applications that ask for more each time bring no storm of rounds.
    pub(super) fn lengthen_leases(&mut self, now: Now, lasts: Duration) {
        self.adaptation.demand(now.at, lasts);
        if self.phase.leading() && self.pace.is_some_and(|lease| P::lease_asked(self).0 > lease) {
            let last = self.heartbeats.sent.back().map_or(now.at, |sent| sent.at);
            self.arm(Timer::Heartbeat, last.plus(ROUNDS_APART).since(now.at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment(Duration::from_millis(ms))
    }

    #[test]
    fn a_leader_remembers_the_rounds_that_may_still_teach_it_something_and_few_others() {
        for apart in [10, 20, 50, 500] {
            let mut heartbeats = Heartbeats::of(Incarnation(0));
            let mut most = 0;
            for round in 0..100 {
                heartbeats.remember(at(round * apart), 0);
                most = most.max(heartbeats.sent.len());
            }
            let (rounds, since) = (heartbeats.sent.len(), at(99 * apart).since(heartbeats.sent[0].at));
            assert!(since >= DELAY_MAX, "{apart} ms apart: {since:?}");
            assert!(most == rounds && rounds <= SENT_MAX, "{apart} ms apart: {most:?}");
            assert_eq!(rounds == SENT_MIN, apart >= 40, "{apart} ms apart: {rounds}");
        }
    }

    #[test]
    fn many_rounds_are_forgotten_once_they_are_further_apart() {
        let mut heartbeats = Heartbeats::of(Incarnation(0));
        (0..100).for_each(|round| heartbeats.remember(at(round * 10), 0));
        (1..=SENT_MIN as u64).for_each(|round| heartbeats.remember(at(1_000 + round * 500), 0));
        assert_eq!(heartbeats.sent.len(), SENT_MIN);
    }
}
