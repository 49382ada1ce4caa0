//! `--safety majority`: at every instant at most one process answers that it leads (design, "Majority mode").
//!
//! The eleven rules, and where they are:
//!
//! | rule | what | file |
//! | --- | --- | --- |
//! | 1 | who contests | `contest` |
//! | 2 | sounding before claiming | `contest` |
//! | 3 | the claim, its lease, its withdrawal | `contest` |
//! | 4 | the voter's verdict, its grant, its promise | `voter` |
//! | 5 | the lease and its renewal | `lease` |
//! | 6 | the end of a lease | `lease` |
//! | 7 | a restart with its record: caution | `voter` |
//! | 8 | a restart without its record: recovery | `recovery` |
//! | 9 | the voter view and its changes | `view_change` |
//! | 10 | one live process a voter | [`Machine::voter`], and the transport |
//! | 11 | handover | `handover` |
//!
//! Everything else is shared with `classic`: members, discovery, links, the failure detector, asking first. What
//! differs hangs on [`Machine::majority`](super::Machine): nobody leads but through [`Machine::win`].

mod contest;
mod handover;
mod lease;
mod recovery;
#[cfg(test)]
mod tests;
mod view_change;
mod voter;

use super::{Machine, Phase};
use crate::election::voters::{fingerprint, lease_ms};
use crate::election::{
    Body, Epoch, Member, Moment, Note, Now, Process, ProcessId, Record, Safety, Settings, State, VoteRecord,
    VoterView, Voting, Waits, counted,
};
use contest::{Contest, Vote};
use lease::Term;
use recovery::Recovery;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use voter::{Asked, Pending, Promise};

/// What a process in `majority` keeps beside what every process keeps.
#[derive(Clone, Hash, Debug)]
pub(super) struct Majority {
    /// The `--voters` of this process, and what stands for them in messages.
    target: BTreeSet<String>,
    fingerprint: u64,
    /// The lease that this process asks for, and what it counts on of it: less the drift.
    lease: Duration,
    lease_counted: Duration,
    // Durable:
    /// Who votes; none until a voter without a record has recovered.
    view: Option<VoterView>,
    /// Whom this epoch was granted to, or who was heard leading in it.
    granted_to: Option<Process>,
    /// The longest lease that was ever promised.
    lease_longest_ms: u32,
    // Volatile:
    promise: Option<Promise>,
    /// Until when promises may be forgotten that a former life made.
    cautious_until: Option<Moment>,
    /// Until when this process outranks nobody.
    yields_until: Moment,
    /// The successor named in a farewell, until when.
    favoured: Option<(ProcessId, Moment)>,
    /// Up to which epoch each voter has withdrawn its claims. At most one entry a voter.
    withdrawn: BTreeMap<String, (Process, Epoch)>,
    /// Who was refused because of a promise, and hears when that is freed. At most one entry a voter.
    pending: BTreeMap<ProcessId, Pending>,
    /// What this process has asked the voters.
    contest: Option<Contest>,
    /// The incumbent that has asked this process to take over, by its epoch, once a majority would grant, and until when
    /// that can be counted on.
    prepared: Option<(Epoch, Moment)>,
    recovery: Option<Recovery>,
    /// While it leads.
    term: Option<Term>,
    /// When the leader that it follows was last heard.
    leader_heard: Moment,
    /// The lease of every member that has told it.
    leases_ms: BTreeMap<ProcessId, u32>,
    /// Whose `--voters` are other ones, so that it is said once.
    differs: BTreeSet<ProcessId>,
}

impl Majority {
    /// What the settings ask for; none in `classic`. A claim never survives its process: of the record's vote only
    /// what binds this voter is believed.
    pub(super) fn new(settings: &Settings, record: Option<&Record>) -> Option<Majority> {
        let Safety::Majority { voters } = &settings.safety else { return None };
        assert!(!voters.is_empty(), "config checks this");
        let vote = record.and_then(|record| record.vote.clone());
        let lease = settings.failure_timeout;
        let (view, granted_to, lease_longest_ms) = match vote {
            Some(VoteRecord { view, granted_to, lease_longest_ms, .. }) => {
                (Some(view), granted_to, lease_longest_ms)
            }
            None => (None, None, 0),
        };
        Some(Majority {
            fingerprint: fingerprint(voters),
            target: voters.clone(),
            lease,
            lease_counted: counted(lease),
            view,
            granted_to,
            lease_longest_ms,
            promise: None,
            cautious_until: None,
            yields_until: Moment::default(),
            favoured: None,
            withdrawn: BTreeMap::new(),
            pending: BTreeMap::new(),
            contest: None,
            prepared: None,
            recovery: None,
            term: None,
            leader_heard: Moment::default(),
            leases_ms: BTreeMap::new(),
            differs: BTreeSet::new(),
        })
    }

    /// The lease, as messages have it.
    fn lease_ms(&self) -> u32 {
        lease_ms(self.lease)
    }
}

/// A lease that a message names.
fn lease_of(ms: u32) -> Duration {
    Duration::from_millis(u64::from(ms))
}

