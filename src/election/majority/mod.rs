//! `--safety majority`: at every instant at most one process answers that it leads.
//!
//! The clauses of docs/safety/protocol.md, and where they are:
//!
//! | clauses | what | file |
//! | --- | --- | --- |
//! | 1 to 9 | the voter: its vote, its promise, its restart grace | `voter` |
//! | 10 to 12 | a voter without a record: recovery | `recovery`, `recovery_answers` |
//! | 13 to 15, 24, 25, 27 | the candidate: pre-vote, vote, the candidacy rule | `candidate` |
//! | 1, 16 | the leader: its lease and its rounds | `lease` |
//! | 17 | no leadership outlives a resignation or a process | this file |
//! | 18 to 21, 26 | the configuration | `reconfiguration`, `config_step`, `types/voter_config.rs` |
//! | 22, 23 | the first start | `founding`, `recovery` |
//! | 28 | leadership transfer | `transfer` |
//! | 29 | whose words count | this file, `lease`, `reconfiguration`, `recovery_answers` |
//! | 30 | which processes are candidates | `core/eligibility.rs` |
//!
//! A process leads by `Core::win` in `candidate` alone.

mod campaign;
mod candidate;
mod config_step;
mod contenders;
mod founding;
mod leader_state;
mod lease;
mod reconfiguration;
mod recovery;
mod recovery_answers;
mod status;
mod tally;
#[cfg(test)]
mod tests;
mod transfer;
mod voter;

use crate::election::clauses::Clauses;
use crate::election::core::{Announcement, Core, Heard, Protocol};
use crate::election::message::Protocols;
use crate::election::types::time::milliseconds;
use crate::election::types::voter_config::fingerprint;
use crate::election::{
    Ballot, Body, Epoch, Flags, Incarnation, Incumbent, Instance, LeaseReason, Member, Moment, Notification,
    Now, Pace, Peer, ProcessId, Record, RecoveredState, Settings, Timer, VoteRecord, VoterConfig, Voting,
};
use campaign::Campaign;
use contenders::Contenders;
use leader_state::LeaderState;
use recovery_answers::Recovery;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use voter::{Asked, Promise};

/// What a process in `majority` keeps beside what every process keeps.
#[derive(Clone, Hash, Debug, Default)]
pub(super) struct Majority {
    /// What this process was started with: `--voters`, and what stands for them and the lease.
    target: BTreeSet<String>,
    given: Flags,
    /// The lease that its requests and rounds ask for, in milliseconds; at most the configuration's.
    asks_ms: u32,
    /// What it knows from its record. All else is volatile.
    state: RecoveredState,
    promise: Option<Promise>,
    /// The latest vote of this incarnation, which it repeats to the same process (clause 3).
    voted: Option<(Epoch, Instance)>,
    /// The latest request that this voter denied for a promise, or for want of a record.
    postponed: Option<Asked>,
    /// Until when it votes for no process, since it may have forgotten a promise (clause 8). On the slow
    /// clock.
    grace_until: Option<Moment>,
    /// Whether an earlier incarnation may have promised firmly, as its record says, and until when that
    /// counts. On the slow clock.
    was_firm: bool,
    firm_until: Option<Moment>,
    /// Whether it may still win, as far as it knows (clause 25).
    contender: bool,
    /// The contenders that have asked it.
    contenders: Contenders,
    campaign: Option<Campaign>,
    /// Its latest question for a later configuration, where it may be no candidate.
    config_asked: Option<Ballot>,
    recovery: Option<Recovery>,
    /// While it leads.
    leading: Option<LeaderState>,
    /// When the leader that it follows was last heard.
    leader_heard: Moment,
    /// What each member was started with. At most one entry a member.
    flags: BTreeMap<ProcessId, Flags>,
    /// The latest incarnation of each voter without a record that the log has named. At most one entry a
    /// member.
    seen_recovering: BTreeMap<ProcessId, Incarnation>,
}

impl Majority {
    /// The configuration that it votes by; none before it has a vote.
    pub(super) fn config(&self) -> Option<&VoterConfig> {
        self.state.founded()
    }
}

