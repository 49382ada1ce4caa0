//! No message that can be decoded, from any member and in any state, ends a process. Otherwise one message to
//! the peer port could bring down a whole cluster by a panic. Random events of a small world (few ids, few
//! addresses, epochs close to each other) meet more states than arbitrary ones would.
//!
//! A run follows from its seed alone; a failure prints it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use bellwether::election::{
    Action, Ballot, Body, ConfigVersion, CrashEvidence, Denial, Entry, Epoch, Event, Flags, Founding,
    HoldAnswer, HoldOutcome, HoldRequest, Incarnation, Incumbent, KnownPeers, LEASE_MS_MAX, Learnt,
    ListWanted, Machine, MembershipVersion, Message, Moment, Now, Operation, Pace, Peer, Preempt, Priority,
    ProcessId, Record, RecoveredState, Safety, Settings, Stage, State, Timer, Variant, VoteOutcome,
    VoteRecord, VoteRequest, VoterConfig,
};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;
use support::world::{address, id, peer};

const RUNS: u64 = 3000;
const EVENTS: usize = 150;
/// Ids 0 to this; the machine is number 3.
const IDS: usize = 6;
const ME: usize = 3;

struct Run {
    random: fastrand::Rng,
    machine: Machine,
    now: Duration,
    armed: BTreeSet<Timer>,
    /// What it has asked the voters last, and its latest round and question of a recovery: an answer to
    /// anything else counts for nothing.
    asked: Option<Ballot>,
    sequence: u32,
    recovery_round: u32,
    /// How many operations it was asked for, and which it has answered.
    operations: u64,
    answered: BTreeSet<u64>,
    exited: bool,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = fastrand::Rng::with_seed(seed);
        let settings = Settings {
            variant: random.choice(Variant::NAMED).unwrap().1,
            preempt: match random.u8(0..4) {
                0 => Preempt::Always,
                1 => Preempt::Never,
                _ => Preempt::After(Duration::from_millis(random.u64(250..2000))),
            },
            crash_evidence: [CrashEvidence::Suspect, CrashEvidence::Release, CrashEvidence::Off]
                [random.usize(..3)],
            expect: random.usize(0..4),
            founding: [Founding::Auto, Founding::Yes, Founding::No][random.usize(..3)],
            safety: if random.bool() { Safety::Classic } else { Safety::Majority { voters: voters() } },
            ..Settings::default()
        };
        let me = Peer { priority: priority(&mut random), ..peer(ME) };
        let record = if random.bool() { Some(record(&mut random, &me)) } else { None };
        let mut machine = Machine::new(settings, "test".to_string(), me, record.as_ref());
        if record.is_some() {
            machine.ask_first(&known_peers());
        }
        let mut run = Run {
            random,
            machine,
            now: Duration::ZERO,
            armed: BTreeSet::new(),
            asked: None,
            sequence: 0,
            recovery_round: 0,
            operations: 0,
            answered: BTreeSet::new(),
            exited: false,
        };
        run.feed(Event::Start);
        run
    }

    fn feed(&mut self, event: Event) {
        let now = Now::at(Moment(self.now));
        let before = self.machine.status().members.len();
        let told = format!("{event:?}");
        let actions = self.machine.handle(now, event);
        let mut sends = 0;
        for (place, action) in actions.into_iter().enumerate() {
            match action {
                Action::Persist(record) => {
                    assert_eq!(place, 0, "invariant 2");
                    assert!(record.vote.iter().all(|vote| vote.config.check().is_ok()));
                }
                Action::Remember(known) => {
                    assert!(known.members.iter().all(|m| m.peer.check().is_ok()));
                }
                Action::Send { to, message, .. } => {
                    sends += 1;
                    assert_ne!(to, id(ME), "it sends nothing to itself");
                    assert!(message.check().is_ok(), "what it sends can be decoded: {message:?}");
                    assert!(message.epoch <= self.machine.epoch(), "invariant 2: {message:?}");
                    match message.body {
                        Body::VoteRequest { request } => self.asked = Some(request.ballot),
                        Body::Renew { sequence, .. } => self.sequence = sequence,
                        Body::Recover { round, .. } => self.recovery_round = round,
                        _ => {}
                    }
                }
                Action::Arm { timer, .. } => drop(self.armed.insert(timer)),
                Action::Disarm(timer) => drop(self.armed.remove(&timer)),
                Action::Answer { number, .. } => {
                    assert!((1..=self.operations).contains(&number) && self.answered.insert(number));
                }
                Action::Held(HoldAnswer { outcome, longest, .. }) => {
                    let lasts = match outcome {
                        HoldOutcome::Granted { lasts, .. } => lasts,
                        _ => Duration::ZERO,
                    };
                    let leads = self.machine.status().valid_until.is_some();
                    assert!(lasts <= longest && (lasts.is_zero() || leads), "{outcome:?}");
                }
                Action::Exit => self.exited = true,
                Action::Seek(_) | Action::Refuse(_) | Action::Notification(_) => {}
            }
        }
        let members = before.max(self.machine.status().members.len());
        // All may be found silent at once, and each of them is news for each other one.
        let bound = members * (members + 4);
        assert!(sends <= bound, "{sends} messages among {members} members follow from {told}");
    }

    fn id(&mut self) -> ProcessId {
        id(self.random.usize(0..=IDS))
    }

    fn address(&mut self) -> SocketAddr {
        match self.random.u8(0..12) {
            0 => SocketAddr::from(([0, 0, 0, 0], 4041)),
            1 => SocketAddr::from(([198, 18, 0, 1], 0)),
            _ => address(self.random.usize(0..=IDS)),
        }
    }

    fn peer(&mut self) -> Peer {
        let k = self.random.usize(0..=IDS);
        let address = if self.random.u8(0..4) == 0 { self.address() } else { address(k) };
        let incarnation = Incarnation(self.random.u64(1..3));
        let priority = priority(&mut self.random);
        let revision = ["", "a", "b"][self.random.usize(..3)].to_string();
        Peer { incarnation, address, priority, revision, ..peer(k) }
    }

    fn entry(&mut self) -> Entry {
        let state = if self.random.bool() { State::Alive } else { State::Failed };
        Entry { peer: self.peer(), state }
    }

    fn entries(&mut self) -> Vec<Entry> {
        (0..self.random.usize(0..5)).map(|_| self.entry()).collect()
    }

    fn epoch(&mut self) -> Epoch {
        let own = self.machine.epoch().0;
        Epoch(match self.random.u8(0..20) {
            0 => Epoch::MAX.0,
            1 => own + Epoch::ALWAYS_PLAUSIBLE,
            2 => 0,
            3..=10 => own,
            _ => (own + self.random.u64(0..5)).saturating_sub(2),
        })
    }

    fn version(&mut self) -> MembershipVersion {
        MembershipVersion { epoch: self.epoch(), version: [0, 1, 2, 3, u32::MAX][self.random.usize(..5)] }
    }

    fn config_version(&mut self) -> ConfigVersion {
        ConfigVersion { epoch: self.epoch(), version: [0, 1, 2, u32::MAX][self.random.usize(..4)] }
    }

    fn config(&mut self) -> VoterConfig {
        let mut voters = voters();
        match self.random.u8(0..6) {
            0 => voters = BTreeSet::from([peer(self.random.usize(0..=IDS)).name]),
            1 => drop(voters.pop_first()),
            2 => drop(voters.insert(peer(IDS).name)),
            _ => {}
        }
        let (one, other) = (self.lease_ms(), self.lease_ms());
        let (lease_ms, bound_ms) = (one.min(other), one.max(other));
        VoterConfig { version: self.config_version(), voters, lease_ms, bound_ms }
    }

    fn lease_ms(&mut self) -> u32 {
        [1, 500, 1500, 1500, 1500, LEASE_MS_MAX][self.random.usize(..6)]
    }

    fn flags(&mut self) -> Flags {
        Flags { voters: self.random.u64(0..2), lease_ms: self.milliseconds() }
    }

    /// A ballot of its own, or the one that the machine has asked for.
    fn ballot(&mut self) -> Ballot {
        match self.asked {
            Some(asked) if self.random.u8(0..4) > 0 => asked,
            _ => Ballot {
                stage: if self.random.bool() { Stage::PreVote } else { Stage::Vote },
                epoch: self.epoch(),
                incarnation: self.incarnation(),
                asked_at: Moment(self.now),
                lease_ms: self.milliseconds(),
            },
        }
    }

    fn incarnation(&mut self) -> Incarnation {
        if self.random.bool() { peer(ME).incarnation } else { Incarnation(self.random.u64(1..3)) }
    }

    fn milliseconds(&mut self) -> u32 {
        [0, 1, 500, 1500, 1500, u32::MAX][self.random.usize(..6)]
    }

    fn outcome(&mut self) -> VoteOutcome {
        let for_ms = self.milliseconds();
        match self.random.u8(0..12) {
            0 => VoteOutcome::Denied(Denial::Promised { for_ms }),
            1 => VoteOutcome::Denied(Denial::Grace { for_ms }),
            2 => {
                let denials = [
                    Denial::Stale,
                    Denial::OlderConfig,
                    Denial::Outranked,
                    Denial::NoRecord,
                    Denial::Unlisted,
                ];
                VoteOutcome::Denied(denials[self.random.usize(..denials.len())])
            }
            _ => VoteOutcome::Granted,
        }
    }

    /// One of the machine's latest rounds, mostly.
    fn round_near(&mut self, latest: u32) -> u32 {
        latest.wrapping_sub(self.random.u32(0..3)).wrapping_add(self.random.u32(0..2))
    }

    fn learnt(&mut self) -> Learnt {
        Learnt { worst_ms: self.milliseconds(), eighths: self.random.u8(..) }
    }

    /// What only voters say.
    fn voting(&mut self) -> Body {
        match self.random.u8(0..10) {
            0 => {
                let transfer = if self.random.bool() { Some(self.epoch()) } else { None };
                let (ballot, contender, config) = (self.ballot(), self.random.bool(), self.config());
                Body::VoteRequest { request: VoteRequest { ballot, contender, transfer, config } }
            }
            1 => Body::Renew {
                sequence: self.random.u32(0..4),
                lease_ms: self.milliseconds(),
                config: self.config_version(),
                learnt: self.learnt(),
            },
            2 | 3 => Body::Renewed {
                sequence: self.round_near(self.sequence),
                membership: self.version(),
                promised: self.random.bool(),
                firm: self.random.bool(),
                config: self.config_version(),
                flags: self.flags(),
            },
            4 => Body::Configuration { config: self.config() },
            5 => Body::Recover { round: self.random.u32(0..3), incarnation: self.incarnation() },
            6 => {
                let state = match self.random.u8(0..3) {
                    0 => RecoveredState::Empty,
                    1 => RecoveredState::Founding(self.config()),
                    _ => RecoveredState::Founded(self.config()),
                };
                let (round, incarnation) = (self.round_near(self.recovery_round), self.incarnation());
                Body::Recovered { round, incarnation, state, flags: self.flags() }
            }
            7 => {
                if self.random.bool() {
                    Body::ProposeTransfer
                } else {
                    Body::TransferReady { majority: self.random.bool() }
                }
            }
            _ => {
                let config = if self.random.u8(0..4) == 0 { Some(self.config()) } else { None };
                Body::Vote { ballot: self.ballot(), outcome: self.outcome(), config }
            }
        }
    }

    fn body(&mut self) -> Body {
        if self.random.bool() {
            return self.voting();
        }
        match self.random.u8(0..12) {
            11 => Body::Declare,
            0 => Body::Election,
            1 => Body::Answer,
            2 => Body::Coordinator { elected_at_ms: u64::MAX },
            3 => Body::Heartbeat {
                sequence: self.random.u32(0..4),
                pace: Pace { lease_ms: self.milliseconds(), learnt: self.learnt() },
            },
            4 => Body::HeartbeatAck { sequence: self.random.u32(0..4), membership: self.version() },
            5 => Body::Membership { version: self.version(), entries: self.entries().into() },
            6 => Body::Join { version: self.version(), entry: self.entry() },
            7 => {
                let version = if self.random.bool() { Some(self.version()) } else { None };
                Body::Leave { version, id: self.id() }
            }
            8 => {
                let successor = if self.random.u8(0..4) > 0 { Some(self.id()) } else { None };
                Body::Resign { successor, leaving: self.random.bool() }
            }
            9 => Body::LeaderQuery {
                list: if self.random.bool() { ListWanted::Best } else { ListWanted::Whole },
            },
            _ => {
                let leader = if self.random.bool() {
                    Some(Incumbent { peer: self.peer(), elected_at_ms: 0 })
                } else {
                    None
                };
                Body::LeaderInfo { leader, entries: self.entries().into() }
            }
        }
    }

    /// What a message says that its sender counts for: mostly what its Hello has said.
    fn priority(&mut self) -> Priority {
        if self.random.u8(0..8) == 0 { priority(&mut self.random) } else { Priority::DEFAULT }
    }

    fn operation(&mut self) -> Event {
        let operation = match self.random.u8(0..6) {
            0 => Operation::Uncordon,
            1 => Operation::Cordon,
            2 => Operation::Resign { stand_aside: None },
            3 => Operation::Resign { stand_aside: Some(Duration::from_millis(self.random.u64(1..2000))) },
            _ => Operation::Transfer { to: peer(self.random.usize(0..=IDS)).name },
        };
        self.operations += 1;
        let within = Duration::from_millis(self.random.u64(0..2000));
        Event::Operation { number: self.operations, operation, within }
    }

    fn hold(&mut self) -> HoldRequest {
        let (hold, lasts) = (self.random.u64(0..4), Duration::from_millis(self.random.u64(0..3000)));
        match self.random.u8(0..4) {
            0 => HoldRequest::End { hold },
            1 => HoldRequest::Extend { hold, lasts },
            _ => HoldRequest::Take { lasts },
        }
    }

    fn event(&mut self) -> Event {
        match self.random.u8(0..40) {
            0..=3 => Event::LinkUp(self.peer()),
            4 => Event::LinkDown { id: self.id(), incarnation: Incarnation(self.random.u64(1..3)) },
            5 => Event::Crashed { id: self.id(), incarnation: Incarnation(self.random.u64(1..3)) },
            6 => Event::Refused(self.address()),
            7..=15 => {
                let armed: Vec<Timer> = self.armed.iter().copied().collect();
                match armed.get(self.random.usize(0..Timer::ALL.len())) {
                    Some(timer) => {
                        self.armed.remove(timer);
                        Event::Timer(*timer)
                    }
                    // One that was disarmed while its event waited.
                    None => Event::Timer(Timer::ALL[self.random.usize(..Timer::ALL.len())]),
                }
            }
            16 => Event::Discovered {
                addresses: (0..3).map(|_| self.address()).collect(),
                complete: self.random.bool(),
            },
            17 if self.random.u8(0..4) == 0 => Event::ReachedSelf(self.address()),
            18 if self.random.u8(0..4) == 0 => Event::Advertise(self.address()),
            19 if self.random.u8(0..8) == 0 => Event::Stop,
            20 => {
                self.now += Duration::from_secs(2);
                Event::Turn
            }
            21 => self.operation(),
            22 => Event::Hold(self.hold()),
            _ => {
                let from = self.id();
                Event::Received {
                    from,
                    message: Message { epoch: self.epoch(), priority: self.priority(), body: self.body() },
                }
            }
        }
    }

    fn check(mut self) {
        for _ in 0..EVENTS {
            if self.exited {
                return;
            }
            self.now += Duration::from_millis(self.random.u64(0..400));
            let event = self.event();
            self.feed(event);
            let open = self.operations - self.answered.len() as u64;
            assert!(open <= 1, "{open} operations are under way");
        }
    }
}

