//! What the processes answered, and what follows from it: whether two of them led at one instant.
//!
//! Every question to a process has two readings of one clock, the test's: before it was sent, and after its
//! answer was there. The process computed its answer at *some* unknown instant between them.
//!
//! **What is proved.** A *reign* is the time in which one incarnation of a process leads in one epoch. It is
//! taken
//! to be contiguous: a lapsed epoch is never led again (a yes after a no is a violation of its own here,
//! [`Violation::Again`]). A yes says that some instant between `sent` and `received` is part of the reign. So
//! of a reign with several yes, `first` being the earliest `received` and `last` the latest `sent` among
//! them:
//! - `first <= last`: every instant from `first` to `last` is part of it: it began before the one and ended
//!   after the other. The reign is *proved* there.
//! - `last < first` (one answer, or answers whose times all overlap): one instant between `last` and `first`
//!   is part of it, and nothing more is known. It is a *window*.
//!
//! Two reigns had an instant in common, whatever the unknown instants were, if and only if
//! - both are proved, and these times overlap, or
//! - one is a window that lies within the time in which the other is proved.
//!
//! If: both follow at once. Only if: otherwise let each proved reign be no longer than it is proved, so that
//! they are disjoint. A window that lies within none of them reaches out of each. Proved reigns are closed
//! and disjoint, so they do not cover it together either: there is an instant in it that belongs to none. In
//! the open interval around that instant there are others for other windows. That is a history without a
//! common instant that gives the same answers. So what is reported has happened, and what is not reported
//! cannot be told from these answers. Instants that have the same reading of the clock are not held to be the
//! same: reigns may touch.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// The default of `--lease`.
pub const LEASE: Duration = Duration::from_millis(1_500);

/// Nanoseconds since the test began, on one clock.
pub type Nanos = u64;

/// What a process answered at `/leader`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observation {
    /// Whether it leads.
    pub yes: bool,
    /// Its epoch.
    pub epoch: u64,
    /// The id of the process that it holds to be the leader.
    pub leader: Option<String>,
    /// For how long the answer says that it holds at most; none in `classic`.
    pub valid_for_ms: Option<u64>,
}

/// Which process: it is another one after a restart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lifetime {
    /// The place of the process.
    pub place: usize,
    /// Counts the starts.
    pub life: u32,
    /// Counts how often its state folder was emptied: with the same folder its epoch never goes back.
    pub folder: u32,
}

/// One question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The process that was asked.
    pub life: Lifetime,
    /// Before it was sent.
    pub sent: Nanos,
    /// After the answer was there.
    pub received: Nanos,
    /// None: it did not answer.
    pub answer: Option<Observation>,
}

/// Yes after yes of one process in one epoch, without another answer, or none, between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The process.
    pub life: Lifetime,
    /// In which epoch.
    pub epoch: u64,
    /// The earliest time at which one was received.
    pub first: Nanos,
    /// The latest time at which one was sent.
    pub last: Nanos,
    /// When a no of the same epoch came, if it is what ended the run.
    pub no: Option<Nanos>,
}

/// A reign, as far as the answers tell of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reign {
    /// The process.
    pub life: Lifetime,
    /// In which epoch.
    pub epoch: u64,
    /// The earliest time at which a yes was received.
    pub first: Nanos,
    /// The latest time at which one was sent.
    pub last: Nanos,
}

impl Reign {
    /// Whether both had an instant in common, for certain.
    fn meets(&self, other: &Reign) -> bool {
        match (self.first <= self.last, other.first <= other.last) {
            (true, true) => self.first.max(other.first) < self.last.min(other.last),
            (true, false) => self.holds(other),
            (false, true) => other.holds(self),
            (false, false) => false,
        }
    }

    /// Whether the other's window lies within the time in which this one is proved.
    fn holds(&self, window: &Reign) -> bool {
        self.first < window.last && window.first < self.last
    }
}

/// What must not happen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Violation {
    /// Two led at one instant.
    Together(Reign, Reign),
    /// A process of another place led while the first had promised its application that none would.
    Held(Reign, Reign),
    /// The second answered yes after the first did, although its epoch is lower.
    Order(Reign, Reign),
    /// More than one leader of an epoch: the ids that the answers named, and the processes that answered yes.
    Shared { epoch: u64, named: BTreeSet<String>, yes: BTreeSet<Lifetime> },
    /// A yes after a no, in the same epoch: the run before, and when the next yes came.
    Again(Run, Nanos),
    /// An epoch went back at an observer.
    Back { life: Lifetime, from: u64, to: u64, received: Nanos },
    /// A yes that names no leader.
    Nameless { life: Lifetime, epoch: u64, received: Nanos },
    /// A yes that says to hold for longer than a lease.
    Unlimited { life: Lifetime, epoch: u64, ms: u64, received: Nanos },
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "p-{} (life {}, folder {})", self.place, self.life, self.folder)
    }
}

