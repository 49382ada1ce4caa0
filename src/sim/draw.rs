//! Draws a plan from a seed.

use super::air::Pairs;
use super::clock::{MS, Ns, RATE_PPM_MAX};
use super::disk::{CrashPoint, Leaves};
use super::dns::DnsFault;
use super::faults::{Fault, Kind, Shape};
use super::plan::{Draft, Plan};
use super::process::PLACES_MAX;
use crate::config::SimArgs;
use crate::election::{CrashEvidence, Preempt, Priority, Safety, Settings, Variant};
use fastrand::Rng;
use std::time::Duration;

const FAULTS: std::ops::RangeInclusive<usize> = 5..=15;
const SECOND: Ns = 1000 * MS;

/// What a seed stands for under these arguments.
pub(super) fn draw(seed: u64, args: &SimArgs) -> Plan {
    let random = &mut Rng::with_seed(seed);
    let n = args.n;
    let settings = settings(random, args);
    let may_join = !args.majority && n + 1 < PLACES_MAX;
    let places = (0..n + usize::from(may_join)).map(|place| draft(random, &settings, place, n)).collect();
    let mut plan = Plan {
        seed,
        places,
        delay: random.u64(200..=5_000) * MS / 1000,
        jitter: if random.bool() { 0 } else { random.u64(0..=10_000) * MS / 1000 },
        link_timeout: if random.u8(0..8) == 0 { 60 * SECOND } else { 3 * SECOND },
        faults: Vec::new(),
        chaos: random.u64(6..=14) * SECOND,
        dead: if random.bool() { some(random, n, (n - 1) / 2) } else { 0 },
    };
    spread_priorities(random, &mut plan);
    let kinds = kinds(random, args.swarm);
    let mut at = random.u64(0..=3000) * MS;
    for _ in 0..random.usize(FAULTS) {
        // Faults that meet are worth more than faults that are far apart.
        at += match random.u8(0..4) {
            0 | 1 => random.u64(0..=50 * MS),
            2 => random.u64(0..=600 * MS),
            _ => random.u64(0..=3 * SECOND),
        };
        if at >= plan.chaos {
            at = random.u64(0..=plan.chaos);
        }
        let mut number = random.choice(&kinds).copied().unwrap_or(0);
        if !may_join && number == JOIN {
            number = 0;
        }
        let fault = Fault { at, lasts: lasts(random), kind: kind(random, number, n, args) };
        plan.faults.push(fault);
    }
    plan
}

/// The number of [`Kind::Join`].
const JOIN: usize = 9;

/// Which kinds of faults there are: all of them, or in a swarm half of them.
fn kinds(random: &mut Rng, swarm: bool) -> Vec<usize> {
    let all = 0..Kind::NAMES.len();
    let some: Vec<usize> = all.clone().filter(|_| !swarm || random.bool()).collect();
    if some.is_empty() { all.collect() } else { some }
}

fn settings(random: &mut Rng, args: &SimArgs) -> Settings {
    let names = (0..args.n).map(|place| format!("p-{place}")).collect();
    let safety = if args.majority { Safety::Majority { voters: names } } else { Safety::Classic };
    let preempt = match random.u8(0..4) {
        0 => Preempt::Always,
        1 => Preempt::Never,
        _ => Preempt::After(Duration::from_millis(random.u64(300..=3_000))),
    };
    let paper = !args.majority && random.bool();
    let evidence = [CrashEvidence::Off, CrashEvidence::Suspect, CrashEvidence::Suspect];
    let evidence = random.choice(evidence).unwrap_or(CrashEvidence::Suspect);
    Settings {
        variant: if paper { Variant::Paper } else { Variant::Detector },
        safety,
        preempt,
        crash_evidence: args.crash_evidence.unwrap_or(evidence),
        start_timeout: Duration::from_secs(3),
        expect: if random.bool() { args.n } else { 0 },
        forget_after: Duration::from_secs(random.u64(2..=60)),
        ..Settings::default()
    }
}

fn draft(random: &mut Rng, settings: &Settings, place: usize, n: usize) -> Draft {
    Draft {
        settings: settings.clone(),
        priority: Priority::DEFAULT,
        revision: if random.bool() { "a".to_owned() } else { "b".to_owned() },
        clock_ns: random.u64(0..=864_000) * SECOND + random.u64(0..SECOND),
        ppm: rate(random),
        starts_at: (place < n).then(|| random.u64(0..=500) * MS),
    }
}

fn rate(random: &mut Rng) -> i32 {
    match random.u8(0..4) {
        0 => RATE_PPM_MAX,
        1 => -RATE_PPM_MAX,
        _ => random.i32(-RATE_PPM_MAX..=RATE_PPM_MAX),
    }
}

