//! The model as stateright takes it: what may happen next in a world, within which bounds, and what must
//! hold.

use super::world::{Faults, LATE_MAX, PAUSE_MAX, Rules, World, name};
use bellwether::election::{Epoch, Role, Timer};
use stateright::{Checker, HasDiscoveries, Model, Path, Property};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// One step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A message arrives, by its place in the list.
    Deliver(usize),
    /// It never does.
    Lose(usize),
    /// It does not in time.
    Delay(usize),
    /// A timer is due.
    Fire(usize, Timer),
    /// The process has nothing more to do in this tick; what is late stays so.
    Yield,
    /// Time passes.
    Tick,
    /// A process crashes, and what it has sent is lost with it, or not.
    Crash(usize, bool),
    /// A process starts again, with its record or without.
    Start(usize, bool),
    /// Two processes cannot reach each other.
    Cut(usize, usize),
    /// A process cannot reach anybody.
    Isolate(usize),
    /// All cuts are mended.
    Heal,
    /// A process does not run for a while.
    Pause(usize),
    /// It runs again.
    Resume(usize),
    /// It is told to stop.
    Stop(usize),
    /// It is replaced by one with another `--lease`.
    Relet(usize),
    /// It begins to ask for a shorter lease, or for the configuration's again.
    Short(usize, bool),
    /// Its application begins to be sick, or is healthy again.
    Sick(usize, bool),
}

/// How far is looked, beside the budget of faults.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Epochs above those of the first state.
    pub epochs: u64,
    /// Ticks for which a voter without its record has tried to recover.
    pub recovery: u64,
}

/// The worlds that can come of one.
#[derive(Clone, Debug)]
pub struct Worlds {
    pub first: World,
    /// Others to begin with.
    pub others: Vec<World>,
    pub bounds: Bounds,
    /// Whether one may be elected where another was, or lead beside it (`classic`).
    pub classic: bool,
    /// After so many ticks of calm all agree on one leader; none: that is not looked at.
    pub agreed_after: Option<u64>,
    /// When to give up.
    pub until: Option<Instant>,
    pub gave_up: Arc<AtomicBool>,
    /// Whether a path is gone again, which takes no heed of the time.
    pub replay: Arc<AtomicBool>,
}

pub const TWO_LEADERS: &str = "3: two processes never lead at once";
pub const SAME_EPOCH: &str = "4: two processes never lead in one epoch";
pub const INVARIANTS: &str = "1, 2, 5, 6, no sick beginner, and what the machine asserts";
/// Nor is anything beyond the bound on epochs left out where this holds.
pub const FEW_EPOCHS: &str = "epochs do not rise without end";
pub const AGREED: &str = "7: in calm all agree on one leader";

impl Worlds {
    /// What can come of this world with these faults.
    pub fn of(
        mut first: World,
        faults: Faults,
        bounds: Bounds,
        classic: bool,
        agreed_after: Option<u64>,
    ) -> Worlds {
        first.faults = faults;
        first.delays = faults.delays > 0;
        first.pauses = faults.pauses > 0;
        first.calm_max = agreed_after.unwrap_or_default();
        Worlds {
            first,
            others: Vec::new(),
            bounds,
            classic,
            agreed_after,
            until: None,
            gave_up: Arc::default(),
            replay: Arc::default(),
        }
    }

    /// What can come of these worlds with these faults, for safety alone.
    #[cfg(feature = "mutations")]
    pub fn of_all(worlds: Vec<World>, faults: Faults, bounds: Bounds) -> Worlds {
        let mut models = worlds.into_iter().map(|world| Worlds::of(world, faults, bounds, false, None));
        let mut model = models.next().expect("one world at least");
        model.others = models.map(|other| other.first).collect();
        model
    }

    fn epoch_max(&self) -> u64 {
        let known = self.first.elected.iter().map(|(e, ..)| e.0).max();
        known.unwrap_or(0) + self.bounds.epochs
    }

    fn agreed(&self, world: &World) -> bool {
        let up: Vec<usize> = (0..world.nodes.len()).filter(|k| world.up(*k)).collect();
        let majority = up.len() > world.nodes.len() / 2;
        let Some(after) = self.agreed_after else { return true };
        if world.calm < after || !(majority || self.classic) || up.is_empty() {
            return true;
        }
        let leader = world.leader(up[0]);
        leader.is_some()
            && up.iter().all(|k| world.leader(*k) == leader)
            && up.iter().filter(|k| world.leads_now(**k)).count() == 1
    }
}

