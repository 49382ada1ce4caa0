//! Many seeds on all cores, and what came of them.

use super::clock::{MS, Ns};
use super::fault_kind::Counts;
use super::plan_generator::draw;
use super::run::{self, RunOutcome};
use super::trace::Trace;
use crate::config::SimArgs;
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

/// The most threads.
const THREADS_MAX: usize = 64;
/// How many violations are shown; further ones are only counted.
const SHOWN_MAX: u64 = 20;
/// How many seeds a thread takes at a time.
const BATCH: u64 = 64;

thread_local! {
    /// Which seed this thread runs.
    static SEED: Cell<u64> = const { Cell::new(0) };
}

/// What came of many runs.
#[derive(Debug, Default)]
pub struct Totals {
    /// How many runs there were.
    pub schedules: u64,
    /// How many of them broke a rule.
    pub violations: u64,
    counts: Counts,
    two_leaders: u64,
    slowest: (Ns, u64),
    took: Duration,
    majority: bool,
}

impl Totals {
    fn add(&mut self, seed: u64, outcome: &RunOutcome) {
        self.schedules += 1;
        self.violations += u64::from(outcome.violation.is_some());
        self.counts.add(&outcome.counts);
        self.two_leaders += outcome.two_leaders;
        if outcome.agreed_after > self.slowest.0 {
            self.slowest = (outcome.agreed_after, seed);
        }
    }

    fn merge(&mut self, other: &Totals) {
        self.schedules += other.schedules;
        self.violations += other.violations;
        self.counts.add(&other.counts);
        self.two_leaders += other.two_leaders;
        self.slowest = self.slowest.max(other.slowest);
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.took.as_secs_f64();
        let rate = self.schedules as f64 / seconds.max(1e-9);
        writeln!(f, "schedules         {} in {seconds:.1} s, {rate:.0} a second", self.schedules)?;
        let faults: u64 = self.counts.faults().map(|(_, count)| count).sum();
        writeln!(f, "faults injected   {faults}")?;
        for (sort, count) in self.counts.faults().filter(|(_, count)| *count > 0) {
            writeln!(f, "  {:<20}{count}", sort.name())?;
        }
        writeln!(f, "disks lost        {}", self.counts.disks_lost)?;
        writeln!(f, "elections won     {}", self.counts.elections)?;
        if !self.majority {
            writeln!(f, "two leaders       {} times (classic allows it in a partition)", self.two_leaders)?;
        }
        let (slowest, seed) = self.slowest;
        writeln!(f, "slowest agreement {} ms after the faults (seed {seed})", slowest / MS)?;
        writeln!(f, "violations        {}", self.violations)
    }
}

/// Runs the seeds from `first` to `last`, both included, on all cores, and tells `show` of violations as they
/// come.
pub fn sweep(args: &SimArgs, first: u64, last: u64, mut show: impl FnMut(&str)) -> Totals {
    let begun = Instant::now();
    let next = AtomicU64::new(first);
    let shown = AtomicU64::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let (sender, lines) = sync_channel::<String>(64);
    let mut totals = Totals { majority: args.majority, ..Totals::default() };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let sender = sender.clone();
                let (next, shown) = (&next, &shown);
                scope.spawn(move || {
                    let mut sum = Totals::default();
                    loop {
                        let from = next.fetch_add(BATCH, Ordering::Relaxed);
                        if from > last {
                            return sum;
                        }
                        for seed in from..=last.min(from + (BATCH - 1)) {
                            let outcome = of_seed(seed, || run::run(draw(seed, args), Trace::default()));
                            sum.add(seed, &outcome);
                            let Some(violation) = outcome.violation else { continue };
                            if shown.fetch_add(1, Ordering::Relaxed) < SHOWN_MAX {
                                let replay = replay(args, seed);
                                // The receiver of the lines outlives the workers.
                                drop(sender.send(format!("seed {seed}: {violation}\n  replay: {replay}")));
                            }
                        }
                    }
                })
            })
            .collect();
        drop(sender);
        lines.iter().for_each(|line| show(&line));
        for worker in workers {
            match worker.join() {
                Ok(sum) => totals.merge(&sum),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    totals.took = begun.elapsed();
    totals
}

/// The command that shows this seed's run.
fn replay(args: &SimArgs, seed: u64) -> String {
    format!("bellwether sim {} --replay {seed}", args.flags())
}

/// Runs a seed, so that a panic knows which it was.
pub(super) fn of_seed<T>(seed: u64, run: impl FnOnce() -> T) -> T {
    SEED.set(seed);
    run()
}

/// Prints the seed of a panic first. Where a panic ends the process, as in a release build, no thread is left
/// to report the violation.
pub(super) fn say_the_seed_of_a_panic(args: &SimArgs) {
    let args = args.clone();
    std::panic::set_hook(Box::new(move |info| {
        if cfg!(panic = "abort") {
            let seed = SEED.get();
            eprintln!("seed {seed}: {info}\n  replay: {}", replay(&args, seed));
        }
    }));
}
