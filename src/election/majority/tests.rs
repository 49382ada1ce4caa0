//! The clauses one by one, each with the clause left out. A clause that makes no difference is no clause.
#![allow(clippy::unwrap_used)]

use super::Majority;
use crate::election::Mutation;
use crate::election::core::Core;
use crate::election::types::voter_config::fingerprint;
use crate::election::{
    Action, Ballot, Body, ConfigVersion, CrashEvidence, Denial, Epoch, Event, Flags, Incarnation, Learnt,
    MembershipVersion, Message, Moment, Notification, Now, Peer, Preempt, Priority, ProcessId, Reason,
    Record, RecoveredState, Safety, Settings, Stage, Timer, VoteOutcome, VoteRecord, VoteRequest,
    VoterConfig,
};
use std::collections::BTreeSet;
use std::time::Duration;
use uuid::Uuid;

mod adaptive;
mod application;
mod candidate;
mod cluster;
mod configuration;
mod contest;
mod first_start_schedules;
mod founding;
mod holds;
mod lease;
mod operations;
mod promise;
mod recovery;
mod schedules;
mod start;
mod strangers;
mod transfer;
mod voter;

const GRANTED: VoteOutcome = VoteOutcome::Granted;

fn denied(denial: Denial) -> VoteOutcome {
    VoteOutcome::Denied(denial)
}

fn promised(for_ms: u32) -> VoteOutcome {
    denied(Denial::Promised { for_ms })
}

fn peer(k: u8) -> Peer {
    Peer {
        id: ProcessId(Uuid::from_u128(u128::from(k))),
        incarnation: Incarnation(u64::from(k)),
        name: format!("p{k}"),
        address: ([198, 18, 0, k], 4041).into(),
        priority: Priority::DEFAULT,
        revision: String::new(),
    }
}

fn names(of: &[u8]) -> BTreeSet<String> {
    of.iter().map(|k| format!("p{k}")).collect()
}

fn version(epoch: u64, version: u32) -> ConfigVersion {
    ConfigVersion { epoch: Epoch(epoch), version }
}

/// The first configuration of the leader of this epoch, with the default lease.
fn config(epoch: u64, voters: &[u8]) -> VoterConfig {
    VoterConfig { version: version(epoch, 0), voters: names(voters), lease_ms: 1500, bound_ms: 1500 }
}

fn flags(voters: &[u8], lease_ms: u32) -> Flags {
    Flags { voters: fingerprint(&names(voters)), lease_ms }
}

fn record(k: u8, config: VoterConfig) -> Record {
    let vote = VoteRecord { name: format!("p{k}"), founding: false, firm: true, config };
    Record { cluster: "c".to_owned(), id: peer(k).id, epoch: Epoch(4), vote: Some(vote) }
}

/// The settings of a process that was started with these voters and this lease.
fn given(voters: &[u8], lease_ms: u64) -> Settings {
    Settings {
        safety: Safety::Majority { voters: names(voters) },
        failure_timeout: Duration::from_millis(lease_ms),
        preempt: Preempt::Never,
        ..Settings::default()
    }
}

/// A request of the member with this number, which names the configuration of the records.
fn request(from: u8, stage: Stage, epoch: u64) -> VoteRequest {
    let (epoch, incarnation) = (Epoch(epoch), peer(from).incarnation);
    let ballot = Ballot { stage, epoch, incarnation, asked_at: Moment::default(), lease_ms: 1500 };
    VoteRequest { ballot, contender: true, transfer: None, config: config(4, &[1, 2, 3]) }
}

fn send(action: &Action) -> Option<(ProcessId, &Message)> {
    match action {
        Action::Send { to, message, .. } => Some((*to, message)),
        _ => None,
    }
}

fn bodies(actions: &[Action]) -> impl Iterator<Item = &Body> {
    actions.iter().filter_map(send).map(|(_, message)| &message.body)
}

/// The stages and epochs of the requests among what is sent, one for many voters.
fn requests(actions: &[Action]) -> Vec<(Stage, u64)> {
    let request = |body: &Body| match body {
        Body::VoteRequest { request } => Some((request.ballot.stage, request.ballot.epoch.0)),
        _ => None,
    };
    let mut requests: Vec<_> = bodies(actions).filter_map(request).collect();
    requests.dedup();
    requests
}

