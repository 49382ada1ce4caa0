//! Applications beside the processes of a run: they take holds, and count on each for as long as a careful
//! holder may.

use super::hold::{Applications, Hold};
use super::node::{Input, NodeInstance};
use super::rule::Rule;
use super::timing::longest_lease;
use super::world::World;
use crate::election::{CrashEvidence, Event, HOLDS_MAX, HoldAnswer, HoldOutcome, HoldRequest, Sign};
use std::time::Duration;

/// The longest hold that an application is granted, and how long a resignation waits, in such a run.
const HOLD_MAX: Duration = Duration::from_secs(10);
const STOP_WAIT: Duration = Duration::from_secs(3);
/// An application asks for holds of up to two seconds, or of the longest lease if that is longer.
const ASKED_MS: u64 = 2_000;

impl World {
    /// In one of four runs of `majority` there are applications.
    pub(super) fn begin_applications(&mut self) {
        let mut random = fastrand::Rng::with_seed(self.plan.seed ^ 0x686f_6c64_6572_7321);
        if !self.plan.majority() || random.u8(0..4) != 0 {
            return;
        }
        for process in &mut self.nodes {
            (process.settings.hold_max, process.settings.stop_wait) = (HOLD_MAX, STOP_WAIT);
        }
        let asked_max = (longest_lease(&self.plan).as_millis() as u64).max(ASKED_MS);
        self.applications = Some(Applications { random, asked_max, holds: Vec::new() });
    }

    /// A process starts. Where evidence frees promises, every second start is without that: the flag changes
    /// under way.
    pub(super) fn change_evidence(&mut self, place: usize) {
        let releases = self.plan.releases();
        let Some(Applications { random, .. }) = self.applications.as_mut().filter(|_| releases) else {
            return;
        };
        let flags = [CrashEvidence::Release, CrashEvidence::Suspect];
        self.nodes[place].settings.crash_evidence = flags[usize::from(random.bool())];
    }

    /// A leader has sent a round: its application may want something.
    pub(super) fn application_asks(&mut self, instance: NodeInstance) {
        let Some(Applications { random, asked_max, holds }) = &mut self.applications else { return };
        let own: Vec<u64> =
            holds.iter().filter(|hold| hold.instance == instance).map(|hold| hold.number).collect();
        let lasts = Duration::from_millis(random.u64(1..=*asked_max));
        let known = random.choice(own);
        let request = match (random.u8(0..8), known) {
            (0 | 1, Some(hold)) => {
                holds.retain(|held| held.instance != instance || held.number != hold);
                HoldRequest::End { hold }
            }
            (2..=4, Some(hold)) => HoldRequest::Extend { hold, lasts },
            (0..=5, _) => HoldRequest::Take { lasts },
            (6, _) => {
                let sign = Sign::Watches { valid_for: lasts };
                return self.input(instance, Input::Event(Event::Application(sign)));
            }
            _ => return,
        };
        self.input(instance, Input::Event(Event::Hold(request)));
    }

    /// A process answers its application. The promise counts from the turn, whose readings are the last.
    pub(super) fn hold_answered(&mut self, place: usize, answer: &HoldAnswer) {
        let HoldOutcome::Granted { hold: number, lasts, .. } = answer.outcome else { return };
        let (now, whole_seconds) = (self.now, self.plan.whole_seconds);
        let (nodes, process) = (&self.nodes, &self.nodes[place]);
        let Some(applications) = &mut self.applications else { return };
        applications.holds.retain(|hold| hold.counts(&nodes[hold.instance.place], whole_seconds, now));
        applications.holds.push(Hold {
            instance: process.instance(),
            number,
            taken: process.last,
            slept: process.slept,
            lasts,
        });
        let most = nodes.len() * HOLDS_MAX * 64;
        assert!(applications.holds.len() <= most, "holds end");
        for other in (0..self.nodes.len()).filter(|other| *other != place) {
            if self.nodes[other].leads(now) {
                self.check_holds(other);
            }
        }
    }

    /// A process answers that it leads: no application of another place may count on a hold.
    pub(super) fn check_holds(&mut self, place: usize) {
        let Some(applications) = &self.applications else { return };
        let out = |hold: &&Hold| {
            let holder = &self.nodes[hold.instance.place];
            hold.instance.place != place && hold.counts(holder, self.plan.whole_seconds, self.now)
        };
        if let Some(hold) = applications.holds.iter().find(out) {
            let what = format!("p-{place} answers that it leads, under a hold of p-{}", hold.instance.place);
            self.checker.broken(self.now, Rule::HoldBroken, what);
        }
    }
}
