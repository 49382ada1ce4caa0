//! When a majority of processes could work together, and how long the cluster had no leader meanwhile.

use super::history::Nanos;
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// From when until when, one after the other.
pub type Times = Vec<(Nanos, Nanos)>;

/// What the network and the processes are like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conditions {
    /// `reaches[a][b]`: whether all that a sends gets to b.
    pub reaches: Vec<Vec<bool>>,
    /// Whether the process of a place runs: not stopped, not ended, not without its record.
    pub runs: Vec<bool>,
}

impl Conditions {
    /// What holds in both.
    pub fn both(&self, other: &Conditions) -> Conditions {
        let and = |a: &[bool], b: &[bool]| a.iter().zip(b).map(|(a, b)| *a && *b).collect();
        Conditions {
            reaches: self.reaches.iter().zip(&other.reaches).map(|(a, b)| and(a, b)).collect(),
            runs: and(&self.runs, &other.runs),
        }
    }

    /// Whether all of these places run and reach each other.
    fn whole(&self, set: u32) -> bool {
        let places: Vec<usize> = (0..self.runs.len()).filter(|place| set & (1 << place) != 0).collect();
        let meets = |a: usize| places.iter().all(|b| a == *b || self.reaches[a][*b]);
        places.iter().all(|place| self.runs[*place] && meets(*place))
    }
}

/// Since when, and until when, which majorities were whole.
pub struct Health {
    /// Each majority, and since when it is whole.
    sets: Vec<(u32, Option<Nanos>)>,
    /// When one was, and which.
    whole: Vec<(Nanos, Nanos, u32)>,
}

/// A time without a leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    pub from: Nanos,
    pub to: Nanos,
    /// The places of the majority that was whole all the while, as bits.
    pub majority: u32,
}

impl Gap {
    pub fn length(&self) -> Nanos {
        self.to - self.from
    }
}

impl Health {
    pub fn new(n: usize) -> Health {
        let sets = (0..1u32 << n).filter(|set| set.count_ones() as usize > n / 2);
        Health { sets: sets.map(|set| (set, None)).collect(), whole: Vec::new() }
    }

    /// From this time on these are the conditions.
    pub fn note(&mut self, at: Nanos, conditions: &Conditions) {
        for (set, since) in &mut self.sets {
            match (conditions.whole(*set), *since) {
                (true, None) => *since = Some(at),
                (false, Some(began)) => {
                    self.whole.push((began, at, *set));
                    *since = None;
                }
                _ => {}
            }
        }
    }

    /// The longest time without a leader while one majority was whole and one of it was a candidate, up to
    /// now. `barred` has the times in which each place was none.
    pub fn longest_gap(&self, led: &[(Nanos, Nanos)], barred: &[Times], now: Nanos) -> Option<Gap> {
        let open = self.sets.iter().filter_map(|(set, since)| Some((since.as_ref().copied()?, now, *set)));
        let times = self.whole.iter().copied().chain(open);
        let excused = |set: u32| {
            let places = barred.iter().enumerate().filter(|(place, _)| set & (1 << place) != 0);
            let all = places.map(|(_, times)| times.clone()).reduce(|some, more| in_both(&some, &more));
            let mut excused = [led.to_vec(), all.unwrap_or_default()].concat();
            excused.sort_unstable();
            excused
        };
        let excused: Vec<Times> = (0..1 << barred.len()).map(excused).collect();
        times
            .filter_map(|(from, to, majority)| {
                longest_within(&excused[majority as usize], from, to, majority)
            })
            .max_by_key(Gap::length)
    }
}

/// The times that both have in common.
fn in_both(some: &[(Nanos, Nanos)], more: &[(Nanos, Nanos)]) -> Times {
    let pairs = some.iter().flat_map(|a| more.iter().map(move |b| (a.0.max(b.0), a.1.min(b.1))));
    pairs.filter(|(from, to)| from < to).collect()
}

/// When a process was no candidate for its application's sake, as the log of its place tells, up to now.
/// `began` is the moment of the log's clock that all times count from. A restart forgets it.
pub fn barred(log: &str, began: SystemTime, now: Nanos) -> Times {
    let (mut times, mut since) = (Times::new(), None);
    for line in log.lines() {
        let fields: Value = serde_json::from_str(line).unwrap_or_default();
        let at = fields["ts"].as_str().and_then(|ts| humantime::parse_rfc3339(ts).ok());
        let at = at.map(|at| at.duration_since(began).unwrap_or(Duration::ZERO).as_nanos() as Nanos);
        match (fields["event"].as_str(), at) {
            (Some("application_unhealthy"), Some(at)) => since = since.or(Some(at)),
            (Some("application_healthy" | "started"), Some(at)) => {
                times.extend(since.take().map(|since| (since, at)));
            }
            _ => {}
        }
    }
    times.extend(since.map(|since| (since, now)));
    times
}

fn longest_within(led: &[(Nanos, Nanos)], from: Nanos, to: Nanos, majority: u32) -> Option<Gap> {
    let mut gaps = Vec::new();
    let mut free = from;
    for (began, ended) in led.iter().filter(|(began, ended)| *began < to && *ended > from) {
        gaps.push((free, *began));
        free = free.max(*ended);
    }
    gaps.push((free, to));
    let gaps = gaps.into_iter().filter(|(from, to)| from < to);
    gaps.map(|(from, to)| Gap { from, to, majority }).max_by_key(Gap::length)
}