impl fmt::Display for Reign {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let what = if self.first <= self.last { "" } else { " (a single yes)" };
        write!(
            f,
            "{} in epoch {} from {} to {}{what}",
            self.life,
            self.epoch,
            Seconds(self.first),
            Seconds(self.last)
        )
    }
}

/// Times as people read them.
pub struct Seconds(pub Nanos);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:.6} s", self.0 as f64 / 1e9)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Violation::Together(a, b) => write!(f, "two led at one instant: {a}, and {b}"),
            Violation::Held(hold, b) => write!(f, "led under a hold: {b}, and the hold of {hold}"),
            Violation::Order(a, b) => write!(f, "a lower epoch was led after a higher one: {a}, then {b}"),
            Violation::Shared { epoch, named, yes } => {
                let yes: Vec<String> = yes.iter().map(Lifetime::to_string).collect();
                write!(f, "epoch {epoch} has several leaders: named were {named:?}, yes came from {yes:?}")
            }
            Violation::Again(run, at) => write!(
                f,
                "{} led in epoch {} until {}, said no, and said yes again at {}",
                run.life,
                run.epoch,
                Seconds(run.last),
                Seconds(*at)
            ),
            Violation::Back { life, from, to, received } => {
                write!(f, "the epoch of {life} went from {from} back to {to} at {}", Seconds(*received))
            }
            Violation::Nameless { life, epoch, received } => {
                write!(f, "{life} leads in epoch {epoch} and names no leader at {}", Seconds(*received))
            }
            Violation::Unlimited { life, epoch, ms, received } => {
                let at = Seconds(*received);
                write!(
                    f,
                    "{life} leads in epoch {epoch}, valid for {ms} ms, and a lease is {LEASE:?}, at {at}"
                )
            }
        }
    }
}

/// What one place answered, folded: as long as there are elections, not as there are answers.
#[derive(Clone, Default, Debug)]
pub struct Observer {
    /// How many questions were answered.
    pub answers: u64,
    /// Of those, how many with yes.
    pub yes: u64,
    /// How many were not.
    pub unanswered: u64,
    /// How long the slowest answer took.
    pub slowest: Nanos,
    /// The latest answer.
    pub latest: Option<Sample>,
    runs: Vec<Run>,
    /// Whether the last run goes on.
    open: bool,
    named: BTreeMap<u64, BTreeSet<String>>,
    violations: Vec<Violation>,
    /// The holds that it granted, as reigns that are proved from the answer to the hold's end.
    holds: Vec<Reign>,
}

/// More violations of one place are not kept: the first tells what is wrong.
const VIOLATIONS_MAX: usize = 100;

impl Observer {
    /// Takes in the next question to this place, in the order in which they were asked.
    pub fn observe(&mut self, sample: Sample) {
        let Some(answer) = &sample.answer else {
            self.unanswered += 1;
            self.open = false;
            return;
        };
        self.answers += 1;
        self.slowest = self.slowest.max(sample.received - sample.sent);
        if let Some((life, last)) = self.latest.as_ref().and_then(|s| Some((s.life, s.answer.as_ref()?)))
            && life.folder == sample.life.folder
            && answer.epoch < last.epoch
        {
            let (from, to) = (last.epoch, answer.epoch);
            self.violation(Violation::Back { life: sample.life, from, to, received: sample.received });
        }
        if let Some(leader) = &answer.leader {
            let named = self.named.entry(answer.epoch).or_default();
            if !named.contains(leader) {
                named.insert(leader.clone());
            }
        }
        if answer.yes {
            self.yes += 1;
            self.yes(&sample, answer);
        } else {
            self.no(&sample, answer);
        }
        self.latest = Some(sample);
    }

    fn yes(&mut self, sample: &Sample, answer: &Observation) {
        if answer.leader.is_none() {
            let (life, epoch) = (sample.life, answer.epoch);
            self.violation(Violation::Nameless { life, epoch, received: sample.received });
        }
        if let Some(ms) = answer.valid_for_ms.filter(|ms| u128::from(*ms) > LEASE.as_millis()) {
            let (life, epoch) = (sample.life, answer.epoch);
            self.violation(Violation::Unlimited { life, epoch, ms, received: sample.received });
        }
        let same = |run: &Run| run.life == sample.life && run.epoch == answer.epoch;
        let before = self.runs.last_mut().filter(|run| same(run));
        match before {
            Some(run) if self.open => {
                run.first = run.first.min(sample.received);
                run.last = run.last.max(sample.sent);
                return;
            }
            Some(run) if run.no.is_some() => {
                let again = Violation::Again(*run, sample.received);
                self.violation(again);
            }
            _ => {}
        }
        self.runs.push(Run {
            life: sample.life,
            epoch: answer.epoch,
            first: sample.received,
            last: sample.sent,
            no: None,
        });
        self.open = true;
    }