/// What it answers to a request.
fn outcome(actions: &[Action]) -> Option<VoteOutcome> {
    bodies(actions).find_map(|body| match body {
        Body::Vote { outcome, .. } => Some(*outcome),
        _ => None,
    })
}

/// After how long a timer is due that was armed last.
fn armed(actions: &[Action], timer: Timer) -> Option<Duration> {
    let after = |action: &Action| match action {
        Action::Arm { timer: t, after } if *t == timer => Some(*after),
        _ => None,
    };
    actions.iter().rev().find_map(after)
}

/// One machine, p1. The test feeds it by hand: no timer fires by itself.
#[derive(Clone)]
struct Voter {
    machine: Core<Majority>,
    now: Duration,
    /// How far its slow clock is behind the fast one.
    lag: Duration,
    /// What it has asked for last.
    asked: Option<VoteRequest>,
    /// Its latest round of heartbeats.
    round: u32,
}

impl Voter {
    /// p1 of three voters, just restarted with a record of epoch 4, and connected with p2 and p3.
    fn new(leaves_out: Option<Mutation>) -> Voter {
        let record = record(1, config(4, &[1, 2, 3]));
        Voter::start(peer(1), given(&[1, 2, 3], 1500), Some(&record), &[2, 3], leaves_out)
    }

    /// A voter whose restart grace is over.
    fn settled(leaves_out: Option<Mutation>) -> Voter {
        let mut voter = Voter::new(leaves_out);
        voter.wait_for_grace();
        voter
    }

    /// The restart grace goes by.
    fn wait_for_grace(&mut self) {
        self.pass(1500);
        self.timer(Timer::Grace);
    }

    fn start(
        me: Peer,
        settings: Settings,
        record: Option<&Record>,
        connected: &[u8],
        leaves_out: Option<Mutation>,
    ) -> Voter {
        let mut machine = Core::<Majority>::new(settings, "c".to_owned(), me, record);
        if let Some(clause) = leaves_out {
            machine.clauses.0 = Some(clause);
        }
        let mut voter =
            Voter { machine, now: Duration::from_secs(9), lag: Duration::ZERO, asked: None, round: 0 };
        voter.feed(Event::Start);
        connected.iter().for_each(|k| drop(voter.feed(Event::LinkUp(peer(*k)))));
        voter
    }

    fn feed(&mut self, event: Event) -> Vec<Action> {
        let now = Now { slow: Moment(self.now - self.lag), ..Now::at(Moment(self.now)) };
        let actions = self.machine.handle(now, event);
        for body in bodies(&actions) {
            match body {
                Body::VoteRequest { request } => self.asked = Some(request.clone()),
                Body::Renew { sequence, .. } => self.round = *sequence,
                _ => {}
            }
        }
        actions
    }

    fn timer(&mut self, timer: Timer) -> Vec<Action> {
        self.feed(Event::Timer(timer))
    }

    /// Lets time pass, in turns that are no pauses.
    fn pass(&mut self, mut ms: u64) {
        while ms > 0 {
            let step = ms.min(500);
            self.now += Duration::from_millis(step);
            self.feed(Event::Turn);
            ms -= step;
        }
    }

    fn hear(&mut self, from: u8, epoch: u64, body: Body) -> Vec<Action> {
        let from = peer(from).id;
        let priority = self.machine.members.get(from).map_or(Priority::DEFAULT, |m| m.peer.priority);
        self.feed(Event::Received { from, message: Message { epoch: Epoch(epoch), priority, body } })
    }

    /// What it answers to a request.
    fn outcome_for(&mut self, from: u8, request: VoteRequest) -> Option<VoteOutcome> {
        outcome(&self.hear(from, 4, Body::VoteRequest { request }))
    }

    /// What it answers to a request for a vote.
    fn vote_for(&mut self, from: u8, epoch: u64) -> Option<VoteOutcome> {
        self.outcome_for(from, request(from, Stage::Vote, epoch))
    }

    /// What it answers to a request for a pre-vote.
    fn pre_vote_for(&mut self, from: u8, epoch: u64) -> Option<VoteOutcome> {
        self.outcome_for(from, request(from, Stage::PreVote, epoch))
    }

