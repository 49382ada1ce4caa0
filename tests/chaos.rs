//! Real processes under real faults. Each is in a network namespace of its own, with a disk and a boot clock
//! of its own. A sampler asks it whether it leads, as fast as it answers.
//!
//! `cargo test --test chaos -- --ignored --nocapture`, as root. `BELLWETHER_SEED` repeats the faults of a
//! run, `BELLWETHER_CHAOS_SECONDS` and `BELLWETHER_CHAOS_N` make it longer and choose its size. The seed says
//! whether members have the channel between them; `BELLWETHER_CHAOS_CHANNEL=1` turns it on, and `=0` off. It
//! says whether leases are adaptive, too (`BELLWETHER_CHAOS_ADAPTIVE`).
#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests are tests.

#[path = "chaos/cluster.rs"]
mod cluster;
// The fencing tests ask more of it.
#[allow(dead_code)]
#[path = "fencing/database.rs"]
mod database;
#[path = "chaos/health.rs"]
mod health;
#[path = "chaos/history.rs"]
mod history;
#[path = "chaos/history_tests.rs"]
mod history_tests;
#[path = "chaos/leases.rs"]
mod leases;
#[path = "support/log_table.rs"]
mod log_table;
mod namespace;
#[path = "chaos/network.rs"]
mod network;
#[path = "chaos/sampler.rs"]
mod sampler;
#[path = "chaos/storm.rs"]
mod storm;
#[path = "chaos/topologies.rs"]
mod topologies;
#[path = "support/wait.rs"]
mod wait;
#[path = "chaos/workers.rs"]
mod workers;

use cluster::{ChaosPlan, Cluster, Safety, name};
use history::{Observer, Seconds};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use storm::{Storm, StormOutcome};
use workers::{Fenced, Worked};

/// For how long a cluster may lack a leader while a majority is connected. It takes a few seconds: a lease,
/// the wait of restarted voters for another, and elections among processes that reach each other in part.
const LEADERLESS_MAX: Duration = Duration::from_secs(30);

/// One of those that ask without a pause: on two cores the answers of two would come half as often.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no whole number")))
}

