//! Runs a row of attacks against clusters of both sizes.

use crate::siege::{Level, Siege};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many clusters are attacked at a time: as many as leave two cores to the processes.
const SEATS: usize = 3;
pub const SIZES: [usize; 2] = [3, 5];
pub const BOTH: &[Level] = &[Level::Classic, Level::Majority];

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// Seats of a row that runs.
struct Seats(usize);

impl Seats {
    fn taken() -> MutexGuard<'static, usize> {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(seats: usize) -> Seats {
        let free = FREED.wait_while(Seats::taken(), |taken| *taken + seats > SEATS);
        *free.unwrap_or_else(PoisonError::into_inner) += seats;
        Seats(seats)
    }
}

impl Drop for Seats {
    fn drop(&mut self) {
        *Seats::taken() -= self.0;
        FREED.notify_all();
    }
}

/// 3 and 5 processes of each level.
pub fn clusters(levels: &[Level]) -> Vec<(Level, usize)> {
    levels.iter().flat_map(|level| SIZES.map(|n| (*level, n))).collect()
}

/// Runs a row against these, and says which of them fell.
pub fn in_each(levels: &[Level], row: impl Fn(Level, usize) + Sync) {
    run(&clusters(levels), 1, &row);
}

/// Runs a row that takes all of two cores, or measures, against each of these clusters with no other at its
/// side.
pub fn alone(clusters: &[(Level, usize)], row: impl Fn(Level, usize) + Sync) {
    run(clusters, SEATS, &row);
}

fn run(clusters: &[(Level, usize)], seats: usize, row: &(impl Fn(Level, usize) + Sync)) {
    let fallen = Mutex::new(Vec::new());
    let attempt = |level, n| {
        let _seats = Seats::take(seats);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| row(level, n))) {
            fallen.lock().unwrap().push(format!("{level:?}, {n} processes: {}", said(&*panic)));
        }
    };
    let attempt = &attempt;
    std::thread::scope(|scope| {
        clusters.iter().for_each(|(level, n)| _ = scope.spawn(move || attempt(*level, *n)));
    });
    let fallen = fallen.into_inner().unwrap();
    assert!(fallen.is_empty(), "\n{}\n", fallen.join("\n"));
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic")
}

#[test]
fn without_an_attack_every_row_holds() {
    in_each(BOTH, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        siege.attack(Duration::ZERO, Vec::new());
        siege.undisturbed();
        siege.lift();
    });
}
