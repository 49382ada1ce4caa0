//! All of it at once, drawn: any identity, any message, any epoch, whole frames and halves.
//! `BELLWETHER_SEED` draws the same again, though processes never take it in the same order.

use crate::cgroup::MemoryGroups;
use crate::client::{Claim, Link};
use crate::memory::{longest, within_bounds};
use crate::rows::{BOTH, alone, in_each};
use crate::siege::{Attacker, EPOCHS_ABOVE_CLOCK, Level, Siege, Stop, clock_ms};
use crate::wire::{Ballot, Config, Entry, Fields, Known, Message, Outcome, Peer, Version, bye, frame};
use fastrand::Rng;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

const LASTING: Duration = Duration::from_secs(3);
/// How many attackers draw at each process.
const ATTACKERS: usize = 2;
/// Numbers at the ends of what a field may hold, and a little beyond.
const EDGES: [u64; 8] = [0, 1, 1000, 1001, 3_600_001, u32::MAX as u64, EPOCHS_ABOVE_CLOCK, (1 << 62) + 1];

/// What an attacker has learnt, and what it draws with.
struct Draw {
    random: Rng,
    strangers: Vec<Claim>,
    victims: Vec<Peer>,
    epoch: u64,
}

impl Draw {
    fn new(siege: &Siege, seed: u64) -> Draw {
        let strangers = (0..300).map(|number| siege.stranger(number)).collect();
        let (victims, epoch) = (siege.victims.clone(), siege.before.epoch);
        Draw { random: Rng::with_seed(seed), strangers, victims, epoch }
    }

    fn of<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.random.usize(..items.len())].clone()
    }

    fn victim(&mut self) -> Peer {
        let victims = self.victims.clone();
        self.of(&victims)
    }

    fn edge(&mut self) -> u64 {
        self.of(&EDGES)
    }

    fn small(&mut self) -> u32 {
        self.edge().min(u32::MAX.into()) as u32
    }

    /// An epoch of now, of soon, or of no election ever.
    fn epoch(&mut self) -> u64 {
        let soon = self.epoch + self.random.u64(..4);
        let limit = clock_ms() + EPOCHS_ABOVE_CLOCK;
        let (raised, edge) = (self.epoch + (self.random.u64(..64) << 32), self.edge());
        self.of(&[soon, soon, soon, limit, raised, edge])
    }

    fn version(&mut self) -> Version {
        (self.epoch(), self.small())
    }

    /// A stranger, or a member, or something between the two.
    fn claim(&mut self) -> Claim {
        let strangers = self.strangers.clone();
        let (stranger, victim) = (self.of(&strangers), self.victim());
        let Claim { peer, source, .. } = stranger.clone();
        let priority = self.of(&[0, 100, 1000]);
        let peer = match self.random.u8(..8) {
            0 => victim,
            1 => Peer { address: peer.address, ..victim },
            2 => Peer { incarnation: 7, ..victim },
            3 => Peer { address: victim.address, ..peer },
            4 => Peer { name: victim.name, priority, ..peer },
            5 => longest(peer),
            _ => Peer { priority, ..peer },
        };
        let source = self.of(&[source, source, Ipv4Addr::LOCALHOST]);
        Claim { peer, source, ..stranger }
    }

    fn entries(&mut self) -> Vec<Entry> {
        let count = self.of(&[0, 1, 4, 256]);
        let elsewhere = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 77), 9));
        let drawn = (0..count).map(|_| {
            let peer = self.claim().peer;
            let address = self.of(&[peer.address, elsewhere]);
            (Peer { address, ..peer }, self.random.bool())
        });
        drawn.collect()
    }

    fn config(&mut self) -> Config {
        let mut voters: Vec<String> = self.victims.iter().map(|peer| peer.name.clone()).collect();
        voters.truncate(self.random.usize(..=voters.len()));
        voters.push(self.claim().peer.name);
        voters.sort();
        let lease_ms = self.small();
        Config { version: self.version(), voters, lease_ms, bound_ms: lease_ms }
    }

    fn ballot(&mut self, sender: &Peer) -> Ballot {
        let asked_at = (self.edge(), 999_999_999);
        let (vote, incarnation) = (self.random.bool(), sender.incarnation);
        Ballot { vote, epoch: self.epoch(), incarnation, asked_at, lease_ms: self.small() }
    }

    fn message(&mut self, sender: &Peer) -> Message {
        let (sequence, flags) = (self.small(), (self.edge(), self.small()));
        let (yes, victim) = (self.random.bool(), self.victim().id);
        match self.random.u8(..20) {
            0 => Message::Election,
            1 => Message::Answer,
            2 => Message::Coordinator { elected_at_ms: self.edge() },
            3 => Message::Heartbeat {
                sequence,
                lease_ms: self.small(),
                learnt: (self.small(), self.small() as u8),
            },
            4 => Message::HeartbeatAck { sequence, membership: self.version() },
            5 => Message::Membership { version: self.version(), entries: self.entries() },
            6 => Message::Join { version: self.version(), entry: (self.claim().peer, yes) },
            7 => Message::Leave { version: yes.then(|| self.version()), id: victim },
            8 => Message::Resign { successor: yes.then_some(victim), leaving: self.random.bool() },
            9 => Message::LeaderQuery,
            10 => {
                let leader = yes.then(|| (self.claim().peer, self.edge()));
                Message::LeaderInfo { leader, entries: self.entries() }
            }
            11 => Message::VoteRequest {
                ballot: self.ballot(sender),
                contender: yes,
                transfer: self.random.bool().then(|| self.epoch()),
                config: self.config(),
            },
            12 => {
                let promised = Outcome::Promised(self.small());
                let outcome = self.of(&[Outcome::Granted, Outcome::NoRecord, promised]);
                let config = yes.then(|| self.config());
                Message::Vote { ballot: self.ballot(sender), outcome, config }
            }
            13 => {
                let (lease_ms, config) = (self.small(), self.version());
                Message::Renew { sequence, lease_ms, config, learnt: (self.small(), self.small() as u8) }
            }
            14 => Message::Renewed {
                sequence,
                membership: self.version(),
                promised: yes,
                firm: yes,
                config: self.version(),
                flags,
            },
            15 => Message::Configuration(self.config()),
            16 => Message::Recover { round: sequence, incarnation: self.edge() },
            17 => {
                let state = if yes { Known::Founded(self.config()) } else { Known::Nothing };
                Message::Recovered { round: sequence, incarnation: self.edge(), state, flags }
            }
            18 => Message::ProposeTransfer,
            _ => Message::TransferReady { majority: yes },
        }
    }

    /// Something to send: mostly a message.
    fn bytes(&mut self, claim: &Claim) -> Vec<u8> {
        let epoch = self.epoch();
        let mut whole = self.message(&claim.peer).frame(&claim.cluster, &claim.peer, epoch);
        match self.random.u8(..32) {
            0 => whole.truncate(self.random.usize(..whole.len())),
            1 => whole = frame(self.random.u16(..48), &Fields::default().number(epoch)),
            2 => whole = bye(),
            3 => whole = claim.hello(),
            _ => {}
        }
        whole
    }

    /// One connection: some words, with or without a look at what comes back, and an end.
    fn talk(&mut self, to: SocketAddr, stop: &Stop) {
        let claim = self.claim();
        let Ok(mut link): Result<Link, _> = claim.link(to) else { return };
        for _ in 0..self.random.u32(..50) {
            let bytes = self.bytes(&claim);
            if stop.is_over() || !link.send(&bytes) {
                return;
            }
            if self.random.bool() {
                link.hear();
            }
        }
    }
}

