//! Draws single faults, of those kinds that a run has.

use super::clock::{MS, Ns, RATE_PPM_MAX, SLEW_PPM_MAX};
use super::disk::{CrashPoint, Leaves};
use super::dns::DnsFault;
use super::fault::{Kind, Shape};
use super::fault_kind::FaultKind;
use super::link_faults::{Classes, Effect, Pairs, Places};
use super::target::{Between, Target};
use crate::config::SimArgs;
use crate::election::{Body, CrashEvidence};
use fastrand::Rng;

/// Which sorts of faults a run has.
#[derive(Debug)]
pub(super) struct FaultMix {
    sorts: Vec<FaultKind>,
    /// Whether something on the path may refuse connections in the name of a live process.
    refuses: bool,
}

impl FaultMix {
    /// All sorts, or in a swarm half of them.
    pub(super) fn draw(random: &mut Rng, args: &SimArgs) -> FaultMix {
        let some: Vec<FaultKind> = FaultKind::ALL
            .iter()
            .copied()
            .filter(|sort| sort.is_mixed())
            .filter(|sort| (!args.swarm || random.bool()) && (!args.majority || *sort != FaultKind::Join))
            .collect();
        // Under `release` the operator has ruled out a refusal in the name of a live process.
        let refuses = args.crash_evidence != Some(CrashEvidence::Release);
        FaultMix { sorts: if some.is_empty() { FaultKind::ALL.to_vec() } else { some }, refuses }
    }

    pub(super) fn has(&self, sort: FaultKind) -> bool {
        self.sorts.contains(&sort)
    }

    /// A fault. One that waits for a cue often hits the process that gave the cue.
    pub(super) fn kind(&self, random: &mut Rng, n: usize, cued: bool) -> Kind {
        let target = target(random, n, cued);
        let other = other(random, n, target);
        let drawn = random.choice(self.sorts.iter().copied()).unwrap_or(FaultKind::Crash);
        match drawn {
            FaultKind::CrashInWrite => {
                Kind::CrashInWrite { target, point: crash_point(random), disk_lost: random.u8(0..4) == 0 }
            }
            FaultKind::FailedWrite => Kind::FailedWrite { target, leaves: Leaves::Old },
            FaultKind::TornWrite => Kind::FailedWrite {
                target,
                leaves: if random.bool() { Leaves::New } else { Leaves::Damaged },
            },
            FaultKind::SlowDisk => Kind::SlowDisk { target, takes: random.u64(MS..=700 * MS) },
            FaultKind::Stall => Kind::Stall { target, before_status: random.bool() },
            FaultKind::Pause => Kind::Pause { target },
            FaultKind::Leave => Kind::Leave { target, moves: random.bool() },
            FaultKind::Partition => Kind::Cut {
                between: sides(random, n, target),
                shape: Shape::Split,
                swallows: swallows(random),
            },
            FaultKind::PartialPartition => {
                let between = if random.bool() {
                    Between::Both(target, other)
                } else {
                    Between::Pairs(partial(random, n))
                };
                Kind::Cut { between, shape: Shape::Partial, swallows: swallows(random) }
            }
            FaultKind::OneWayPartition => {
                let between = match random.u8(0..3) {
                    0 => Between::From(target),
                    1 => Between::To(target),
                    _ => Between::OneWay(target, other),
                };
                Kind::Cut { between, shape: Shape::OneWay, swallows: swallows(random) }
            }
            FaultKind::Loss | FaultKind::Duplication | FaultKind::Reordering | FaultKind::Delay => {
                let effect = effect(random, drawn);
                Kind::Disturb { between: between(random, n, target, other), classes: classes(random), effect }
            }
            FaultKind::Reset => Kind::Reset { a: target, b: other },
            FaultKind::RefusedInError if self.refuses => Kind::Misjudge { target, of: other },
            FaultKind::ClockRate => Kind::Rate { target, ppm: rate(random) },
            FaultKind::Slew => Kind::Slew { target, ppm: between_ends(random, SLEW_PPM_MAX) },
            FaultKind::Suspend => Kind::Suspend { target },
            FaultKind::WallJump => Kind::WallJump { target, ahead_ms: random.i64(-86_400_000..=86_400_000) },
            FaultKind::Dns => Kind::Dns { target, fault: dns(random) },
            FaultKind::Join => Kind::Join { place: n },
            // The last of these come in rows of their own.
            FaultKind::Crash
            | FaultKind::HostGone
            | FaultKind::RefusedInError
            | FaultKind::VotersChanged
            | FaultKind::LeaseChanged
            | FaultKind::ResignAsked
            | FaultKind::Sicken
            | FaultKind::TransferAsked
            | FaultKind::Cordon => Kind::Crash {
                target,
                kept: random.bool(),
                disk_lost: random.u8(0..3) == 0,
                moves: random.u8(0..4) == 0,
                host_gone: drawn == FaultKind::HostGone,
            },
        }
    }
}

