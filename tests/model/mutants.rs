//! What the model is worth: machines that leave out a clause of docs/safety/protocol.md, and the
//! searches that see it.
//! Each search finds nothing in the machine as it is.
//!
//! `cargo test --profile checks --locked --features mutations --test model mutants -- --nocapture`
//!
//! The lease is 12 ticks here, and each search begins where little has to go wrong any more. A message takes
//! a tick, and two leaders need several messages within one lease. All but the first begin with a leader, p3,
//! that has not reached p2 for long. p2 would lead, were p1 to forget what it has promised to p3.

use super::checks::{Found, INVARIANTS, SAME_EPOCH, TWO_LEADERS, Worlds, fresh, search_to, settle, told};
use super::world::{Faults, Rules, World};
use super::{BOUNDS, CRASH, CUT, LOST_DISK, NONE, SICK, rules, settings, ticks};
use bellwether::election::{Mutation, Safety, Settings};
use std::ops::Range;
use std::time::Duration;

/// Only a search that hangs meets it.
const LIMIT: Duration = Duration::from_secs(20);

/// Three voters that agree on p3.
fn agreed(clause: Option<Mutation>) -> World {
    let voters = (1..=3).map(|k| format!("p{k}")).collect();
    let safety = Safety::Majority { voters };
    let settings = Settings {
        failure_timeout: ticks(12),
        answer_timeout: ticks(3),
        coordinator_timeout: ticks(4),
        ..settings(safety.clone())
    };
    let rules = Rules { settings: vec![settings; 3], mutation: clause, ..rules(3, safety, true) };
    let world = settle(fresh(rules, NONE), 40);
    assert!(world.leaders().eq([2]) || world.broken.is_some(), "the highest leads");
    world
}

/// p2 and p3 cannot reach each other, and p2 asks p1 again and again: at each moment of that.
fn cut(clause: Option<Mutation>) -> Vec<World> {
    let mut world = agreed(clause);
    world.cut(1, 2);
    (16..30).map(|ticks| settle(world.clone(), ticks)).collect()
}

/// And p1 and p3 cannot any more.
fn isolated(clause: Option<Mutation>) -> Vec<World> {
    each(cut(clause), isolate)
}

/// Before that p1 has lost its disk.
fn wiped(clause: Option<Mutation>) -> Vec<World> {
    each(cut(clause), |world| {
        world.crash(0, false);
        world.start(0, true);
        *world = settle(world.clone(), 2);
    })
}

/// Before that p3 has asked for shorter leases.
fn short(clause: Option<Mutation>) -> Vec<World> {
    let worlds = each(cut(clause), |world| world.ask_for(2, true));
    each(after(&worlds, 1..5), isolate)
}

/// And p1 was restarted then.
fn short_and_restarted(clause: Option<Mutation>) -> Vec<World> {
    let worlds = each(cut(clause), |world| {
        world.ask_for(2, true);
        world.crash(0, false);
        world.start(0, false);
    });
    each(after(&worlds, 1..5), isolate)
}

/// p3 does not run for a while.
fn paused(clause: Option<Mutation>) -> Vec<World> {
    each(cut(clause), |world| {
        world.pause(2);
        *world = settle(world.clone(), 8);
        world.resume(2);
    })
}

/// p3 cannot reach p1 either.
fn isolate(world: &mut World) {
    world.cut(0, 2);
}

fn each(mut worlds: Vec<World>, change: impl Fn(&mut World)) -> Vec<World> {
    worlds.iter_mut().for_each(change);
    worlds
}

/// Each of them after this number of ticks.
fn after(worlds: &[World], ticks: Range<u64>) -> Vec<World> {
    worlds.iter().flat_map(|world| ticks.clone().map(|ticks| settle(world.clone(), ticks))).collect()
}

/// A search, and the clauses that it sees.
struct Case {
    title: &'static str,
    worlds: fn(Option<Mutation>) -> Vec<World>,
    faults: Faults,
    seen: &'static [Mutation],
}

const CASES: &[Case] = &[
    Case {
        title: "all agree",
        worlds: |clause| vec![agreed(clause)],
        faults: CUT,
        seen: &[Mutation::VoteNotDurable, Mutation::CandidacySurvivesVote],
    },
    Case {
        title: "p3 is cut off",
        worlds: isolated,
        faults: NONE,
        seen: &[Mutation::PromiseIgnored, Mutation::PromiseShort, Mutation::RenewedByOne],
    },
    Case { title: "p3 is cut off, and a crash", worlds: isolated, faults: CRASH, seen: &[Mutation::NoGrace] },
    Case {
        title: "p3 is cut off, and a disk lost",
        worlds: isolated,
        faults: LOST_DISK,
        seen: &[Mutation::NoRecovery],
    },
    Case { title: "a cut after a lost disk", worlds: wiped, faults: CUT, seen: &[Mutation::RecoveryEarly] },
    Case { title: "after shorter rounds", worlds: short, faults: NONE, seen: &[Mutation::PromiseShortened] },
    Case {
        title: "after shorter rounds and a restart",
        worlds: short_and_restarted,
        faults: NONE,
        seen: &[Mutation::GraceEndedByRound],
    },
    Case {
        title: "a cut after a pause",
        worlds: paused,
        faults: CUT,
        seen: &[Mutation::LeaseFromAcknowledgement],
    },
    Case {
        title: "a sick application after a crash",
        worlds: |clause| each(vec![agreed(clause)], |world| world.crash(2, true)),
        faults: SICK,
        seen: &[Mutation::HealthIgnored],
    },
];

/// Each clause that is left out is seen, and in as many steps the machine as it is does nothing wrong.
#[test]
fn mutants_are_found() {
    let mut missed = Vec::new();
    for case in CASES {
        let mut steps = 0;
        for clause in case.seen {
            match look(case, Some(*clause), None).path {
                Some((_, path)) => steps = steps.max(path.into_actions().len()),
                None => missed.push(format!("{}: {clause:?} is not seen", case.title)),
            }
        }
        let found = look(case, None, Some(steps + 1));
        if let Some((property, path)) = &found.path {
            missed.push(format!("{}: {property}\n{}", case.title, told(path)));
        } else if !found.complete {
            missed.push(format!("{}: there was no time for all states", case.title));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

fn look(case: &Case, clause: Option<Mutation>, depth: Option<usize>) -> Found {
    let model = Worlds::of_all((case.worlds)(clause), case.faults, BOUNDS);
    let title = match clause {
        Some(clause) => format!("{}, without {clause:?}", case.title),
        None => format!("{}, at most {} steps", case.title, depth.unwrap_or_default()),
    };
    search_to(&title, model, LIMIT, &[TWO_LEADERS, SAME_EPOCH, INVARIANTS], depth)
}