    /// Whether it acknowledges a leader's round; none: it does not even answer.
    fn acknowledges(&mut self, from: u8, epoch: u64, lease_ms: u32, named: ConfigVersion) -> Option<bool> {
        let sent = self.hear(
            from,
            epoch,
            Body::Renew { sequence: 1, lease_ms, config: named, learnt: Learnt::default() },
        );
        bodies(&sent).find_map(|body| match body {
            Body::Renewed { promised, .. } => Some(*promised),
            _ => None,
        })
    }

    /// It follows the leader that has written this configuration, and hears of it.
    fn tells_config(&mut self, from: u8, config: VoterConfig) {
        let epoch = config.version.epoch.0;
        self.hear(from, epoch, Body::Coordinator { elected_at_ms: 0 });
        self.hear(from, epoch, Body::Configuration { config });
    }

    fn resigns(&mut self, from: u8, epoch: u64) {
        self.hear(from, epoch, Body::Resign { successor: None, leaving: false });
    }

    fn config(&self) -> VoterConfig {
        self.machine.record().vote.unwrap().config
    }

    fn leads(&self) -> bool {
        self.machine.phase.leading()
    }

    /// A voter answers what was asked last.
    fn answered(&mut self, from: u8, outcome: VoteOutcome) -> Vec<Action> {
        self.answered_with(from, outcome, None)
    }

    /// A voter answers what was asked last, and tells its later configuration.
    fn answered_with(&mut self, from: u8, outcome: VoteOutcome, config: Option<VoterConfig>) -> Vec<Action> {
        let ballot = self.asked.as_ref().unwrap().ballot;
        self.hear(from, 4, Body::Vote { ballot, outcome, config })
    }

    /// It asks for pre-votes.
    fn start_campaign(&mut self) -> Vec<Action> {
        let sent = self.timer(Timer::Margin);
        if requests(&sent).is_empty() { self.timer(Timer::Retry) } else { sent }
    }

    /// It wins p2's pre-vote and asks for votes.
    fn ask_for_votes(&mut self) -> Vec<Action> {
        self.start_campaign();
        self.answered(2, GRANTED)
    }

    /// Whether it tells that leader that it could not win.
    fn declines_transfer(&mut self, leader: u8, epoch: u64) -> bool {
        let sent = self.hear(leader, epoch, Body::ProposeTransfer);
        bodies(&sent).any(|body| *body == Body::TransferReady { majority: false })
    }

    /// Whether it stands once that leader has resigned, and names no successor that leads.
    fn stands_after(&mut self, leader: u8, epoch: u64) -> bool {
        self.resigns(leader, epoch);
        self.pass(300);
        let sent = self.timer(Timer::Announcement);
        let sent = if requests(&sent).is_empty() { self.timer(Timer::Retry) } else { sent };
        !requests(&sent).is_empty()
    }

    /// A follower acknowledges this round, and stores that configuration.
    fn acknowledged(&mut self, from: u8, round: u32, config: ConfigVersion, flags: Flags) -> Vec<Action> {
        let (membership, promised) = (MembershipVersion::default(), true);
        let epoch = self.machine.epoch.0;
        self.hear(
            from,
            epoch,
            Body::Renewed { sequence: round, membership, promised, firm: promised, config, flags },
        )
    }

    /// p1 was started with these flags and leads epoch 5, elected by p2; no round is acknowledged.
    fn leader_given(voters: &[u8], lease_ms: u64, leaves_out: Option<Mutation>) -> Voter {
        Voter::leader_with(given(voters, lease_ms), leaves_out)
    }

    /// The same with these settings, among p1 to p3.
    fn leader_with(settings: Settings, leaves_out: Option<Mutation>) -> Voter {
        let record = record(1, config(4, &[1, 2, 3]));
        let mut voter = Voter::start(peer(1), settings, Some(&record), &[2, 3], leaves_out);
        voter.wait_for_grace();
        voter.ask_for_votes();
        voter.answered(2, GRANTED);
        assert!(voter.leads() && voter.machine.epoch == Epoch(5), "{leaves_out:?}");
        voter
    }

    fn leader(leaves_out: Option<Mutation>) -> Voter {
        Voter::leader_given(&[1, 2, 3], 1500, leaves_out)
    }
}