/// What the network does to messages.
fn effect(random: &mut Rng, drawn: FaultKind) -> Effect {
    match drawn {
        FaultKind::Loss => Effect::Lose(if random.bool() { 1000 } else { random.u16(50..=900) }),
        FaultKind::Duplication => Effect::Duplicate(random.u16(200..=1000), random.u64(MS..=3_000 * MS)),
        FaultKind::Reordering => Effect::Reorder(late(random)),
        _ => Effect::Slow(late(random)),
    }
}

/// A clock's rate, often at one end of what is allowed.
pub(super) fn rate(random: &mut Rng) -> i32 {
    between_ends(random, RATE_PPM_MAX)
}

fn between_ends(random: &mut Rng, most: i32) -> i32 {
    match random.u8(0..4) {
        0 => most,
        1 => -most,
        _ => random.i32(-most..=most),
    }
}

/// Some of the first `n` places as bits, one at least and `most` at most.
pub(super) fn some(random: &mut Rng, n: usize, most: usize) -> Places {
    (0..random.usize(1..=most)).fold(0, |places, _| places | 1 << random.usize(0..n))
}

fn target(random: &mut Rng, n: usize, cued: bool) -> Target {
    match random.u8(0..6) {
        0 | 1 if cued => Target::Actor,
        0..=2 => Target::Leader,
        3 => Target::Follower(random.usize(0..n)),
        _ => Target::Place(random.usize(0..n)),
    }
}

fn other(random: &mut Rng, n: usize, than: Target) -> Target {
    match (than, random.u8(0..3)) {
        (Target::Leader, _) | (_, 0) => Target::Follower(random.usize(0..n)),
        (_, 1) => Target::Leader,
        _ => Target::Place(random.usize(0..n)),
    }
}

fn crash_point(random: &mut Rng) -> CrashPoint {
    if random.u8(0..3) == 0 { CrashPoint::BeforeWrite } else { CrashPoint::AfterWrite(random.u8(0..6)) }
}

fn swallows(random: &mut Rng) -> bool {
    random.u8(0..3) == 0
}

/// How late messages are; often by about a lease.
fn late(random: &mut Rng) -> Ns {
    match random.u8(0..3) {
        0 => random.u64(MS..=100 * MS),
        1 => random.u64(100 * MS..=1_000 * MS),
        _ => random.u64(1_000 * MS..=2_500 * MS),
    }
}

fn sides(random: &mut Rng, n: usize, target: Target) -> Between {
    if random.bool() { Between::Away(target) } else { Between::Sides(some(random, n, n - 1)) }
}

fn partial(random: &mut Rng, n: usize) -> Pairs {
    let two = |random: &mut Rng| {
        let a = random.usize(0..n);
        Pairs::both(a, (a + random.usize(1..n)) % n)
    };
    (0..random.usize(1..=n)).map(|_| two(random)).fold(Pairs::default(), Pairs::and)
}

fn between(random: &mut Rng, n: usize, target: Target, other: Target) -> Between {
    match random.u8(0..6) {
        0 => Between::All,
        1 => Between::From(target),
        2 => Between::To(target),
        3 => Between::OneWay(target, other),
        4 => Between::Both(target, other),
        _ => Between::Pairs(partial(random, n)),
    }
}

/// All messages, or those of one name or two.
fn classes(random: &mut Rng) -> Classes {
    if random.u8(0..3) == 0 {
        return Classes::ALL;
    }
    let name = |random: &mut Rng| Classes::of(random.choice(Body::NAMES).unwrap_or_default());
    let first = name(random);
    if random.bool() { first } else { first.and(name(random)) }
}

fn dns(random: &mut Rng) -> DnsFault {
    match random.u8(0..3) {
        0 => DnsFault::Stale,
        1 => DnsFault::Partial(random.u32(..)),
        _ => DnsFault::Empty,
    }
}