/// The seed of this run, printed.
fn seed() -> u64 {
    let seed = setting("BELLWETHER_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("BELLWETHER_SEED={seed}");
    seed
}

/// Nothing was answered that `majority` excludes.
fn sound(observers: &[Observer]) {
    let wrong: Vec<String> = history::violations(observers).iter().map(ToString::to_string).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What runs under exec beside the processes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    None,
    /// Commands of which two must never act at one instant.
    Contained,
    /// Commands that can outlive their exec, and a database that refuses what they write then.
    Fenced,
}

/// Faults for this long; what was seen is printed.
fn chaos(n: usize, safety: Safety, length: Duration, work: Work) -> Vec<Observer> {
    let seed = seed();
    // Two ranks, so that there are transfers to a better one too.
    let priorities = (0..n).map(|place| if place == 0 { 110 } else { 100 }).collect();
    let channel = setting("BELLWETHER_CHAOS_CHANNEL").unwrap_or(seed % 2) != 0;
    println!("the channel between members: {}", if channel { "on" } else { "off" });
    let adaptive = setting("BELLWETHER_CHAOS_ADAPTIVE").unwrap_or(seed / 2 % 2) != 0;
    let mode = if adaptive { "adaptive" } else { "fixed" };
    println!("leases: {mode}");
    // What a command leaves behind ignores SIGTERM, and a resignation waits for that so long.
    let flags = vec!["--stop-wait", "1s", "--lease-mode", mode];
    let plan = ChaosPlan { n, safety, priorities, channel, flags, pause: Duration::ZERO };
    let mut cluster = Cluster::started(plan, seed);
    if work != Work::None {
        cluster.begin_work(work == Work::Fenced);
    }
    let outcome = Storm::new(&mut cluster, seed).rage(length);
    let observers = cluster.observers();
    let leaderless = summary(&cluster, &observers, &outcome, safety);
    if safety == Safety::Majority {
        sound(&observers);
    }
    if let Some(worked) = cluster.end_work() {
        judge(&worked);
    }
    assert!(leaderless <= LEADERLESS_MAX, "no process led for {leaderless:?} although one could have");
    observers
}

/// Two commands act at one instant only where they can outlive their exec. Then the database refuses each
/// stale write.
fn judge(worked: &Worked) {
    let overlaps = &worked.overlaps;
    println!("commands under exec: {}, which acted {} times", worked.commands, worked.acts);
    assert!(worked.commands > 0, "no command ran");
    let Some(Fenced { written, refused, stale }) = worked.fenced else {
        assert!(overlaps.is_empty(), "{}", overlaps.join("\n"));
        return;
    };
    println!("commands that acted while another did: {}", overlaps.len());
    println!("writes: {written}, refused: {refused}, stale and taken: {stale}");
    assert_eq!(stale, 0, "the database has taken a stale write");
    assert!(written > 0 && refused > 0, "nothing was tried");
}

/// Prints what was seen. Returns the longest time without a leader while a majority could have elected one:
/// while all were connected, and the application of one was healthy.
fn summary(cluster: &Cluster, observers: &[Observer], outcome: &StormOutcome, safety: Safety) -> Duration {
    let sum = |count: fn(&Observer) -> u64| observers.iter().map(count).sum::<u64>();
    println!("n = {}, {safety:?}, {:.0} s", cluster.n(), cluster.now() as f64 / 1e9);
    println!("boot clocks of their own: {}", if cluster.own_clocks() { "yes" } else { "not possible here" });
    let faults: Vec<String> = outcome.faults.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    println!("faults: {} ({})", outcome.faults.values().sum::<u32>(), faults.join(", "));
    println!(
        "answers checked: {} ({} yes; {} questions unanswered)",
        sum(|o| o.answers),
        sum(|o| o.yes),
        sum(|o| o.unanswered)
    );
    println!("holds granted: {}", sum(Observer::held));
    println!("leaders seen, by epoch: {}", history::reigns(observers).len());
    println!(
        "agreement of all after the end of all faults: {} times, after at most {:.1?}",
        outcome.calms, outcome.longest_agreeing
    );
    let standstills = cluster.samplers().standstills();
    for (from, until) in &standstills {
        let lasted = (until - from) as f64 / 1e9;
        println!("the machine stood still for {lasted:.1} s, from {}", Seconds(*from));
    }
    let mut led = [history::led(observers), standstills].concat();
    led.sort_unstable();
    let gap = cluster.health().longest_gap(&led, &cluster.barred(), cluster.now());
    if let Some(gap) = gap {
        let majority: Vec<String> =
            (0..cluster.n()).filter(|p| gap.majority & (1 << p) != 0).map(name).collect();
        println!(
            "longest time without a leader while a majority was connected: {:.3} s, from {} ({})",
            gap.length() as f64 / 1e9,
            Seconds(gap.from),
            majority.join(" ")
        );
    }
    let dual = history::dual(observers);
    println!(
        "two leaders at once: {} times, for {:.3} s at the longest, {:.3} s in all",
        dual.windows,
        dual.longest as f64 / 1e9,
        dual.total as f64 / 1e9
    );
    Duration::from_nanos(gap.map(|gap| gap.length()).unwrap_or_default())
}

#[test]
#[ignore = "needs root, iproute2 and iptables, and takes minutes"]
fn classic_shows_for_how_long_two_lead() {
    let _alone = alone();
    let n = setting("BELLWETHER_CHAOS_N").unwrap_or(3) as usize;
    let seconds = setting("BELLWETHER_CHAOS_SECONDS").unwrap_or(60);
    let observers = chaos(n, Safety::Classic, Duration::from_secs(seconds), Work::None);
    let wrong: Vec<String> =
        observers.iter().flat_map(Observer::own_violations).map(ToString::to_string).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "needs root, iproute2 and iptables, and takes minutes"]
fn majority_never_has_two_leaders() {
    let _alone = alone();
    let sizes = setting("BELLWETHER_CHAOS_N").map_or(vec![3, 5], |n| vec![n as usize]);
    let seconds = setting("BELLWETHER_CHAOS_SECONDS").unwrap_or(300) / sizes.len() as u64;
    for n in sizes {
        chaos(n, Safety::Majority, Duration::from_secs(seconds), Work::Contained);
    }
}

/// An exec that is stopped, or killed where no PID namespace ends with it, cannot end its command in time.
#[test]
#[ignore = "needs root, iproute2, iptables, PostgreSQL and python3-psycopg2, and takes minutes"]
fn a_database_refuses_what_a_command_writes_that_outlives_its_leadership() {
    let _alone = alone();
    let seconds = setting("BELLWETHER_CHAOS_SECONDS").unwrap_or(60);
    chaos(3, Safety::Majority, Duration::from_secs(seconds), Work::Fenced);
}
