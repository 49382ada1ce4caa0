//! Where a failover's time goes: the chain of steps from the signal to the last survivor's new answer, with
//! the median of each. Steps are lines of level trace, so the processes are a little slower than otherwise.

use super::percentile::percentile;
use super::rounds::{self, Cause, PATIENCE};
use super::wait::within;
use super::{MEMORY, SIZES, started};
use bellwether::demo::process_cluster::{Agreement, ProcessCluster};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

const LOGS: [&str; 4] = ["--log", "trace", "--log-format", "json"];
const RELEASE: [&str; 2] = ["--crash-evidence", "release"];
/// A chain of more bars than this has come round in a circle.
const BARS_MAX: usize = 64;

/// A `step` of a log. Times are microseconds of CLOCK_MONOTONIC.
#[derive(Deserialize)]
struct Step {
    step: String,
    of: String,
    id: Option<String>,
    at_us: u64,
}

/// A part of a failover: what took its time, and how many microseconds.
type Bar = (String, u64);

/// Prints a budget for each kind of failover.
pub fn measure(rounds: usize, logs: &Path) -> Result<bool, String> {
    let records = tempfile::tempdir_in(MEMORY).map_err(|error| format!("no folder for records: {error}"))?;
    let memory = Some(records.path());
    for n in SIZES {
        for (what, cause, flags, states) in [
            ("crash (SIGKILL)", Cause::Crash, &[][..], None),
            ("resignation (SIGTERM)", Cause::Resignation, &[], None),
            ("majority, crash, release", Cause::Crash, &RELEASE, memory),
            ("majority, resignation (SIGTERM)", Cause::Resignation, &[], memory),
        ] {
            let flags = [&LOGS[..], flags].concat();
            let (mut processes, mut now) = started(n, &flags, None, states, logs)?;
            let mut chains = Vec::new();
            for number in 1..=rounds {
                let wrong = |error| format!("{what}, round {number}: {error}");
                chains.push(round(&mut processes, &mut now, cause).map_err(wrong)?);
            }
            print(n, what, &chains);
        }
    }
    Ok(true)
}

/// One failover, and its chain.
fn round(processes: &mut ProcessCluster, now: &mut Agreement, cause: Cause) -> Result<Vec<Bar>, String> {
    let logged: Vec<usize> = (0..processes.n()).map(|place| processes.log(place).len()).collect();
    let ids: Vec<String> = (0..processes.n()).map(|place| id(processes, place)).collect::<Result<_, _>>()?;
    let (next, took) = rounds::take_down(processes, now, cause)?;
    let seen = micros(next.since);
    let last = processes.running().into_iter().find(|p| processes.sighting(*p).since == Some(next.since));
    let last = last.ok_or("the process that came last says something else by now")?;
    let mut steps = Vec::new();
    for (place, logged) in logged.iter().enumerate() {
        let read = || steps_after(&processes.log(place), *logged);
        // A process that has ended has written all that it will.
        let whole = |steps: &[Step]| place == now.leader || steps.last().is_some_and(|s| s.at_us > seen);
        let read = within(PATIENCE, || Some(read()).filter(|steps| whole(steps)));
        steps.push(read.ok_or("a process logs no steps")?);
    }
    let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let story = Story { steps, ids, began: seen - took, former: now.leader, next: next.leader };
    let chain = story.chain(last, seen);
    rounds::bring_back(processes, now.leader, &[], &next)?;
    *now = next;
    Ok(chain)
}

/// The id of the process that runs in a place.
fn id(processes: &ProcessCluster, place: usize) -> Result<String, String> {
    let own = rounds::alive(processes, place)?.into_iter().find(|m| m.name == processes.name(place));
    own.map(|own| own.id).ok_or(format!("{} does not name itself", processes.name(place)))
}

/// The steps of a log, but for its first bytes, in order of time. Threads log side by side.
fn steps_after(log: &str, bytes: usize) -> Vec<Step> {
    let lines = log.get(bytes..).unwrap_or_default().lines();
    let mut steps: Vec<Step> = lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
    steps.sort_by_key(|step| step.at_us);
    steps
}

/// An instant by CLOCK_MONOTONIC, in microseconds.
fn micros(at: Instant) -> u64 {
    let (ago, now) = (at.elapsed(), clock_gettime(ClockId::Monotonic));
    let now = Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0));
    u64::try_from((now - ago).as_micros()).unwrap_or(u64::MAX)
}

