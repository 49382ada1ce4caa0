//! Draws a plan from a seed: the cluster, and when which faults come. `fault_generator` draws single faults.

use super::clock::{MS, Ns, RATE_PPM_MAX, ns};
use super::fault::{Fault, Kind};
use super::fault_generator::{FaultMix, rate, some};
use super::fault_kind::FaultKind;
use super::link_faults::PLACES_MAX;
use super::operators::operators;
use super::plan::{Draft, Plan};
use super::target::{Cue, Target};
use super::timing;
use crate::config::SimArgs;
use crate::election::{CrashEvidence, Preempt, Priority, Safety, Settings, Variant};
use fastrand::Rng;
use std::collections::BTreeSet;
use std::time::Duration;

/// How many faults a run has, but for those that come in a row, as a change of all voters does.
const FAULTS: std::ops::RangeInclusive<usize> = 5..=15;
/// Later draws have generators of their own, so that they leave the rest of a seed's plan as it was.
const LATER: u64 = 0x6c61_7465_7264_7261;
const LONG_LEASES: u64 = 0x6c6f_6e67_6c65_6173;
const SECOND: Ns = 1000 * MS;

/// What a seed stands for under these arguments.
pub(super) fn draw(seed: u64, args: &SimArgs) -> Plan {
    let random = &mut Rng::with_seed(seed);
    let n = args.n;
    let mix = FaultMix::draw(random, args);
    let may_join = !args.majority && n + 1 < PLACES_MAX;
    let later = &mut Rng::with_seed(seed ^ LATER);
    let mut settings = settings(random, args);
    if later.u8(0..4) == 0 {
        timing::timeouts(later, &mut settings);
    }
    if args.majority {
        timing::long_lease(&mut Rng::with_seed(seed ^ LONG_LEASES), &mut settings);
    }
    let mut plan = Plan {
        seed,
        n,
        places: (0..n + usize::from(may_join)).map(|place| draft(random, &settings, place, n)).collect(),
        delay: delay(random),
        jitter: if random.bool() { 0 } else { random.u64(0..=10_000) * MS / 1000 },
        link_timeout: if random.u8(0..8) == 0 { 60 * SECOND } else { 3 * SECOND },
        faults: Vec::new(),
        short_leases: false,
        whole_seconds: false,
        chaos: random.u64(6..=14) * SECOND,
        dead: if random.bool() { some(random, n, (n - 1) / 2) } else { 0 },
    };
    spread_priorities(random, &mut plan);
    let revotes = args.majority && mix.has(FaultKind::VotersChanged);
    let voters = if revotes { first_voters(random, &mut plan) } else { (0..n).collect() };
    faults(random, &mut plan, &mix);
    if revotes {
        change_voters(random, &mut plan, &voters);
    }
    if args.majority && later.u8(0..5) == 0 {
        timing::change_leases(later, &mut plan);
    }
    if args.majority && later.u8(0..5) == 0 {
        found(later, &mut plan);
    }
    plan.short_leases = args.majority && later.u8(0..4) == 0;
    if later.u8(0..4) == 0 {
        operators(later, &mut plan);
    }
    let adapts = later.u8(0..3) == 0;
    if adapts {
        timing::adapt(later, &mut plan);
    }
    if later.bool() {
        let variant = if later.bool() { Variant::Optimized } else { Variant::Announcer };
        plan.places.iter_mut().for_each(|place| place.settings.variant = variant);
    }
    if adapts && later.bool() {
        timing::jump_delays(later, &mut plan);
    }
    let lease = timing::longest_lease(&plan);
    for place in &mut plan.places {
        // A member is not forgotten before it is known to be dead.
        place.settings.forget_after = place.settings.forget_after.max(lease);
    }
    plan.whole_seconds = random.u8(0..3) == 0;
    plan
}

fn faults(random: &mut Rng, plan: &mut Plan, mix: &FaultMix) {
    let mut at = random.u64(0..=3000) * MS;
    let mut left = random.usize(*FAULTS.start()..=plan.n.max(*FAULTS.end()));
    let lease = ns(plan.places[0].settings.failure_timeout);
    while left > 0 {
        // Faults that overlap find more than faults that are far apart.
        at += match random.u8(0..4) {
            0 | 1 => random.u64(0..=50 * MS),
            2 => random.u64(0..=600 * MS),
            _ => random.u64(0..=3 * SECOND),
        };
        if at >= plan.chaos {
            at = random.u64(0..=plan.chaos);
        }
        let cue = (random.u8(0..3) == 0).then(|| random.choice(Cue::ALL)).flatten();
        let together = if cue.is_some() { random.usize(1..=3).min(left) } else { 1 };
        for _ in 0..together {
            let delay = if random.bool() { 0 } else { random.u64(0..=400 * MS) };
            let fault = Fault {
                at,
                cue: cue.map(|cue| (cue, delay)),
                lasts: lasts(random, lease),
                kind: mix.kind(random, plan.n, cue.is_some()),
            };
            plan.faults.push(fault);
        }
        left -= together;
    }
}

