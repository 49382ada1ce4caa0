//! Rule 5: which announcements of a leader a process follows.

use super::Classic;
use crate::election::core::{Announcement, Asking, Core, Heard};
use crate::election::{Body, Entry, Incumbent, Moment, Now, Pace, Preempt, Rank, Reason, State};

impl Core<Classic> {
    /// Rule 5: a process announces that it leads. The sender becomes the leader, unless the message is stale,
    /// or this process outranks it and bullies it with a higher epoch.
    pub(super) fn on_coordinator(&mut self, by: Heard, announcement: Announcement) {
        let Heard { now, from, epoch } = by;
        let Some(sender) = self.members.get(from).map(|m| m.peer.clone()) else {
            return;
        };
        if self.last_resignation == Some((from, epoch)) {
            // The sender sent this message before its resignation, which was faster. No process leads a
            // resigned epoch again.
            return;
        }
        if epoch < self.epoch || !sender.rank().eligible() {
            return self.answer_stale(from);
        }
        if epoch == self.epoch {
            match self.leader.as_ref().map(|l| l.peer.rank()) {
                Some(known) if known.id == from => return self.follow(now, sender, epoch, announcement),
                // Two leaders of one epoch, which classic cannot exclude: rank decides for all processes
                // alike.
                Some(known) if known.id != self.me.id && known > sender.rank() => {
                    return self.send_leader_info(from);
                }
                _ => {}
            }
        }
        if self.bullies(sender.rank()) {
            if self.phase.in_election() {
                // Its own election goes on, and ends in a higher epoch than this one. A new election at each
                // announcement would never end.
                return;
            }
            let next = self.seen.next();
            return if self.phase.leading() && !self.strict_paper() {
                self.become_leader(now, next)
            } else {
                self.start_election(now)
            };
        }
        if self.phase.leading() && epoch == self.epoch {
            // Two leaders of one epoch: the leader that goes on must hear of the other, to take a new epoch.
            self.send_coordinator(from);
        }
        self.follow(now, sender, epoch, announcement);
    }

    /// A follower's side of the heartbeat. A heartbeat counts as an announcement, so a lost Coordinator does
    /// no harm.
    pub(super) fn on_heartbeat(&mut self, by: Heard, sequence: u32, pace: Pace) {
        self.on_coordinator(by, Announcement::Heartbeat(pace));
        if self.follows(by.from, by.epoch) {
            self.send(by.from, Body::HeartbeatAck { sequence, membership: self.members.version_held() });
        }
    }

    /// A leader hears of a newer epoch. It heeds that once between two heartbeats: the other process repeats
    /// itself, and each announcement costs all members a few messages. If the epoch has no leader, this
    /// leader announces itself above it. Otherwise two leaders have met, and the higher-ranked one goes on,
    /// in a new epoch.
    pub(super) fn on_higher_epoch(&mut self, now: Now, leader: Option<Incumbent>) {
        let lately = |at: Moment| now.at.since(at) < self.settings.heartbeat;
        if self.protocol.raised.is_some_and(lately) {
            return;
        }
        self.protocol.raised = Some(now.at);
        match leader.map(|l| l.peer).filter(|p| p.id != self.me.id) {
            Some(peer) if !self.rank().outranks(peer.rank()) => {
                self.learn(now, Entry { peer: peer.clone(), state: State::Alive });
                self.lose_leader(Reason::Superseded);
                self.ask_all(Asking::default());
                self.query_leader(peer.id);
            }
            _ => self.become_leader(now, self.seen.next()),
        }
    }

    /// Rule 5's exception: this process outranks an announced leader, or one that a peer names, and takes
    /// over by force. So it does once it outranks the leader that it follows. Apart from `--preempt always`,
    /// only a leader does that: others let an incumbent be.
    pub(super) fn bullies(&self, other: Rank) -> bool {
        let contends = self.settings.preempt == Preempt::Always || self.phase.leading();
        contends && self.rank().outranks(other)
    }
}
