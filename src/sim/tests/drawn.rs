//! What is drawn, and what the faults of a row do.

use super::{MS, SECOND, args, broken, leaders, peaceful, settled, sound};
use crate::config::checked;
use crate::election::{Preempt, Safety, Settings, Variant};
use crate::sim::clock::{Ns, ns};
use crate::sim::fault::{Fault, Kind};
use crate::sim::link_faults::{Effect, Pairs, Places};
use crate::sim::node::Restart;
use crate::sim::plan::Plan;
use crate::sim::plan_generator::draw;
use crate::sim::run::bound;
use crate::sim::target::{Between, Target};
use crate::sim::timing::longest_lease;
use std::collections::BTreeSet;
use std::time::Duration;

/// The flags of a process with these settings.
fn flags(settings: &Settings) -> Vec<String> {
    let ms = |flag: &str, time: Duration| format!("--{flag}={}ms", time.as_millis());
    let mut flags = vec![
        ms("heartbeat", settings.heartbeat),
        ms("lease", settings.failure_timeout),
        ms("answer-timeout", settings.answer_timeout),
        ms("coordinator-timeout", settings.coordinator_timeout),
        ms("stable-margin", settings.stable_margin),
        ms("start-timeout", settings.start_timeout),
        ms("forget-after", settings.forget_after),
    ];
    flags.push(match settings.preempt {
        Preempt::After(delay) => ms("preempt", delay),
        Preempt::Always => "--preempt=always".to_owned(),
        Preempt::Never => "--preempt=never".to_owned(),
    });
    if let Safety::Majority { voters } = &settings.safety {
        let voters: Vec<&str> = voters.iter().map(String::as_str).chain(["p-0"]).collect();
        let voters = voters.into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(",");
        flags.extend(["--safety=majority", "--state-dir=/tmp/bellwether"].map(str::to_owned));
        flags.push(format!("--voters={voters}"));
    }
    flags
}

/// All settings that a process of this plan is ever started with, but for its voters.
fn settings(plan: &Plan) -> impl Iterator<Item = Settings> {
    let first = plan.places.iter().map(|place| place.settings.clone());
    let changed = plan.faults.iter().filter_map(|fault| match fault.kind {
        Kind::ChangeLease { place, lease, .. } => {
            Some(Settings { failure_timeout: lease, ..plan.places[place].settings.clone() })
        }
        _ => None,
    });
    first.chain(changed)
}

#[test]
fn schedules_of_classic_have_all_variants() {
    for (name, variant) in Variant::NAMED {
        let has = |seed| draw(seed, &args(5, false)).places[0].settings.variant == variant;
        assert!((1..=40).any(has), "{name}");
    }
}

#[test]
fn all_that_is_drawn_is_what_the_command_line_allows() {
    for (n, majority) in [(3, true), (5, true), (3, false)] {
        let mut others = 0;
        for seed in 1..=40 {
            for settings in settings(&draw(seed, &args(n, majority))) {
                let flags = flags(&settings);
                let checked = checked(&flags);
                assert!(checked.is_ok(), "n = {n}, seed {seed}: {flags:?}: {:?}", checked.err());
                others += usize::from(settings.heartbeat != Settings::default().heartbeat);
            }
        }
        assert!(others > 0, "n = {n}: the timeouts are always the defaults");
    }
}

#[test]
fn delays_jump_where_leases_adapt() {
    let mut jumping = 0;
    for seed in 1..=60 {
        let plan = draw(seed, &args(3, true));
        // The first jump is at the start.
        let slowed_at_once = |place| {
            let from = Between::From(Target::Place(place));
            plan.faults.iter().any(|fault| match fault.kind {
                Kind::Disturb { between, effect: Effect::Slow(_), .. } => fault.at == 0 && between == from,
                _ => false,
            })
        };
        let jumps = (0..3).all(slowed_at_once);
        jumping += usize::from(jumps);
        let adapts = plan.places.iter().any(|place| place.settings.lease_min.is_some());
        assert!(adapts || !jumps, "seed {seed}");
    }
    assert!(jumping > 0);
}

#[test]
fn leases_change_for_all_processes_and_for_one() {
    let changed = |seed| {
        let plan = draw(seed, &args(5, true));
        let places = plan.faults.iter().filter_map(|fault| match fault.kind {
            Kind::ChangeLease { place, .. } => Some(place),
            _ => None,
        });
        places.collect::<BTreeSet<_>>().len()
    };
    let sizes: BTreeSet<usize> = (1..=100).map(changed).collect();
    assert_eq!(sizes, BTreeSet::from([0, 1, 5]));
}

