//! No message that can be decoded, from any member and in any state, ends a process: a panic would, and whoever reaches
//! the peer port could bring down a whole cluster. Random events of a small world (few ids, few addresses, epochs close to
//! each other) meet more states than arbitrary ones would.
//!
//! A run follows from its seed alone; a failure prints it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use bellwether::election::{
    Action, Ballot, Body, CrashEvidence, Entry, Epoch, Event, Incarnation, Incumbent, Machine,
    MembershipVersion, Message, Moment, Now, Peer, Preempt, Priority, Process, ProcessId, Question,
    Recollection, Record, Refusal, Safety, Settings, State, Timer, Variant, Verdict, ViewStamp, VoteRecord,
    VoterView,
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
    exited: bool,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = fastrand::Rng::with_seed(seed);
        let settings = Settings {
            variant: if random.bool() { Variant::Detector } else { Variant::Paper },
            preempt: match random.u8(0..4) {
                0 => Preempt::Always,
                1 => Preempt::Never,
                _ => Preempt::After(Duration::from_millis(random.u64(250..2000))),
            },
            crash_evidence: [CrashEvidence::Suspect, CrashEvidence::Release, CrashEvidence::Off]
                [random.usize(..3)],
            expect: random.usize(0..4),
            safety: if random.bool() { Safety::Classic } else { Safety::Majority { voters: voters() } },
            ..Settings::default()
        };
        let me = Peer { priority: priority(&mut random), ..peer(ME) };
        let record = if random.bool() { Some(record(&mut random, &me)) } else { None };
        let machine = Machine::new(settings, "test".to_string(), me, record.as_ref());
        let mut run = Run { random, machine, now: Duration::ZERO, armed: BTreeSet::new(), exited: false };
        run.feed(Event::Start);
        run
    }

    fn feed(&mut self, event: Event) {
        let now = Now { at: Moment(self.now), wall_ms: 0 };
        let before = self.machine.view().members.len();
        let told = format!("{event:?}");
        let actions = self.machine.handle(now, event);
        let mut sends = 0;
        for (place, action) in actions.into_iter().enumerate() {
            match action {
                Action::Persist(record) => {
                    assert_eq!(place, 0, "invariant 2");
                    assert!(record.members.iter().all(|m| m.peer.check().is_ok()));
                    assert!(record.vote.iter().all(|vote| vote.view.check().is_ok()));
                }
                Action::Send { to, message, .. } => {
                    sends += 1;
                    assert_ne!(to, id(ME), "it sends nothing to itself");
                    assert!(message.check().is_ok(), "what it sends can be decoded: {message:?}");
                    assert!(message.epoch <= self.machine.epoch(), "invariant 2: {message:?}");
                }
                Action::Arm { timer, .. } => drop(self.armed.insert(timer)),
                Action::Disarm(timer) => drop(self.armed.remove(&timer)),
                Action::Exit => self.exited = true,
                Action::Seek(_) | Action::Note(_) => {}
            }
        }
        let members = before.max(self.machine.view().members.len());
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
            1 => own + Epoch::JUMP_MAX,
            2 => 0,
            3..=10 => own,
            _ => (own + self.random.u64(0..5)).saturating_sub(2),
        })
    }

    fn version(&mut self) -> MembershipVersion {
        MembershipVersion { epoch: self.epoch(), version: [0, 1, 2, 3, u32::MAX][self.random.usize(..5)] }
    }

    fn stamp(&mut self) -> ViewStamp {
        ViewStamp { epoch: self.epoch(), version: [0, 1, 2, u32::MAX][self.random.usize(..4)] }
    }

    fn view(&mut self) -> VoterView {
        let mut voters = voters();
        match self.random.u8(0..6) {
            0 => voters = BTreeSet::from([peer(self.random.usize(0..=IDS)).name]),
            1 => drop(voters.pop_first()),
            2 => drop(voters.insert(peer(IDS).name)),
            _ => {}
        }
        VoterView { stamp: self.stamp(), voters }
    }

    fn question(&mut self) -> Question {
        if self.random.bool() { Question::Sounding } else { Question::Claim }
    }

    fn incarnation(&mut self) -> Incarnation {
        if self.random.bool() { peer(ME).incarnation } else { Incarnation(self.random.u64(1..3)) }
    }

    fn milliseconds(&mut self) -> u32 {
        [0, 1, 500, 1500, 1500, u32::MAX][self.random.usize(..6)]
    }

    fn verdict(&mut self) -> Verdict {
        match self.random.u8(0..12) {
            0 => Verdict::Conditional,
            1 => Verdict::No(Refusal::Promised { for_ms: self.milliseconds() }),
            2 => {
                let refusals = [
                    Refusal::Stale,
                    Refusal::Outranked,
                    Refusal::Recovering,
                    Refusal::NoVoter,
                    Refusal::Withdrawn,
                ];
                Verdict::No(refusals[self.random.usize(..5)])
            }
            _ => Verdict::Yes,
        }
    }

    /// What only voters say.
    fn voting(&mut self) -> Body {
        let incarnation = self.incarnation();
        match self.random.u8(0..10) {
            0 => {
                let ballot = Ballot {
                    epoch: self.epoch(),
                    incarnation,
                    asked_at: Moment(self.now),
                    lease_ms: self.milliseconds(),
                };
                let freed = if self.random.bool() { Some(self.epoch()) } else { None };
                Body::Contest { question: self.question(), ballot, freed, view: self.view() }
            }
            1 => Body::Withdraw { epoch: self.epoch(), incarnation },
            2 => Body::Renew {
                sequence: self.random.u32(0..4),
                membership: self.version(),
                lease_ms: self.milliseconds(),
                view: self.stamp(),
            },
            3 => Body::Renewed {
                sequence: self.random.u32(0..4),
                membership: self.version(),
                promised: self.random.bool(),
                view: self.stamp(),
                target: self.random.u64(0..2),
                lease_ms: self.milliseconds(),
            },
            4 => Body::Voters { view: self.view() },
            5 => Body::Recover { round: self.random.u32(0..3), incarnation },
            6 => {
                let recollection = if self.random.bool() {
                    Some(Recollection { view: self.view(), lease_longest_ms: self.milliseconds() })
                } else {
                    None
                };
                let target = self.random.u64(0..2);
                Body::Recovered { round: self.random.u32(0..3), incarnation, recollection, target }
            }
            7 => {
                if self.random.bool() {
                    Body::Prepare
                } else {
                    Body::Prepared { majority: self.random.bool() }
                }
            }
            _ => Body::Vote {
                question: self.question(),
                epoch: self.epoch(),
                incarnation,
                asked_at: Moment(self.now),
                verdict: self.verdict(),
                view: self.view(),
                lease_ms: self.milliseconds(),
            },
        }
    }

    fn body(&mut self) -> Body {
        if self.random.bool() {
            return self.voting();
        }
        match self.random.u8(0..11) {
            0 => Body::Election,
            1 => Body::Answer,
            2 => Body::Coordinator { elected_at_ms: u64::MAX },
            3 => Body::Heartbeat { sequence: self.random.u32(0..4), membership: self.version() },
            4 => Body::HeartbeatAck { sequence: self.random.u32(0..4), membership: self.version() },
            5 => Body::Membership { version: self.version(), entries: self.entries() },
            6 => Body::Join { version: self.version(), entry: self.entry() },
            7 => {
                let version = if self.random.bool() { Some(self.version()) } else { None };
                Body::Leave { version, id: self.id() }
            }
            8 => {
                let successor = if self.random.u8(0..4) > 0 { Some(self.id()) } else { None };
                Body::Resign { successor, leaving: self.random.bool() }
            }
            9 => Body::Ask,
            _ => {
                let leader = if self.random.bool() {
                    Some(Incumbent { peer: self.peer(), elected_at_ms: 0 })
                } else {
                    None
                };
                Body::Tell { leader, entries: self.entries() }
            }
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
            16 => Event::Candidates {
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
            _ => {
                let from = self.id();
                Event::Received { from, message: Message { epoch: self.epoch(), body: self.body() } }
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
        }
    }
}

fn voters() -> BTreeSet<String> {
    (1..IDS).map(|k| peer(k).name).collect()
}

/// What it kept from its last life, with a vote or without.
fn record(random: &mut fastrand::Rng, me: &Peer) -> Record {
    let view =
        VoterView { stamp: ViewStamp { epoch: Epoch(random.u64(0..4)), version: 1 }, voters: voters() };
    let vote = VoteRecord {
        name: me.name.clone(),
        granted_to: Some(Process { id: id(random.usize(0..=IDS)), incarnation: Incarnation(1) }),
        view,
        lease_longest_ms: random.u32(0..3000),
    };
    Record {
        cluster: "test".to_string(),
        id: me.id,
        epoch: Epoch(4),
        leader: Some(peer(1)),
        members: vec![Entry { peer: peer(2), state: State::Failed }],
        vote: random.bool().then_some(vote),
    }
}

fn priority(random: &mut fastrand::Rng) -> Priority {
    Priority([0, 50, 100, 100, 200][random.usize(..5)])
}

#[test]
fn no_message_ends_a_process() {
    let count = std::env::var("BELLWETHER_SCHEDULES").ok().and_then(|c| c.parse().ok()).unwrap_or(RUNS);
    let first = std::env::var("BELLWETHER_FIRST").ok().and_then(|c| c.parse().ok()).unwrap_or(0);
    for seed in first..first + count {
        let verdict = std::panic::catch_unwind(|| Run::new(seed).check());
        assert!(verdict.is_ok(), "the run of BELLWETHER_FIRST={seed} failed");
    }
}