impl Protocol for Majority {
    const LEADS_WITHOUT_VOTES: bool = false;
    const BEST_ANNOUNCES: bool = false;
    const TAKES_OVER_BY_FORCE: bool = false;
    const OTHER: Protocols = Protocols::Classic;

    /// What the settings ask for. No candidacy and no leadership survives a restart (clause 17).
    fn new(settings: &Settings, record: Option<&Record>) -> Majority {
        let (target, lease_ms) = (settings.voters(), milliseconds(settings.failure_timeout));
        let given = Flags { voters: fingerprint(&target), lease_ms };
        let vote = record.and_then(|record| record.vote.as_ref());
        let state = RecoveredState::of(vote, &target, lease_ms);
        let was_firm = vote.is_some_and(|vote| vote.firm);
        Majority { target, given, state, was_firm, asks_ms: u32::MAX, contender: true, ..Majority::default() }
    }

    /// Begins an incarnation: with its record a voter waits for the restart grace, without one it recovers.
    fn on_start(core: &mut Core<Majority>, now: Now) {
        let m = &core.protocol;
        match m.config().map(|config| (config.bound(), config.voters != m.target)) {
            Some((bound, given_others)) => {
                core.note_lease();
                if given_others {
                    core.note_voters();
                }
                core.begin_grace(now, bound);
            }
            None => core.begin_recovery(now),
        }
    }

    /// The voters are known by name, so the best of them starts once all have met. The others leave it the
    /// margin. The only voter waits, too: the margin is its time to hear of others.
    fn needs_no_margin(core: &Core<Majority>) -> bool {
        let m = &core.protocol;
        let voters = m.config().map_or(&m.target, |config| &config.voters);
        let outranked = |member: &Member| member.linked && core.rank().outranks(member.rank());
        let met = |name: &String| core.members.iter().any(|m| m.peer.name == *name && outranked(m));
        voters.len() > 1 && voters.iter().all(|name| *name == core.me.name || met(name))
    }

    fn begin_turn(core: &mut Core<Majority>, now: Now) {
        core.check_lease(now);
    }

    fn check_invariants(core: &Core<Majority>) {
        let leased = !core.phase.leading() || core.protocol.leading.is_some();
        assert!(leased, "no process leads without a lease");
    }

    fn on_message(core: &mut Core<Majority>, by: Heard, body: Body) {
        let Heard { now, from, .. } = by;
        match body {
            Body::VoteRequest { request } => {
                core.on_vote_request(now, Asked { by: from, request, at: now.at })
            }
            Body::Vote { ballot, outcome, config } => core.on_vote(by, ballot, outcome, config),
            Body::Renew { sequence, lease_ms, config, learnt } => {
                core.on_renew(by, sequence, Pace { lease_ms, learnt }, config);
            }
            Body::Renewed { sequence, membership, promised, firm, config, flags } => {
                core.learn_flags(from, flags);
                core.on_heartbeat_ack(by, sequence, membership);
                core.on_renewed(by, sequence, promised.then_some(config), firm);
            }
            Body::Configuration { config } => core.on_configuration(by, &config),
            Body::Recover { round, incarnation } => core.on_recover(by, round, incarnation),
            Body::Recovered { round, incarnation, state, flags } => {
                core.learn_flags(from, flags);
                core.on_recovered(by, round, incarnation, state, flags);
            }
            Body::ProposeTransfer => core.on_propose_transfer(by),
            Body::TransferReady { majority } => core.on_transfer_ready(by, majority),
            _ => {}
        }
    }

    fn on_timer(core: &mut Core<Majority>, now: Now, timer: Timer) {
        match timer {
            Timer::Announcement => core.on_announcement_timer(now),
            Timer::Answer => core.on_answer_timer(now),
            Timer::Coordinator => core.on_coordinator_timer(now),
            Timer::Retry => core.on_retry_timer(now),
            Timer::Recover => core.ask_to_recover(now),
            Timer::Grace => core.on_grace_timer(now),
            // The turn has begun by looking at the lease.
            _ => {}
        }
    }