impl Machine {
    /// Begins a life as a voter: with its record it is cautious (rule 7), without one it recovers (rule 8).
    pub(super) fn start_majority(&mut self, now: Now) {
        let Some(m) = &self.majority else { return };
        if m.view.is_some() {
            self.be_cautious(now, now.at);
        } else {
            self.recover(now);
        }
    }

    /// Takes a message that only `majority` has.
    pub(super) fn majority_message(&mut self, now: Now, from: ProcessId, epoch: Epoch, body: Body) {
        if !self.believable(&body) {
            return;
        }
        match body {
            Body::Contest { question, ballot, freed, view } => {
                self.contested(now, from, &Asked { question, ballot, freed, view });
            }
            Body::Vote { question, epoch: asked, incarnation, asked_at, verdict, view, lease_ms } => {
                self.learn_lease(from, lease_ms);
                let vote = Vote { voter: from, verdict, view, lease_ms, at: now.at };
                self.voted(now, question, (asked, incarnation, asked_at), vote);
            }
            Body::Withdraw { epoch, incarnation } => self.withdrawn(now, from, epoch, incarnation),
            Body::Renew { sequence, membership: _, lease_ms, view } => {
                self.renew(now, from, epoch, sequence, lease_ms, view);
            }
            Body::Renewed { sequence, membership, promised, view, target, lease_ms } => {
                self.learn_lease(from, lease_ms);
                self.learn_target(from, target);
                self.acknowledged(now, from, epoch, sequence, membership);
                self.renewed(now, from, epoch, sequence, promised.then_some(view), view, target);
            }
            Body::Voters { view } => self.learn_view(from, epoch, view),
            Body::Recover { round, incarnation } => self.asked_to_recover(from, round, incarnation),
            Body::Recovered { round, incarnation, recollection, target } => {
                self.recovered_answer(now, from, epoch, round, incarnation, recollection, target);
            }
            Body::Prepare => self.prepare(now, from, epoch),
            Body::Prepared { majority } => self.prepared(now, from, epoch, majority),
            _ => {}
        }
    }

    /// Whether no epoch in a message is far ahead of all that was seen: one damaged message must not use up the numbers.
    /// That of the message itself was looked at before.
    fn believable(&self, body: &Body) -> bool {
        let epoch = match body {
            Body::Contest { ballot, view, .. } => ballot.epoch.max(view.stamp.epoch),
            Body::Vote { view, .. } | Body::Voters { view } => view.stamp.epoch,
            Body::Withdraw { epoch, .. } => *epoch,
            Body::Recovered { recollection: Some(recollection), .. } => recollection.view.stamp.epoch,
            _ => Epoch::ZERO,
        };
        epoch.plausible(self.seen)
    }

    /// This process, as a grant names it.
    fn myself(&self) -> Process {
        Process { id: self.me.id, incarnation: self.me.incarnation }
    }

    /// The life of a member that is known here.
    fn process(&self, id: ProcessId) -> Option<Process> {
        let peer = if id == self.me.id { &self.me } else { &self.roster.get(id)?.peer };
        Some(Process { id, incarnation: peer.incarnation })
    }

    /// The name under which a member votes. Of two live processes of one name the one known longer has it (rule 10):
    /// the other is refused, and the log says so.
    fn voter(&self, now: Now, id: ProcessId) -> Option<&str> {
        if id == self.me.id {
            return Some(&self.me.name);
        }
        let member = self.roster.get(id)?;
        let name = &member.peer.name;
        let alive = |m: &Member| {
            let heard = m.last_heard.is_some_and(|at| now.at.since(at) <= self.settings.failure_timeout);
            m.linked && m.state == State::Alive && heard
        };
        let taken = self.roster.iter().any(|m| {
            m.peer.id != id && m.peer.name == *name && m.alive_since < member.alive_since && alive(m)
        });
        (*name != self.me.name && !taken).then_some(name)
    }

    /// The members that are voters of a view, in the order of their ids.
    fn voter_ids(&self, view: &VoterView) -> Vec<ProcessId> {
        self.ids(|m| view.voters.contains(&m.peer.name))
    }

    /// Sends to the voters of this process's view.
    fn send_voters(&mut self, body: &Body) {
        let Some(view) = self.majority.as_ref().and_then(|m| m.view.as_ref()) else { return };
        let voters = self.voter_ids(view);
        self.send_each(voters, body);
    }

    /// Takes down which lease a member was given, and says once when that is not this process's.
    fn learn_lease(&mut self, from: ProcessId, lease_ms: u32) {
        let Some(peer) = self.roster.get(from).map(|m| m.peer.clone()) else { return };
        let Some(m) = &mut self.majority else { return };
        let known = m.leases_ms.insert(from, lease_ms);
        if lease_ms != m.lease_ms() && known != Some(lease_ms) {
            self.note(Note::LeaseDiffers { peer, lease_ms });
        }
    }