/// Says what bounds the search.
impl fmt::Display for Worlds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let World { rules, faults, .. } = &self.first;
        let Bounds { epochs, recovery } = self.bounds;
        let order = if rules.in_order { "in order" } else { "in any order" };
        write!(f, "n = {}, messages {order}, {faults}; at most {epochs} more epochs, ", rules.len())?;
        write!(f, "{recovery} ticks of recovery, {PAUSE_MAX} of pause, {LATE_MAX} of delay")?;
        match self.agreed_after {
            Some(calm) => write!(f, "; agreed after {calm} ticks of calm"),
            None => Ok(()),
        }
    }
}

impl Model for Worlds {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        std::iter::once(&self.first).chain(&self.others).cloned().collect()
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        let replay = self.replay.load(Ordering::Relaxed);
        if !replay && self.until.is_some_and(|until| Instant::now() > until) {
            self.gave_up.store(true, Ordering::Relaxed);
        } else {
            steps.extend(steps_of(world));
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        Some(take(world, step))
    }

    fn within_boundary(&self, world: &World) -> bool {
        highest(world) <= self.epoch_max()
            && world.longest_recovery() <= self.bounds.recovery
            && world.longest_pause() <= PAUSE_MAX
    }

    fn properties(&self) -> Vec<Property<Worlds>> {
        vec![
            Property::always(TWO_LEADERS, |_, world: &World| world.leaders().count() < 2),
            Property::always(SAME_EPOCH, |_, world: &World| !world.twice),
            Property::always(INVARIANTS, |_, world: &World| world.broken.is_none()),
            Property::always(FEW_EPOCHS, |model: &Worlds, world| highest(world) < model.epoch_max()),
            Property::always(AGREED, |model: &Worlds, world| model.agreed(world)),
        ]
    }
}

/// The highest epoch of any process that is up.
fn highest(world: &World) -> u64 {
    let epochs = world.nodes.iter().filter_map(|n| n.status.as_ref()).map(|v| v.epoch);
    epochs.max().unwrap_or(Epoch::ZERO).0
}

/// Everything that may happen next.
pub fn steps_of(world: &World) -> Vec<Step> {
    let mut steps = Vec::new();
    if world.broken.is_some() || world.twice {
        return steps;
    }
    let n = world.nodes.len();
    if world.turn < n {
        steps_of_turn(world, world.turn, &mut steps);
        return steps;
    }
    steps.push(Step::Tick);
    for k in 0..n {
        steps_between_ticks(world, k, &mut steps);
    }
    if !world.cuts.is_empty() {
        steps.push(Step::Heal);
    }
    if world.faults.cuts > 0 {
        for k in 0..n {
            steps.push(Step::Isolate(k));
            steps.extend((k + 1..n).map(|other| Step::Cut(k, other)));
        }
    }
    steps
}

/// What a process may do while it has its turn in a tick.
fn steps_of_turn(world: &World, k: usize, steps: &mut Vec<Step>) {
    let left = &world.faults;
    let mut waits = false;
    for i in world.arrived(k) {
        steps.push(Step::Deliver(i));
        if world.flights[i].late {
            continue;
        }
        waits = true;
        if left.losses > 0 {
            steps.push(Step::Lose(i));
        }
        if left.delays > 0 {
            steps.push(Step::Delay(i));
        }
    }
    for timer in world.due(k) {
        waits = true;
        steps.push(Step::Fire(k, timer));
    }
    if !waits {
        steps.push(Step::Yield);
    }
    if left.crashes > 0 && world.up(k) {
        steps.extend([Step::Crash(k, false), Step::Crash(k, true)]);
    }
}

/// What may happen to a process after all turns of a tick.
fn steps_between_ticks(world: &World, k: usize, steps: &mut Vec<Step>) {
    let left = &world.faults;
    if !world.up(k) {
        if world.nodes[k].record.is_some() {
            steps.push(Step::Start(k, true));
        }
        if left.wipes > 0 {
            steps.push(Step::Start(k, false));
        }
        return;
    }
    if left.crashes > 0 {
        steps.extend([Step::Crash(k, false), Step::Crash(k, true)]);
    }
    if world.nodes[k].paused {
        steps.push(Step::Resume(k));
        return;
    }
    if left.pauses > 0 {
        steps.push(Step::Pause(k));
    }
    if left.stops > 0 {
        steps.push(Step::Stop(k));
    }
    if left.relets > 0 && world.may_relet(k) {
        steps.push(Step::Relet(k));
    }
    if world.nodes[k].short || left.shorts > 0 {
        steps.push(Step::Short(k, !world.nodes[k].short));
    }
    if world.nodes[k].is_sick() || left.sicks > 0 {
        steps.push(Step::Sick(k, !world.nodes[k].is_sick()));
    }
}