/// In half of the runs priorities differ, and in some of these one process never leads.
fn spread_priorities(random: &mut Rng, plan: &mut Plan) {
    if random.bool() {
        return;
    }
    for place in &mut plan.places {
        place.priority = Priority(random.choice([50, 100, 100, 200]).unwrap_or(100));
    }
    if random.u8(0..4) == 0 {
        let at = random.usize(0..plan.places.len());
        plan.places[at].priority = Priority::NEVER;
    }
}

/// Some of the first `n` places, one at least and `most` at most.
fn some(random: &mut Rng, n: usize, most: usize) -> u8 {
    let mut places = 0;
    for _ in 0..random.usize(1..=most) {
        places |= 1 << random.usize(0..n);
    }
    places
}

fn lasts(random: &mut Rng) -> Ns {
    match random.u8(0..6) {
        0 | 1 => random.u64(20 * MS..=300 * MS),
        2 | 3 => random.u64(300 * MS..=1_300 * MS),
        // About a lease.
        4 => random.u64(1_350 * MS..=1_650 * MS),
        _ => random.u64(1_600 * MS..=4_500 * MS),
    }
}

/// From some places to some, in both directions or not.
fn pairs(random: &mut Rng, n: usize) -> Pairs {
    match random.u8(0..3) {
        0 => Pairs::split(some(random, n, n)).and(Pairs::split(1)),
        1 => {
            let (a, b) = two(random, n);
            Pairs::both(a, b)
        }
        _ => {
            let (a, b) = two(random, n);
            Pairs::one_way(a, b)
        }
    }
}

fn two(random: &mut Rng, n: usize) -> (usize, usize) {
    let a = random.usize(0..n);
    (a, (a + random.usize(1..n)) % n)
}

fn cut(random: &mut Rng, shape: Shape, n: usize) -> Pairs {
    match shape {
        Shape::Split => Pairs::split(some(random, n, n - 1)),
        Shape::OneWay => {
            let (a, b) = two(random, n);
            Pairs::one_way(a, b)
        }
        Shape::Partial => {
            let mut pairs = Pairs::default();
            for _ in 0..random.usize(1..=n) {
                let (a, b) = two(random, n);
                pairs = pairs.and(Pairs::both(a, b));
            }
            pairs
        }
    }
}

fn kind(random: &mut Rng, number: usize, n: usize, args: &SimArgs) -> Kind {
    let place = random.usize(0..n);
    let disk_lost = random.u8(0..3) == 0;
    match number {
        0 | 1 => Kind::Crash {
            place,
            kept: random.bool(),
            disk_lost,
            moves: random.u8(0..4) == 0,
            host_gone: number == 1,
        },
        2 => {
            let before = random.u8(0..3) == 0;
            let point =
                if before { CrashPoint::BeforeWrite } else { CrashPoint::AfterWrite(random.u8(0..6)) };
            Kind::CrashInWrite { place, point, disk_lost: false }
        }
        3 => Kind::FailedWrite { place, leaves: Leaves::Old },
        4 => Kind::FailedWrite { place, leaves: if random.bool() { Leaves::New } else { Leaves::Damaged } },
        5 => Kind::SlowDisk { place, takes: random.u64(MS..=700 * MS) },
        6 => Kind::Stall { place, before_view: random.bool() },
        7 => Kind::Pause { place },
        8 => Kind::Leave { place, moves: random.bool() },
        JOIN => Kind::Join { place: n },
        10..=12 => {
            let shape = [Shape::Split, Shape::Partial, Shape::OneWay][number - 10];
            Kind::Cut { pairs: cut(random, shape, n), shape, swallows: random.u8(0..3) == 0 }
        }
        13 => Kind::Loss { pairs: pairs(random, n), permille: random.u16(50..=900) },
        14 => Kind::Duplicate {
            pairs: pairs(random, n),
            permille: random.u16(50..=900),
            later: random.u64(MS..=3 * SECOND),
        },
        15 => Kind::Reorder { pairs: pairs(random, n), late: random.u64(MS..=800 * MS) },
        16 => Kind::Slow { pairs: pairs(random, n), late: random.u64(MS..=1_800 * MS) },
        17 => {
            let (a, b) = two(random, n);
            // Under `release` a refusal in the name of a live process is what the operator has ruled out.
            let honest = args.crash_evidence == Some(CrashEvidence::Release);
            if honest || random.bool() { Kind::Reset { a, b } } else { Kind::Misjudge { who: a, whom: b } }
        }
        18 => Kind::Rate { place, ppm: rate(random) },
        19 => Kind::WallJump { place, ahead_ms: random.i64(-86_400_000..=86_400_000) },
        _ => {
            let fault = match random.u8(0..3) {
                0 => DnsFault::Stale,
                1 => DnsFault::Partial(random.u8(..)),
                _ => DnsFault::Empty,
            };
            Kind::Dns { place, fault }
        }
    }
}