/// One failover: the steps of each place.
struct Story {
    steps: Vec<Vec<Step>>,
    ids: Vec<String>,
    /// When the signal was sent.
    began: u64,
    former: usize,
    next: usize,
}

impl Story {
    /// From the signal to the answer of `place` that was `seen`. It is found from its end: each turn of a
    /// driver has a cause, and each message a sender.
    fn chain(&self, mut place: usize, seen: u64) -> Vec<Bar> {
        let mut bars = Vec::new();
        let Some(published) = self.before(place, seen, |s| s.step == "published") else { return bars };
        bars.push(("the prober has the answer".to_owned(), seen - published.at_us));
        let mut at = published.at_us;
        while bars.len() < BARS_MAX {
            let who = self.role(place);
            let Some(turn) = self.before(place, at, |s| s.step == "turn") else { break };
            let saved = self.before(place, at, |s| s.step == "persisted").filter(|s| s.at_us > turn.at_us);
            if let Some(saved) = saved {
                bars.push((format!("{who}: goes on after it"), at - saved.at_us));
                at = saved.at_us;
                bars.push((format!("{who}: decides, and saves its record"), at - turn.at_us));
            } else {
                bars.push((format!("{who}: decides"), at - turn.at_us));
            }
            at = turn.at_us;
            let cause =
                |step: &str| self.before(place, at, |s| s.step == step && s.of == turn.of && s.id == turn.id);
            if let Some(received) = cause("received") {
                bars.push((format!("{who}: its driver takes {}", turn.of), at - received.at_us));
                let sender = self.ids.iter().position(|id| Some(id) == turn.id.as_ref());
                let to = Some(&self.ids[place]);
                let sent = sender.and_then(|sender| {
                    self.before(sender, received.at_us, |s| {
                        s.step == "sent" && s.of == turn.of && s.id.as_ref() == to
                    })
                });
                let (Some(sender), Some(sent)) = (sender, sent) else { break };
                bars.push((format!("{} is on its way", turn.of), received.at_us - sent.at_us));
                (place, at) = (sender, sent.at_us);
            } else if let Some(judged) = cause("judged") {
                bars.push((format!("{who}: its driver takes the {}", turn.of), at - judged.at_us));
                let ended = |s: &Step| s.step == "link_ended" && s.id == turn.id;
                let Some(ended) = self.before(place, judged.at_us, ended) else { break };
                bars.push((format!("{who}: dials the leader, and is refused"), judged.at_us - ended.at_us));
                at = ended.at_us;
                bars.push((
                    format!("{who}: its reader sees the end of the link"),
                    at.saturating_sub(self.began),
                ));
                break;
            } else {
                bars.push((format!("{who}: until {}", turn.of), at.saturating_sub(self.began)));
                break;
            }
        }
        bars.reverse();
        bars
    }

    /// The last such step of a place at or before an instant, and not before the signal.
    fn before(&self, place: usize, at: u64, is: impl Fn(&Step) -> bool) -> Option<&Step> {
        let steps = self.steps[place].iter().rev();
        steps.filter(|s| s.at_us <= at && s.at_us >= self.began).find(|s| is(s))
    }

    fn role(&self, place: usize) -> &'static str {
        if place == self.former {
            "the former leader"
        } else if place == self.next {
            "the next leader"
        } else {
            "a follower"
        }
    }
}

/// Prints the budget of the most frequent chain.
fn print(n: usize, what: &str, chains: &[Vec<Bar>]) {
    let mut kinds: BTreeMap<Vec<&str>, Vec<&Vec<Bar>>> = BTreeMap::new();
    for chain in chains {
        kinds.entry(chain.iter().map(|(what, _)| what.as_str()).collect()).or_default().push(chain);
    }
    let Some((kind, alike)) = kinds.iter().max_by_key(|(_, alike)| alike.len()) else { return };
    let total: Vec<u64> = alike.iter().map(|chain| chain.iter().map(|(_, us)| us).sum()).collect();
    println!(
        "\nn = {n}, {what}: {} of {} rounds took these steps; medians in µs:",
        alike.len(),
        chains.len()
    );
    for (at, what) in kind.iter().enumerate() {
        println!("{:>8}  {what}", median(alike.iter().map(|chain| chain[at].1).collect()));
    }
    println!("{:>8}  all of it", median(total));
}

fn median(us: Vec<u64>) -> u128 {
    let mut times: Vec<Duration> = us.into_iter().map(Duration::from_micros).collect();
    times.sort_unstable();
    percentile(&times, 50).as_micros()
}