fn voters() -> BTreeSet<String> {
    (1..IDS).map(|k| peer(k).name).collect()
}

/// What it kept from its last incarnation, with a vote or without.
fn record(random: &mut fastrand::Rng, me: &Peer) -> Record {
    let version = ConfigVersion { epoch: Epoch(random.u64(0..4)), version: 1 };
    let (lease_ms, more_ms) = (random.u32(1..3000), random.u32(0..2000));
    let vote = VoteRecord {
        name: me.name.clone(),
        founding: random.bool(),
        firm: random.bool(),
        config: VoterConfig { version, voters: voters(), lease_ms, bound_ms: lease_ms + more_ms },
    };
    Record { cluster: "test".to_string(), id: me.id, epoch: Epoch(4), vote: random.bool().then_some(vote) }
}

/// Where its peers were in its last incarnation.
fn known_peers() -> KnownPeers {
    KnownPeers {
        cluster: "test".to_string(),
        leader: Some(peer(1)),
        members: vec![Entry { peer: peer(2), state: State::Failed }],
    }
}

fn priority(random: &mut fastrand::Rng) -> Priority {
    Priority([0, 50, 100, 100, 200][random.usize(..5)])
}

#[test]
fn no_message_ends_a_process() {
    let count = std::env::var("BELLWETHER_SCHEDULES").ok().and_then(|c| c.parse().ok()).unwrap_or(RUNS);
    let only = std::env::var("BELLWETHER_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in only.map_or(0..count, |seed| seed..seed + 1) {
        let verdict = std::panic::catch_unwind(|| Run::new(seed).check());
        assert!(verdict.is_ok(), "the run of BELLWETHER_SEED={seed} failed");
    }
}
