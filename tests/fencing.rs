//! A real PostgreSQL refuses the writes of a stale leader: after a partition, after a pause and after a clock
//! step. Without the guard the same schedules let the stale write through.
//!
//! `cargo test --test fencing -- --ignored --nocapture`, as root. The guard and the worker are those of
//! `examples/fencing-postgresql`.
#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests are tests.

// The chaos tests ask more of it.
#[allow(dead_code)]
#[path = "fencing/database.rs"]
mod database;
#[path = "fencing/guard.rs"]
mod guard;
#[path = "fencing/lab.rs"]
mod lab;
mod namespace;
// The chaos tests have more kinds of faults than these.
#[allow(dead_code)]
#[path = "chaos/network.rs"]
mod network;
#[path = "support/wait.rs"]
mod wait;

use lab::{Guard, Lab, PLACES};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// What makes a leader stale without its notice.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Its host loses the database first and the other hosts next. The write is under way meanwhile.
    Partition,
    /// Worker and sidecar stop between the worker's last look at the clock and the database's answer.
    Pause,
    /// The other hosts lose its sidecar, and its worker's clock goes back to the time of the last yes.
    ClockStep,
    /// As `ClockStep`, with a clock that is right.
    Nothing,
}

/// What comes of the write of a stale leader.
struct Outcome {
    /// The worker's last line.
    said: String,
    /// The epochs in the table, in the order of the writes.
    written: Vec<u64>,
    /// The epochs of the stale leader and of the one after it.
    epochs: [u64; 2],
}

/// One at a time: each has a database, three sidecars and three workers.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A leader writes. The fault makes it stale while it has another write to do. The next leader writes, and
/// the fault ends. Then the stale leader's write reaches the database.
fn schedule(fault: Fault, guard: Guard) -> Outcome {
    let mut lab = Lab::start(guard);
    let old = lab.leader(&PLACES);
    let first = lab.write(old);
    let worked = match fault {
        Fault::Partition => {
            lab.cut_from_database(old);
            lab.send_write(old);
            lab.cut_from_all(old);
            None
        }
        Fault::Pause => {
            lab.cut_from_database(old);
            lab.send_write(old);
            lab.stop(old);
            None
        }
        Fault::ClockStep | Fault::Nothing => {
            let worked = lab.expect(old, "works");
            lab.cut_from_peers(old);
            Some(worked)
        }
    };
    let others: Vec<usize> = PLACES.into_iter().filter(|place| *place != old).collect();
    let new = lab.leader(&others);
    let second = lab.write(new);
    assert!(second > first, "{second} follows {first}");
    match fault {
        Fault::Partition => lab.heal(),
        Fault::Pause => {
            lab.heal();
            lab.resume(old);
        }
        Fault::ClockStep | Fault::Nothing => {
            if matches!(fault, Fault::ClockStep) {
                lab.step_back(old, Instant::now() - worked.unwrap());
            }
            lab.end_unit(old);
        }
    }
    if matches!(fault, Fault::ClockStep) {
        lab.expect(old, "writes");
    }
    let said = lab.next(old);
    let outcome = Outcome { said, written: lab.written(), epochs: [first, second] };
    println!("{fault:?}, {guard:?}: {:?}, written: {:?}", outcome.said, outcome.written);
    outcome
}

/// The database refuses the stale write, and without the guard it takes the same write.
fn only_the_guard_stops_it(fault: Fault) {
    let _alone = alone();
    let Outcome { said, written, epochs: [first, second] } = schedule(fault, Guard::Armed);
    assert_eq!((said, written), (format!("refused epoch={first}"), vec![first, second]));
    let Outcome { said, written, epochs: [first, second] } = schedule(fault, Guard::Disarmed);
    assert_eq!((said, written), (format!("wrote epoch={first}"), vec![first, second, first]));
}

#[test]
#[ignore = "needs root, iproute2, iptables and PostgreSQL"]
fn a_stale_write_is_refused_after_a_partition() {
    only_the_guard_stops_it(Fault::Partition);
}

#[test]
#[ignore = "needs root, iproute2, iptables and PostgreSQL"]
fn a_stale_write_is_refused_after_a_pause() {
    only_the_guard_stops_it(Fault::Pause);
}

#[test]
#[ignore = "needs root, iproute2, iptables, PostgreSQL and faketime"]
fn a_stale_write_is_refused_after_a_clock_step() {
    only_the_guard_stops_it(Fault::ClockStep);
}

/// So it is the step that makes the worker write.
#[test]
#[ignore = "needs root, iproute2, iptables, PostgreSQL and faketime"]
fn without_the_clock_step_the_worker_stops_by_itself() {
    let _alone = alone();
    let Outcome { said, written, epochs: [first, second] } = schedule(Fault::Nothing, Guard::Disarmed);
    assert_eq!((said, written), (format!("stops epoch={first}"), vec![first, second]));
}