    fn no(&mut self, sample: &Sample, answer: &Observation) {
        self.open = false;
        let last = self.runs.last_mut();
        if let Some(run) = last.filter(|r| r.life == sample.life && r.epoch == answer.epoch) {
            run.no.get_or_insert(sample.received);
        }
    }

    fn violation(&mut self, violation: Violation) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(violation);
        }
    }

    /// It has granted a hold, which counts from a moment after the question was sent.
    pub fn holds(&mut self, life: Lifetime, epoch: u64, sent: Nanos, received: Nanos, lasts: Nanos) {
        let last = sent + lasts;
        if received < last {
            self.holds.push(Reign { life, epoch, first: received, last });
        }
    }

    /// How many holds it has granted.
    pub fn held(&self) -> u64 {
        self.holds.len() as u64
    }

    /// Its runs of yes, in order.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// What is wrong with this place's answers alone, whatever is promised: its epoch never goes back.
    pub fn own_violations(&self) -> impl Iterator<Item = &Violation> {
        self.violations.iter().filter(|v| matches!(v, Violation::Back { .. } | Violation::Nameless { .. }))
    }
}

/// All reigns, each once.
pub fn reigns(observers: &[Observer]) -> Vec<Reign> {
    let mut reigns: BTreeMap<(Lifetime, u64), Reign> = BTreeMap::new();
    for run in observers.iter().flat_map(Observer::runs) {
        let Run { life, epoch, first, last, .. } = *run;
        let reign = reigns.entry((life, epoch)).or_insert(Reign { life, epoch, first, last });
        reign.first = reign.first.min(first);
        reign.last = reign.last.max(last);
    }
    reigns.into_values().collect()
}

/// Everything that `--safety majority` excludes and that these answers prove, each place's own violations
/// included.
pub fn violations(observers: &[Observer]) -> Vec<Violation> {
    let mut found: Vec<Violation> = observers.iter().flat_map(|o| o.violations.iter().cloned()).collect();
    let reigns = reigns(observers);
    for (i, a) in reigns.iter().enumerate() {
        for b in &reigns[i + 1..] {
            if a.meets(b) {
                found.push(Violation::Together(*a, *b));
            }
            let (low, high) = if a.epoch < b.epoch { (a, b) } else { (b, a) };
            if low.epoch < high.epoch && high.first < low.last {
                found.push(Violation::Order(*high, *low));
            }
        }
    }
    for hold in observers.iter().flat_map(|o| &o.holds) {
        let others = reigns.iter().filter(|reign| reign.life.place != hold.life.place);
        found.extend(others.filter(|reign| hold.meets(reign)).map(|reign| Violation::Held(*hold, *reign)));
    }
    let mut leaders: BTreeMap<u64, (BTreeSet<String>, BTreeSet<Lifetime>)> = BTreeMap::new();
    for (epoch, named) in observers.iter().flat_map(|o| &o.named) {
        leaders.entry(*epoch).or_default().0.extend(named.iter().cloned());
    }
    for reign in &reigns {
        leaders.entry(reign.epoch).or_default().1.insert(reign.life);
    }
    for (epoch, (named, yes)) in leaders {
        if named.len() > 1 || yes.len() > 1 {
            found.push(Violation::Shared { epoch, named, yes });
        }
    }
    found
}

/// For how long two processes or more answered yes at once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Dual {
    /// How many times.
    pub windows: usize,
    /// The longest.
    pub longest: Nanos,
    /// All together.
    pub total: Nanos,
}

/// The times in which two or more answered yes: for `classic`, where it is no violation. Counted from runs,
/// since there a process may lead again after a no; what is between two answers of a run counts as yes.
pub fn dual(observers: &[Observer]) -> Dual {
    // +1 where a run begins, -1 where it ends; ends first, since runs may touch.
    let mut edges: Vec<(Nanos, i32)> = Vec::new();
    for run in observers.iter().flat_map(Observer::runs).filter(|run| run.first < run.last) {
        edges.extend([(run.first, 1), (run.last, -1)]);
    }
    edges.sort_unstable();
    let (mut leading, mut since, mut dual) = (0, 0, Dual::default());
    for (at, step) in edges {
        let before = leading;
        leading += step;
        if before == 1 && leading == 2 {
            since = at;
        } else if before == 2 && leading == 1 {
            dual.windows += 1;
            dual.longest = dual.longest.max(at - since);
            dual.total += at - since;
        }
    }
    dual
}

/// The times in which any process answered yes, merged and in order.
pub fn led(observers: &[Observer]) -> Vec<(Nanos, Nanos)> {
    let runs = observers.iter().flat_map(Observer::runs);
    let mut led: Vec<(Nanos, Nanos)> = runs.map(|r| (r.first.min(r.last), r.first.max(r.last))).collect();
    led.sort_unstable();
    led.dedup_by(|next, before| {
        let touch = next.0 <= before.1;
        if touch {
            before.1 = before.1.max(next.1);
        }
        touch
    });
    led
}