    fn start_election(core: &mut Core<Majority>, now: Now) {
        core.start_campaign(now);
    }

    fn abandon_election(core: &mut Core<Majority>) {
        core.drop_campaign();
    }

    fn on_coordinator(core: &mut Core<Majority>, by: Heard, announcement: Announcement) {
        core.announced(by, announcement);
    }

    fn on_higher_epoch(core: &mut Core<Majority>, now: Now, _: Option<Incumbent>) {
        core.campaign_for_higher_epoch(now);
    }

    fn on_link_up(core: &mut Core<Majority>, id: ProcessId) {
        core.tell_config_to_newcomer(id);
        core.ask_newcomer_to_recover(id);
    }

    fn on_link_lost(core: &mut Core<Majority>, now: Now, crashed: Option<Instance>) {
        crashed.into_iter().for_each(|instance| core.release(now, instance));
        core.check_connections(now);
    }

    /// Forgets what is kept of a member that is gone. What hangs on its name goes unless another member has
    /// that name. A request for votes of a failed member keeps no other from campaigning (clause 25).
    fn on_member_lost(core: &mut Core<Majority>, member: &Peer, gone: bool) {
        let (Peer { id, name, .. }, m) = (member, &mut core.protocol);
        m.contenders.forget(*id);
        m.postponed.take_if(|asked| asked.by == *id);
        if !gone {
            return;
        }
        m.flags.remove(id);
        m.seen_recovering.remove(id);
        if !core.members.iter().any(|other| other.peer.id != *id && other.peer.name == *name) {
            m.leading.iter_mut().for_each(|leading| _ = leading.stores.remove(name));
            m.recovery.iter_mut().for_each(|recovery| recovery.forget(name));
        }
    }

    fn send_config(core: &mut Core<Majority>, to: ProcessId) {
        core.tell_config_to(to);
    }

    fn send_heartbeats(core: &mut Core<Majority>, now: Now) {
        if let Some((lease, config)) = core.begin_round(now) {
            let (sequence, learnt) = (core.heartbeats.sequence, core.adaptation.learnt(now.at));
            let renew = |lease| Body::Renew { sequence, lease_ms: milliseconds(lease), config, learnt };
            core.send_round(now, lease, renew);
            core.round_sent(now);
        }
    }

    /// The lease rests on the answers of the voters.
    fn is_told_often(core: &Core<Majority>, member: &Member, _better: usize) -> bool {
        Majority::may_succeed(core, member)
    }

    fn longest_lease(core: &Core<Majority>) -> Option<Duration> {
        core.protocol.config().map(VoterConfig::lease)
    }

    fn lease_asked(core: &Core<Majority>) -> (Duration, LeaseReason) {
        core.lease_asked()
    }

    /// A leader's end frees its own promise to itself: it never leads that epoch again (clause 17). A hold
    /// that is out rests on that promise too.
    fn on_term_end(core: &mut Core<Majority>) {
        let (myself, held) = (core.myself(), core.held());
        core.protocol.leading = None;
        if core.clauses.own_promise_ends(held) {
            core.free(|promise| promise.to == myself);
        }
    }

    fn may_succeed(core: &Core<Majority>, member: &Member) -> bool {
        core.protocol.config().is_some_and(|config| config.voters.contains(&member.peer.name))
    }

    fn transfer(core: &mut Core<Majority>, now: Now, to: ProcessId) {
        core.propose_transfer(now, to);
    }

    fn call_off_transfer(core: &mut Core<Majority>) {
        core.protocol.leading.iter_mut().for_each(|leading| leading.proposed = None);
    }

    fn may_have_led(core: &Core<Majority>, id: ProcessId) -> bool {
        core.is_listed(id)
    }

    fn on_resign(core: &mut Core<Majority>, by: Heard) {
        core.free_resigned(by);
    }

    fn on_named_successor(core: &mut Core<Majority>, now: Now, _leaver: Option<ProcessId>) {
        core.request_votes(now);
    }