/// The world after a step.
pub fn take(world: &World, step: Step) -> World {
    let mut next = world.clone();
    let n = next.nodes.len();
    let fault = !matches!(step, Step::Deliver(_) | Step::Fire(..) | Step::Yield | Step::Tick);
    let late = matches!(step, Step::Deliver(i) if next.flights[i].late);
    if fault || late {
        next.calm = 0;
    }
    match step {
        Step::Deliver(i) => next.deliver(i),
        Step::Lose(i) => {
            next.faults.losses -= 1;
            next.take(i);
        }
        Step::Delay(i) => {
            next.faults.delays -= 1;
            next.make_late(i);
        }
        Step::Fire(k, timer) => next.fire(k, timer),
        Step::Yield => next.turn += 1,
        Step::Tick => next.pass(),
        Step::Crash(k, silently) => {
            next.faults.crashes -= 1;
            next.crash(k, silently);
        }
        Step::Start(k, with_record) => {
            next.faults.wipes -= u8::from(!with_record);
            next.start(k, !with_record);
        }
        Step::Cut(a, b) => {
            next.faults.cuts -= 1;
            next.cut(a, b);
        }
        Step::Isolate(k) => {
            next.faults.cuts -= 1;
            (0..n).filter(|other| *other != k).for_each(|other| next.cut(k, other));
        }
        Step::Heal => next.heal(),
        Step::Pause(k) => {
            next.faults.pauses -= 1;
            next.pause(k);
        }
        Step::Resume(k) => next.resume(k),
        Step::Stop(k) => {
            next.faults.stops -= 1;
            next.stop(k);
        }
        Step::Relet(k) => {
            next.faults.relets -= 1;
            next.relet(k);
        }
        Step::Short(k, short) => {
            next.faults.shorts -= u8::from(short);
            next.ask_for(k, short);
        }
        Step::Sick(k, sick) => {
            next.faults.sicks -= u8::from(sick);
            next.sicken(k, sick);
        }
    }
    // A process with nothing to do has no turn.
    while next.turn < n && (!next.runs(next.turn) || idle(&next)) {
        next.turn += 1;
    }
    next
}

fn idle(world: &World) -> bool {
    world.arrived(world.turn).next().is_none() && world.due(world.turn).next().is_none()
}

/// Lets this much time pass in which nothing goes wrong, in one of the possible orders.
pub fn settle(mut world: World, ticks: u64) -> World {
    let end = world.tick + ticks;
    while world.tick < end {
        // What is broken goes no further.
        let Some(step) = steps_of(&world).first().copied() else { break };
        world = take(&world, step);
    }
    world
}