fn settings(random: &mut Rng, args: &SimArgs) -> Settings {
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
        safety: safety(args.majority, 0..args.n),
        preempt,
        crash_evidence: args.crash_evidence.unwrap_or(evidence),
        start_timeout: Duration::from_secs(3),
        expect: if random.bool() { args.n } else { 0 },
        forget_after: Duration::from_secs(random.u64(2..=60)),
        ..Settings::default()
    }
}

fn safety(majority: bool, places: impl Iterator<Item = usize>) -> Safety {
    let voters = places.map(|place| format!("p-{place}")).collect();
    if majority { Safety::Majority { voters } } else { Safety::Classic }
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

/// In half of the runs priorities differ, and in some of these one process never leads. In others the clocks
/// are at the two ends of what is allowed.
fn spread_priorities(random: &mut Rng, plan: &mut Plan) {
    if random.bool() {
        for place in &mut plan.places {
            place.priority = Priority(random.choice([50, 100, 100, 200]).unwrap_or(100));
        }
        if random.u8(0..4) == 0 {
            let at = random.usize(0..plan.places.len());
            plan.places[at].priority = Priority::NEVER;
        }
    }
    if random.u8(0..3) == 0 {
        for place in &mut plan.places {
            place.ppm = if random.bool() { RATE_PPM_MAX } else { -RATE_PPM_MAX };
        }
    }
}

/// The shortest way of a message: within a zone, or between zones.
fn delay(random: &mut Rng) -> Ns {
    let longest = if random.bool() { 500 } else { 5_000 };
    random.u64(100..=longest) * MS / 1000
}

fn lasts(random: &mut Rng, lease: Ns) -> Ns {
    match random.u8(0..6) {
        0 | 1 => random.u64(20 * MS..=300 * MS),
        2 | 3 => random.u64(300 * MS..=1_300 * MS),
        // About a lease.
        4 => random.u64(lease / 10 * 9..=lease / 10 * 11),
        _ => random.u64(1_600 * MS..=4_500 * MS),
    }
}

/// Several processes crash in the first two seconds, most of them with their disks, while others start or
/// vote for the first time.
fn found(random: &mut Rng, plan: &mut Plan) {
    if random.bool() {
        for place in plan.places.iter_mut().filter(|place| place.starts_at.is_some()) {
            place.starts_at = Some(random.u64(0..=1_500) * MS);
        }
    }
    let cues = [Cue::Started, Cue::Started, Cue::PreVote, Cue::VoteRequest, Cue::Vote, Cue::Elected];
    for _ in 0..random.usize(2..=plan.n.max(4)) {
        let cue = if random.u8(0..3) > 0 { random.choice(cues) } else { None };
        let target = match random.u8(0..3) {
            0 if cue.is_some() => Target::Actor,
            _ => Target::Place(random.usize(0..plan.n)),
        };
        let kind = Kind::Crash {
            target,
            kept: random.bool(),
            disk_lost: random.u8(0..4) > 0,
            moves: random.u8(0..4) == 0,
            host_gone: random.u8(0..8) == 0,
        };
        let at = random.u64(0..=2 * SECOND);
        let delay = random.u64(0..=20 * MS);
        let lasts = random.u64(10 * MS..=700 * MS);
        plan.faults.push(Fault { at, cue: cue.map(|cue| (cue, delay)), lasts, kind });
    }
}

/// The voters of the first start: the first two places, and some of the others. The rest is started when it
/// becomes a voter.
fn first_voters(random: &mut Rng, plan: &mut Plan) -> BTreeSet<usize> {
    let voters: BTreeSet<usize> = (0..plan.n).filter(|place| *place < 2 || random.u8(0..4) > 0).collect();
    for (place, draft) in plan.places.iter_mut().enumerate() {
        draft.settings.safety = safety(true, voters.iter().copied());
        if !voters.contains(&place) {
            draft.starts_at = None;
        }
    }
    plan.dead = 0;
    voters
}

/// Once or twice all processes get other `--voters`, one after the other.
fn change_voters(random: &mut Rng, plan: &mut Plan, first: &BTreeSet<usize>) {
    let mut running = first.clone();
    let mut at = random.u64(2 * SECOND..=5 * SECOND);
    for _ in 0..random.usize(1..=2) {
        let target: BTreeSet<usize> = (0..plan.n).filter(|_| random.u8(0..3) > 0).collect();
        if target.len() < 2 {
            continue;
        }
        running.extend(&target);
        let voters = target.iter().fold(0, |bits, place| bits | 1 << place);
        let step = random.u64(50 * MS..=timing::longest_step(plan.n));
        let mut order: Vec<usize> = running.iter().copied().collect();
        random.shuffle(&mut order);
        // A process that votes no more is not restarted: its flags would have to name it.
        for place in order.into_iter().filter(|place| target.contains(place)) {
            let lasts = random.u64(50 * MS..=600 * MS);
            plan.faults.push(Fault { at, cue: None, lasts, kind: Kind::Revote { place, voters } });
            at += step;
        }
        at += random.u64(0..=2 * SECOND);
    }
    plan.faults.sort_by_key(|fault| fault.at);
    plan.chaos = plan.chaos.max(at);
}