    /// Takes down whether a member was given the same `--voters`, and says once when it was not.
    fn learn_target(&mut self, from: ProcessId, target: u64) {
        let Some(peer) = self.roster.get(from).map(|m| m.peer.clone()) else { return };
        let Some(m) = &mut self.majority else { return };
        if target == m.fingerprint {
            m.differs.remove(&from);
        } else if m.differs.insert(from) {
            self.note(Note::VotersDiffer(peer));
        }
    }

    /// Forgets what is kept of a member that is gone; what hangs on its name goes unless another member has it.
    pub(super) fn forget_voter(&mut self, id: ProcessId, name: &str) {
        let another = self.roster.iter().any(|member| member.peer.id != id && member.peer.name == name);
        let Some(m) = &mut self.majority else { return };
        m.leases_ms.remove(&id);
        m.differs.remove(&id);
        m.pending.remove(&id);
        if another {
            return;
        }
        m.withdrawn.remove(name);
        if let Some(term) = &mut m.term {
            term.forget(name);
        }
        if let Some(recovery) = &mut m.recovery {
            recovery.forget(name);
        }
    }

    /// A process says that it leads, by an announcement or a heartbeat. An epoch at or above its own is followed
    /// (rule 5). Nobody bullies: leaders are made by voters.
    pub(super) fn announced(&mut self, now: Now, from: ProcessId, epoch: Epoch, elected_at_ms: Option<u64>) {
        let Some(peer) = self.roster.get(from).map(|m| m.peer.clone()) else { return };
        if self.resigned == Some((from, epoch)) {
            // A message that was slower than the farewell: a resigned epoch is never led again (rule 6).
            return;
        }
        if epoch < self.epoch && !self.mutant(super::Mutation::StaleLeaderFollowed) {
            return self.answer_stale(from);
        }
        if epoch == self.epoch && self.phase.leading() {
            // No two processes lead in one epoch (invariant 4): whoever says so is not one of these voters.
            return;
        }
        let voter = self.voter(now, from).map(str::to_owned);
        let Some(m) = &mut self.majority else { return };
        let outside =
            m.view.as_ref().is_some_and(|view| !voter.is_some_and(|name| view.voters.contains(&name)));
        if outside || !peer.rank().eligible() {
            return;
        }
        let epoch = epoch.max(self.epoch);
        let leader = Process { id: from, incarnation: peer.incarnation };
        if epoch > self.epoch || m.granted_to != Some(leader) {
            m.granted_to = Some(leader);
            self.dirty = true;
        }
        self.follow(now, peer, epoch, elected_at_ms);
        if let Some(m) = &mut self.majority {
            m.leader_heard = now.at;
        }
    }

    /// Whether this process may vote and lead at all: it has a view, and is in it.
    fn votes(&self) -> bool {
        let view = self.majority.as_ref().and_then(|m| m.view.as_ref());
        view.is_some_and(|view| view.voters.contains(&self.me.name))
    }

    /// How long a leader may be silent: the failure timeout, or its own lease where that is longer, since it may space its
    /// heartbeats by that.
    pub(super) fn silence_of(&self, leader: ProcessId) -> Duration {
        let lease = self.majority.as_ref().and_then(|m| m.leases_ms.get(&leader)).copied();
        self.settings.failure_timeout.max(lease_of(lease.unwrap_or_default()))
    }

    /// Until when what it says about the leader holds: as leader its lease, as follower how long that may be silent.
    pub(super) fn valid_until(&self) -> Option<Moment> {
        let m = self.majority.as_ref()?;
        match self.phase {
            Phase::Leading(_) => m.term.as_ref().map(|term| term.lease_until),
            Phase::Following => {
                let leader = self.leader.as_ref().map(|leader| leader.peer.id)?;
                Some(m.leader_heard.plus(self.silence_of(leader)))
            }
            _ => None,
        }
    }

    /// What `majority` adds to the view.
    pub(super) fn voting(&self) -> Option<Voting> {
        let m = self.majority.as_ref()?;
        let waits = match (&m.view, m.cautious_until) {
            (None, _) => Some(self.recovery_waits()),
            (Some(_), Some(until)) => Some(Waits::Caution { until }),
            (Some(_), None) => None,
        };
        let mut leases_ms = m.leases_ms.clone();
        leases_ms.insert(self.me.id, m.lease_ms());
        Some(Voting { view: m.view.clone(), waits, leases_ms })
    }

    /// The vote's part of the durable record.
    pub(super) fn vote_record(&self) -> Option<VoteRecord> {
        let m = self.majority.as_ref()?;
        let view = m.view.clone()?;
        Some(VoteRecord {
            name: self.me.name.clone(),
            granted_to: m.granted_to,
            view,
            lease_longest_ms: m.lease_longest_ms,
        })
    }

    /// Whether a leader has what it takes: in `majority` a lease.
    pub(super) fn leads_by_majority(&self) -> bool {
        self.majority.as_ref().is_none_or(|m| m.term.is_some())
    }

    /// What a leader's end frees: its own promise to itself. It has stopped, so nothing is left to be kept.
    pub(super) fn stopped_leading(&mut self) {
        let myself = self.myself();
        if let Some(m) = &mut self.majority {
            m.term = None;
            m.promise = m.promise.take().filter(|promise| promise.to != myself);
        }
    }
}
