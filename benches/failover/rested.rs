//! What a rest before a round costs, and what the channel costs. The rounds of all variants alternate, so
//! that the machine's noise hits all of them alike.

use super::rounds::{self, Cause, PATIENCE};
use super::{Bound, CAUSES, Row, SIZES, ms, percentile, print, started};
use crate::wait::within;
use bellwether::demo::process_cluster::{Agreement, ProcessCluster};
use std::path::Path;
use std::time::Duration;

const ROUNDS: usize = 100;
/// Clusters of each kind that rest at the same time. Each has an equal share of the rounds.
const CLUSTERS: usize = 10;
/// Longer than the silence after which an unused link is closed.
const REST: Duration = Duration::from_millis(11_500);
/// How often processes are asked during a round; at rest no client asks them.
const ASK_EVERY: Duration = Duration::from_millis(1);
/// The most that the channel, or a rest, may add to a median, in milliseconds.
const COST_MS_MAX: f64 = 1.0;

/// The variants of a round: whether its cluster has the channel, whether it has rested, and their words.
const VARIANTS: [(bool, bool, &str); 4] = [
    (false, false, ""),
    (false, true, ", after a rest"),
    (true, false, ", channel"),
    (true, true, ", channel, after a rest"),
];

struct Cluster {
    channel: bool,
    processes: ProcessCluster,
    now: Agreement,
}

/// The times of rounds, by channel and rest.
type Times = [[Vec<Duration>; 2]; 2];

/// Whether everything was within its bound. `channel`: the flags that turn the channel on.
pub fn measure(channel: &[&str], fast: Duration, logs: &Path) -> Result<bool, String> {
    let mut good = true;
    for n in SIZES {
        let kinds = [false, true].into_iter().cycle().take(2 * CLUSTERS);
        let begun = kinds.map(|sealed| Cluster::started(n, sealed, if sealed { channel } else { &[] }, logs));
        let mut clusters = begun.collect::<Result<Vec<_>, _>>()?;
        for (cause, what) in CAUSES {
            let mut times = Times::default();
            for _ in 0..ROUNDS / CLUSTERS {
                // All rest at the same time, so that no round disturbs a rest.
                std::thread::sleep(REST);
                for cluster in &mut clusters {
                    for rested in [true, false] {
                        let took = cluster.round(cause)?;
                        times[usize::from(cluster.channel)][usize::from(rested)].push(took);
                    }
                }
            }
            good &= print_all(n, what, fast, times);
        }
    }
    Ok(good)
}

impl Cluster {
    fn started(n: usize, channel: bool, flags: &[&str], logs: &Path) -> Result<Cluster, String> {
        let (processes, now) = started(n, flags, None, None, logs)?;
        processes.ask_every(None);
        Ok(Cluster { channel, processes, now })
    }

    fn round(&mut self, cause: Cause) -> Result<Duration, String> {
        let processes = &mut self.processes;
        let wrong = |error| format!("{cause:?}, channel: {}: {error}", self.channel);
        let answers = |p: &ProcessCluster| (0..p.n()).map(|at| p.sighting(at).answers).collect::<Vec<_>>();
        let before = answers(processes);
        processes.ask_every(Some(ASK_EVERY));
        let asked = || answers(processes).iter().zip(&before).all(|(now, before)| now > before).then_some(());
        within(PATIENCE, asked).ok_or_else(|| wrong("not all processes answer".to_owned()))?;
        let (took, _) = rounds::round(processes, &mut self.now, cause).map_err(wrong)?;
        processes.ask_every(None);
        Ok(took)
    }
}

/// Prints the rows of a size and a cause, and what the channel and the rest add.
fn print_all(n: usize, what: &str, fast: Duration, mut times: Times) -> bool {
    let mut good = true;
    // Without the signal's name the words fit into their column.
    let what = what.split(' ').next().unwrap_or(what);
    for (channel, rested, words) in VARIANTS {
        let times = times[usize::from(channel)][usize::from(rested)].clone();
        good &= print(&Row { n, what: &format!("{what}{words}"), times, bound: Bound::Median(fast) });
    }
    let medians = times.each_mut().map(|kind| {
        kind.each_mut().map(|times| {
            times.sort_unstable();
            ms(percentile(times, 50))
        })
    });
    let [clear, sealed] = medians;
    for (words, [(first, one), (second, other)]) in [
        ("channel minus clear", [("unrested", sealed[0] - clear[0]), ("rested", sealed[1] - clear[1])]),
        ("rested minus unrested", [("in clear", clear[1] - clear[0]), ("channel", sealed[1] - sealed[0])]),
    ] {
        let verdict = |cost| if cost <= COST_MS_MAX { "ok" } else { "OVER" };
        println!(
            "    medians, {words}: {first} {one:+.2} ms: {}; {second} {other:+.2} ms: {}; at most \
             {COST_MS_MAX} ms each",
            verdict(one),
            verdict(other)
        );
        good &= one <= COST_MS_MAX && other <= COST_MS_MAX;
    }
    good
}