fn seed() -> u64 {
    let seed = std::env::var("BELLWETHER_SEED").ok().map(|text| text.parse().unwrap());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("BELLWETHER_SEED={seed}");
    seed
}

fn attackers(siege: &Siege, seed: u64) -> Vec<Attacker<'static>> {
    let all = (0..siege.real.n()).flat_map(|place| (0..ATTACKERS).map(move |number| (place, number)));
    let attackers = all.map(|(place, number)| {
        let to = siege.address(place);
        let draw = Draw::new(siege, seed ^ (place * ATTACKERS + number) as u64);
        let draw = std::sync::Mutex::new(draw);
        Box::new(move |stop: &Stop| draw.lock().unwrap().talk(to, stop)) as Attacker
    });
    attackers.collect()
}

// red before: F1 to F9
#[test]
fn whatever_is_said_makes_no_second_leader_and_outlasts_no_attack() {
    let seed = seed();
    in_each(BOTH, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let attackers = attackers(&siege, seed);
        siege.flood(attackers, |_| std::thread::sleep(LASTING));
        within_bounds(&siege, "everything");
        siege.lift();
    });
}

/// With a secret all of it is stopped at the handshake.
#[test]
fn whatever_is_said_without_the_secret_changes_nothing() {
    let seed = seed();
    in_each(BOTH, |level, n| {
        let mut siege = Siege::sealed(level, n);
        let attackers = attackers(&siege, seed);
        siege.attack(LASTING, attackers);
        within_bounds(&siege, "everything without the secret");
        siege.undisturbed();
        for place in 0..n {
            let failed = siege.real.metric(place, "bellwether_authentications_failed_total").unwrap();
            assert!(failed > 0.0, "no attack has reached {}", siege.real.name(place));
        }
        siege.lift();
    });
}

/// For as many seconds as `BELLWETHER_HOSTILE_SECONDS` says, which are 600 for a search of its own. As root,
/// each process has a memory cgroup of its own.
#[test]
#[ignore = "takes minutes"]
fn whatever_is_said_for_long_is_borne() {
    let (seed, seconds) = (seed(), std::env::var("BELLWETHER_HOSTILE_SECONDS").ok());
    let lasting = Duration::from_secs(seconds.map_or(30, |text| text.parse().unwrap()));
    alone(&[(Level::Classic, 5), (Level::Majority, 5)], |level, n| {
        let mut groups = MemoryGroups::default();
        let mut siege = Siege::begin(level, n, &[]);
        groups.confine((0..n).map(|place| siege.real.pid(place).unwrap()));
        let attackers = attackers(&siege, seed);
        siege.flood(attackers, |_| std::thread::sleep(lasting));
        within_bounds(&siege, "everything, for long");
        siege.lift();
    });
}