    fn valid_until(core: &Core<Majority>) -> Option<Moment> {
        core.valid_until()
    }

    /// Those of a majority of the voters, with this process.
    fn answers_needed(core: &Core<Majority>, _followers: usize) -> usize {
        core.protocol.config().map_or(0, |config| config.majority() - 1)
    }

    fn firm_until(core: &Core<Majority>) -> Option<Moment> {
        core.protocol.leading.as_ref().map(LeaderState::firm_until)
    }

    fn voting(core: &Core<Majority>) -> Option<Voting> {
        Some(core.voting())
    }

    fn vote_record(core: &Core<Majority>) -> Option<VoteRecord> {
        core.vote_record()
    }
}

impl Core<Majority> {
    /// This process.
    fn myself(&self) -> Instance {
        Instance { id: self.me.id, incarnation: self.me.incarnation }
    }

    /// The incarnation of a member that is known here.
    fn instance(&self, id: ProcessId) -> Option<Instance> {
        let member = self.members.get(id)?;
        Some(Instance { id, incarnation: member.peer.incarnation })
    }

    /// The name under which another member votes. Of two live processes with one name, the process that is
    /// known longer has it.
    fn voter(&self, now: Now, id: ProcessId) -> Option<&str> {
        let name = self.members.name(id, now.at, self.settings.failure_timeout)?;
        (name != self.me.name).then_some(name)
    }

    /// Whether this process may vote and lead at all: it has a vote, a configuration that names it, and a
    /// rank.
    fn may_campaign(&self) -> bool {
        self.rank().eligible()
            && self.protocol.config().is_some_and(|config| config.voters.contains(&self.me.name))
    }

    /// Whether this process's configuration or its `--voters` name a member (clause 29). It votes for no
    /// other process, and follows no other.
    fn is_listed(&self, id: ProcessId) -> bool {
        let m = &self.protocol;
        let lists = |name: &String| {
            m.target.contains(name) || m.config().is_some_and(|config| config.voters.contains(name))
        };
        let listed = self.members.get(id).is_some_and(|member| lists(&member.peer.name));
        self.clauses.counts_as_voter(id == self.me.id || listed)
    }

    /// Takes down what a member was started with. The log says once where its `--voters` differ.
    fn learn_flags(&mut self, from: ProcessId, flags: Flags) {
        let Some(member) = self.members.get(from) else { return };
        let before = self.protocol.flags.insert(from, flags).map(|before| before.voters);
        let differ = flags.voters != self.protocol.given.voters && before != Some(flags.voters);
        if differ && self.protocol.config().is_some() {
            let peer = member.peer.clone();
            self.note(Notification::VotersDiffer { peer, first_start: false });
        }
    }

    /// A listed process announces that it leads, or sends a heartbeat. This process follows it in an epoch at
    /// or above its own. No rank counts here: voters have elected the leader.
    fn announced(&mut self, by: Heard, announcement: Announcement) {
        let Heard { now, from, epoch } = by;
        let Some(peer) = self.members.get(from).map(|m| m.peer.clone()) else { return };
        let resigned = self.clauses.has_resigned(self.last_resignation, from, epoch);
        // Two processes never lead in one epoch (invariant 4): a sender of this leader's epoch is mistaken.
        let two = epoch == self.epoch && self.phase.leading();
        if resigned || two || !peer.rank().eligible() || !self.is_listed(from) {
            return;
        }
        if self.clauses.is_stale(epoch, self.epoch) {
            return self.answer_stale(from);
        }
        self.follow(now, peer, epoch.max(self.epoch), announcement);
        self.protocol.leader_heard = now.at;
        self.protocol.contender = true;
    }

    /// The process that it voted for did not announce itself.
    fn on_announcement_timer(&mut self, now: Now) {
        self.transfer_failed(now);
        self.start_campaign(now);
    }

    /// This process may be no candidate, and no leader came in time.
    fn on_coordinator_timer(&mut self, now: Now) {
        self.elect_again(now);
        self.ask_for_config(now);
    }
}
