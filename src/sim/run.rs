//! One run in two phases. In the first, faults happen, and the safety rules are checked all the time. In the
//! second, a healed core has to agree within a bound on one leader and on the live members.

use super::clock::{MS, Ns, ns};
use super::connections::REDIAL_LONGEST;
use super::fault_kind::Counts;
use super::link_faults::Places;
use super::node::{Node, place_of};
use super::plan::Plan;
use super::rule::{Rule, Violation};
use super::timing::longest_lease;
use super::trace::Trace;
use super::world::{REFRESH_LONGEST, World};
use crate::election::describe::not_ready;
use crate::election::{DELAY_MAX, Epoch, Machine, Preempt, Role, State};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How often agreement is looked at.
const LOOK_EVERY: Ns = 50 * MS;
/// How long agreement has to last.
pub(super) const STAYS: Ns = 3_000 * MS;

/// What came of a run.
#[derive(Debug)]
pub(super) struct RunOutcome {
    pub(super) violation: Option<Violation>,
    pub(super) counts: Counts,
    /// How often one began to lead while another led: what `classic` allows.
    pub(super) two_leaders: u64,
    /// How long after the faults all agreed for good.
    pub(super) agreed_after: Ns,
    pub(super) lines: Vec<String>,
}

/// Runs a plan.
pub(super) fn run(plan: Plan, trace: Trace) -> RunOutcome {
    run_world(World::new(plan, trace))
}

pub(super) fn run_world(mut world: World) -> RunOutcome {
    let agreed_after = catch_unwind(AssertUnwindSafe(|| both_phases(&mut world)));
    if let Err(panic) = &agreed_after {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words");
        let now = world.now;
        world.checker.broken(now, Rule::Assertion, text.to_owned());
    }
    if let Some(violation) = &world.checker.violation {
        world.trace.last(violation.at, &format!("VIOLATION: {violation}"));
    }
    RunOutcome {
        violation: world.checker.violation,
        counts: world.counts,
        two_leaders: world.checker.two_leaders,
        agreed_after: agreed_after.unwrap_or(0),
        lines: world.trace.lines,
    }
}

fn both_phases(world: &mut World) -> Ns {
    world.run_until(world.plan.chaos);
    if world.checker.violation.is_some() {
        return 0;
    }
    world.heal();
    let healed = world.now;
    let bound = bound(&world.plan);
    let agreed = agree(world, bound);
    let unanswered = world.checker.operations.all_answered(&world.nodes);
    world.checker.found(world.now, unanswered);
    agreed.map_or(0, |at| at - healed)
}

/// Runs until all agree and have done so for a while; returns when they began to agree. None: they do not.
pub(super) fn agree(world: &mut World, bound: Ns) -> Option<Ns> {
    let begin = world.now;
    let mut since = None;
    while world.checker.violation.is_none() {
        let agreed = agreed(world);
        since = match (since, agreed) {
            (Some((at, known)), Some(leader)) if known == leader => Some((at, leader)),
            (_, agreed) => agreed.map(|leader| (world.now, leader)),
        };
        if let Some((at, _)) = since.filter(|(at, _)| world.now >= at + STAYS) {
            return Some(at);
        }
        // A cluster that has agreed in time gets the time to stay so.
        if since.is_none_or(|(at, _)| at > begin + bound) && world.now > begin + bound {
            let what = format!("no lasting agreement within {} ms: {}", bound / MS, each_process(world));
            world.checker.broken(world.now, Rule::NoAgreement, what);
            return None;
        }
        world.run_until(world.now + LOOK_EVERY);
    }
    None
}

/// By when a healed cluster agrees, by the longest lease that any process is ever given. Each part is the
/// longest wait that the settings allow a process; the waits come one after the other.
pub(super) fn bound(plan: &Plan) -> Ns {
    let lease = ns(longest_lease(plan));
    let settings = plan.places.iter().map(|place| &place.settings);
    settings
        .map(|s| {
            // Where leases adapt, an answer is waited for as long as the longest delay, twice.
            let learnt = s.lease_min.map_or(0, |_| ns(DELAY_MAX * 2).saturating_sub(ns(s.answer_timeout)));
            let (answer, coordinator) = (ns(s.answer_timeout) + learnt, ns(s.coordinator_timeout) + learnt);
            // Found by name, dialled; the last one to be started starts and asks.
            let connected = REFRESH_LONGEST + REDIAL_LONGEST + 100 * MS * plan.places.len() as Ns;
            let asked = ns(s.stable_margin).max(ns(s.start_timeout));
            // A dead connection or leader is noticed; a promise to it ends; a restarted voter waits, or
            // recovers first.
            let waited = plan.link_timeout.min(2 * lease) + 3 * lease;
            // Two rounds of the election fail because of what came before. After each, the loser yields.
            let elected = 3 * (answer + 2 * coordinator);
            let preempted = match s.preempt {
                Preempt::After(delay) => ns(delay) + elected,
                Preempt::Always | Preempt::Never => elected,
            };
            connected + asked + waited + elected + preempted
        })
        .max()
        .unwrap_or(0)
}

/// The leader and its epoch, if all running processes agree: it answers that it leads, all others follow it,
/// and all know which processes run.
pub(super) fn agreed(world: &World) -> Option<(usize, Epoch)> {
    let leader = world.nodes.iter().find(|p| p.leads(world.now))?;
    let epoch = leader.machine.as_ref()?.epoch();
    let bits =
        |places: &mut dyn Iterator<Item = usize>| places.fold(0, |bits: Places, place| bits | 1 << place);
    let running = bits(&mut world.nodes.iter().filter(|p| p.machine.is_some()).map(|p| p.place));
    let agrees = |p: &Node, machine: &Machine| {
        let status = machine.status();
        let (asked, turned) = p.asked(world.now);
        let named = status.leader(asked, turned);
        let follows = || {
            machine.epoch() == epoch
                && status.role == Role::Following
                && named.is_some_and(|named| place_of(named.peer.id) == leader.place)
        };
        let alive = status.members.iter().filter(|m| m.state == State::Alive);
        // Its list is what the next election begins with.
        bits(&mut alive.map(|m| place_of(m.peer.id))) == running && (p.place == leader.place || follows())
    };
    let all = world.nodes.iter().all(|p| p.machine.as_ref().is_none_or(|machine| agrees(p, machine)));
    all.then_some((leader.place, epoch))
}

/// What each process does, for the message of a failure.
fn each_process(world: &World) -> String {
    let each = world.nodes.iter().map(|p| match &p.machine {
        None => format!("p-{} is down", p.place),
        Some(machine) => {
            let status = machine.status();
            let (asked, turned) = p.asked(world.now);
            let leader = status.leader(asked, turned);
            let leader = leader.map_or_else(|| "-".to_owned(), |l| format!("p-{}", place_of(l.peer.id)));
            let waits = status.voting.as_ref().and_then(|voting| voting.not_ready.as_ref());
            let waits = waits.map_or_else(String::new, |waits| format!(", waits: {}", not_ready(waits)));
            format!(
                "p-{} is {}, epoch {}, leader {leader}{waits}, knows {}",
                p.place,
                status.role.name(),
                machine.epoch(),
                super::trace::words().members(&machine.known_peers().members)
            )
        }
    });
    each.collect::<Vec<_>>().join("; ")
}