#[test]
fn agreement_is_waited_for_by_the_longest_lease_of_the_plan() {
    let mut plan = peaceful(1, 3);
    let before = bound(&plan);
    let lease = Duration::from_secs(60);
    plan.faults.push(Fault {
        at: 0,
        cue: None,
        lasts: 0,
        kind: Kind::ChangeLease { place: 1, lease, in_error: true },
    });
    assert_eq!(longest_lease(&plan), lease);
    assert!(bound(&plan) >= before + 3 * (ns(lease) - 1_500 * MS), "{} ms", bound(&plan) / MS);
}

#[test]
fn a_changed_lease_counts_from_the_next_start_on() {
    let mut plan = peaceful(1, 3);
    let lease = Duration::from_secs(3);
    let kind = Kind::ChangeLease { place: 1, lease, in_error: true };
    plan.faults.push(Fault { at: 6 * SECOND, cue: None, lasts: SECOND, kind });
    let mut world = broken(plan, None, None);
    settled(&mut world);
    let of = |world: &super::World| (world.nodes[1].settings.failure_timeout, world.nodes[1].starts);
    world.run_until(6 * SECOND - 1);
    assert_eq!(of(&world), (Duration::from_millis(1500), 1));
    world.run_until(6 * SECOND + 500 * MS);
    assert!(!world.nodes[1].runs(), "it takes a restart");
    world.run_until(20 * SECOND);
    assert_eq!(of(&world), (lease, 2));
    sound(&world);
    assert_eq!(leaders(&world).len(), 1);
}

#[test]
fn before_the_first_vote_any_disk_may_be_lost_and_after_it_fewer_than_half() {
    let mut world = broken(peaceful(1, 3), None, None);
    for place in &mut world.nodes {
        // They write before they vote.
        place.settings.stable_margin = Duration::from_millis(500);
    }
    let written = |world: &super::World| {
        world.nodes.iter().filter(|p| p.disk.record.as_ref().is_some_and(|r| r.vote.is_some())).count()
    };
    while written(&world) == 0 {
        assert!(world.now < 5 * SECOND && !world.checker.voted());
        world.run_until(world.now + MS / 10);
    }
    assert!(!world.checker.voted());
    assert!((0..3).all(|place| world.may_lose_disk(place)));
    settled(&mut world);
    assert!(world.checker.voted() && written(&world) == 3);
    assert!((0..3).all(|place| world.may_lose_disk(place)));
    world.nodes[0].stays_down = true;
    world.nodes[0].fate = Restart { disk_lost: true, ..Restart::default() };
    world.crash(0, false);
    assert_eq!(world.counts.disks_lost, 1);
    assert!(!world.may_lose_disk(1) && !world.may_lose_disk(2));
}

#[test]
fn some_runs_lose_several_disks_in_the_first_two_seconds() {
    let losing = |plan: &Plan| {
        let early = plan.faults.iter().filter(|fault| fault.at <= 2 * SECOND as Ns);
        early.filter(|fault| matches!(fault.kind, Kind::Crash { disk_lost: true, .. })).count()
    };
    let several = (1..=100).filter(|seed| losing(&draw(*seed, &args(5, true))) >= 3).count();
    assert!((5..=60).contains(&several), "{several} of 100");
}

#[test]
fn pairs_are_those_that_are_meant_up_to_the_last_place() {
    let n = 31;
    let set = |pairs: Pairs| pairs.among(n).collect::<BTreeSet<_>>();
    let all = || (0..n).flat_map(|a| (0..n).map(move |b| (a, b)));
    let side: Places = 1 << 30 | 1 << 9 | 1;
    let on = |place: usize| [0, 9, 30].contains(&place);
    assert_eq!(set(Pairs::split(side)), all().filter(|(a, b)| on(*a) != on(*b)).collect());
    assert_eq!(set(Pairs::from(30)), all().filter(|(a, b)| *a == 30 && *b != 30).collect());
    assert_eq!(set(Pairs::to(9)), all().filter(|(a, b)| *b == 9 && *a != 9).collect());
    assert_eq!(set(Pairs::both(8, 30)), BTreeSet::from([(8, 30), (30, 8)]));
    assert_eq!(set(Pairs::ALL), all().collect());
    assert_eq!(set(Pairs::one_way(1, 2).and(Pairs::one_way(30, 0))), BTreeSet::from([(1, 2), (30, 0)]));
}