/// What a run has found.
pub struct Found {
    /// What is wrong, or what was looked for, with a shortest way there.
    pub path: Option<(&'static str, Path<World, Step>)>,
    /// Whether that was everything within the bounds.
    pub complete: bool,
    /// How many states it saw.
    pub states: usize,
}

/// Looks at everything within the bounds for one of these, and prints how much that was.
pub fn search(title: &str, mut model: Worlds, limit: Duration, wanted: &[&'static str]) -> Found {
    let began = Instant::now();
    println!("{title}: {model}");
    model.until = Some(began + limit);
    let mut found = run(title, &model, wanted, None);
    // The path that came first may be a long one: look again within less.
    while let Some((_, path)) = &found.path {
        let steps = path.clone().into_actions().len();
        if steps == 0 {
            break;
        }
        model.until = Some(Instant::now() + limit);
        let Found { path: Some(shorter), .. } = run(title, &model, wanted, Some(steps)) else { break };
        found.path = Some(shorter);
    }
    found
}

/// Looks at everything within the bounds and this number of steps, or for the first path that there is.
#[cfg(feature = "mutations")]
pub fn search_to(
    title: &str,
    mut model: Worlds,
    limit: Duration,
    wanted: &[&'static str],
    depth: Option<usize>,
) -> Found {
    model.until = Some(Instant::now() + limit);
    run(title, &model, wanted, depth)
}

fn run(title: &str, model: &Worlds, wanted: &[&'static str], depth: Option<usize>) -> Found {
    let began = Instant::now();
    let gave_up = model.gave_up.clone();
    gave_up.store(false, Ordering::Relaxed);
    model.replay.store(false, Ordering::Relaxed);
    let until = HasDiscoveries::AnyOf(wanted.iter().copied().collect());
    // One thread, where a bound on the depth must not depend on which path comes first.
    let checker = model.clone().checker().finish_when(until).threads(if depth.is_some() { 1 } else { 2 });
    let checker = checker.target_max_depth(depth.unwrap_or_default()).spawn_bfs().join();
    model.replay.store(true, Ordering::Relaxed);
    let mut paths: Vec<_> =
        checker.discoveries().into_iter().filter(|(name, _)| wanted.contains(name)).collect();
    paths.sort_by_key(|(_, path)| path.clone().into_actions().len());
    let path = paths.into_iter().next();
    let complete = !gave_up.load(Ordering::Relaxed) && path.is_none();
    let states = checker.unique_state_count();
    println!(
        "{title}: {states} states, {} generated, depth {}, {:.1} s{}",
        checker.state_count(),
        checker.max_depth(),
        began.elapsed().as_secs_f64(),
        match &path {
            Some((name, path)) => format!(", {name}: {} steps", path.clone().into_actions().len()),
            None if complete => ", all of them".to_string(),
            None => ", out of time".to_string(),
        },
    );
    Found { path, complete, states }
}

/// A path as people read it: what happened, and how each process stood after each tick.
pub fn told(path: &Path<World, Step>) -> String {
    let mut text = String::new();
    for (world, step) in path.clone().into_vec() {
        let line = match step {
            Some(Step::Tick) => standing(&world),
            Some(Step::Yield) => continue,
            Some(step) => said(&world, step),
            None => standing(&world),
        };
        text.push_str(&format!("{:>4}  {line}\n", world.tick));
    }
    text
}

fn p(k: usize) -> String {
    format!("p{}", k + 1)
}

fn said(world: &World, step: Step) -> String {
    let flight = |i: usize| {
        let f = &world.flights[i];
        format!("{} -> {}  {:?}", p(f.from), p(f.to), f.message)
    };
    match step {
        Step::Deliver(i) => format!("{}{}", flight(i), if world.flights[i].late { "  (late)" } else { "" }),
        Step::Lose(i) => format!("+ lost: {}", flight(i)),
        Step::Delay(i) => format!("+ late: {}", flight(i)),
        Step::Fire(k, timer) => format!("{}        {timer:?} is due", p(k)),
        Step::Yield | Step::Tick => String::new(),
        Step::Crash(k, false) => format!("+ crash {}", p(k)),
        Step::Crash(k, true) => format!("+ crash {}, and what it has sent is lost", p(k)),
        Step::Start(k, true) => format!("+ start {} with its record", p(k)),
        Step::Start(k, false) => format!("+ start {} with a new disk", p(k)),
        Step::Cut(a, b) => format!("+ cut {} from {}", p(a), p(b)),
        Step::Isolate(k) => format!("+ cut {} from all others", p(k)),
        Step::Heal => "+ heal".to_string(),
        Step::Pause(k) => format!("+ pause {}", p(k)),
        Step::Resume(k) => format!("+ resume {}", p(k)),
        Step::Stop(k) => format!("+ stop {}", p(k)),
        Step::Relet(k) => format!("+ restart {} with another lease", p(k)),
        Step::Short(k, true) => format!("+ {} asks for a shorter lease", p(k)),
        Step::Short(k, false) => format!("+ {} asks for the lease of the configuration", p(k)),
        Step::Sick(k, true) => format!("+ the application of {} is sick", p(k)),
        Step::Sick(k, false) => format!("+ the application of {} is healthy", p(k)),
    }
}

fn standing(world: &World) -> String {
    let each = world.nodes.iter().enumerate().map(|(k, node)| match &node.status {
        None => format!("{} down", p(k)),
        Some(status) => {
            let role = match status.role {
                Role::Leading if world.leads_now(k) => "LEADS".to_string(),
                Role::Leading => "led".to_string(),
                Role::Following => {
                    status.leader.as_ref().map_or("?".into(), |l| format!("after {}", name(l.peer.id)))
                }
                role => role.name().to_string(),
            };
            format!("{} {role} e{}", p(k), status.epoch)
        }
    });
    format!("== {}", each.collect::<Vec<_>>().join(" | "))
}

/// A world of these rules in which every process has just started.
pub fn fresh(rules: Rules, faults: Faults) -> World {
    let mut world = World::new(rules, faults);
    for k in 0..world.nodes.len() {
        world.start(k, false);
    }
    world
}
