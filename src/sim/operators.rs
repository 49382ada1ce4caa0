//! Operators: what they ask of processes in a run.

use super::clock::{MS, Ns};
use super::fault::{Asks, Fault, Kind};
use super::node::{Input, NodeInstance};
use super::plan::Plan;
use super::queue::Item;
use super::target::{Cue, Target};
use super::world::World;
use crate::election::{Event, Operation, OperationOutcome, Sign};
use fastrand::Rng;
use std::time::Duration;

/// How long an operator waits for an answer.
const WITHIN: Duration = Duration::from_secs(2);

/// In some runs operators ask for things.
pub(super) fn operators(random: &mut Rng, plan: &mut Plan) {
    for _ in 0..random.usize(1..=4) {
        let place = |random: &mut Rng| Target::Place(random.usize(0..plan.n));
        let asks = match random.u8(0..4) {
            0 => Asks::Transfer { to: place(random) },
            // Once in a run: a second time would keep it from leading for longer than a run lasts.
            2 if !plan.faults.iter().any(|fault| fault.kind.sickens()) => Asks::Sicken,
            1 | 2 => Asks::Cordon,
            _ => Asks::Resign { aside: Duration::from_millis(random.u64(1..=5_000)) },
        };
        let target = if random.u8(0..3) > 0 { Target::Leader } else { place(random) };
        let cue = if random.u8(0..3) == 0 { random.choice(Cue::ALL) } else { None };
        let delay = random.u64(0..=100 * MS);
        plan.faults.push(Fault {
            at: random.u64(0..=plan.chaos),
            cue: cue.map(|cue| (cue, delay)),
            lasts: random.u64(50 * MS..=5_000 * MS),
            kind: Kind::Operate { target, asks },
        });
    }
}

impl World {
    /// An operator asks a process for something.
    pub(super) fn operate(&mut self, place: usize, asks: Asks, actor: usize, until: Ns) {
        let instance = self.nodes[place].instance();
        let operation = match asks {
            Asks::Resign { aside } => Operation::Resign { stand_aside: Some(aside) },
            Asks::Transfer { to } => {
                Operation::Transfer { to: self.nodes[self.place_of(to, actor)].name.clone() }
            }
            Asks::Cordon => {
                self.queue.put(until, Item::Uncordon(instance));
                Operation::Cordon
            }
            Asks::Sicken => {
                self.queue.put(until, Item::Heal(instance));
                return self.hears_of_application(instance, false);
            }
        };
        self.ask(instance, operation);
    }

    /// A process may lead again. That ends what is left of a resignation's time, too.
    pub(super) fn uncordon(&mut self, instance: NodeInstance) {
        self.ask(instance, Operation::Uncordon);
    }

    /// The probe of an application changes its mind.
    pub(super) fn hears_of_application(&mut self, instance: NodeInstance, healthy: bool) {
        if self.nodes[instance.place].runs_as(instance) {
            let sign = Sign::Probed { healthy };
            self.input(instance, Input::Event(Event::Application(sign)));
        }
    }

    fn ask(&mut self, instance: NodeInstance, operation: Operation) {
        if self.nodes[instance.place].runs_as(instance) {
            let number = self.checker.operations.asks(instance, operation.clone());
            self.input(instance, Input::Event(Event::Operation { number, operation, within: WITHIN }));
        }
    }

    /// A process answers its operator.
    pub(super) fn answered(&mut self, place: usize, number: u64, outcome: &OperationOutcome) {
        if self.trace.on() {
            let text = outcome.as_ref().map_or_else(|refusal| refusal.to_string(), |_| "done".to_owned());
            self.trace.line(self.now, &format!("p-{place}         answers its operator: {text}"));
        }
        let broken = self.checker.operations.answered(&self.nodes[place], number, outcome);
        self.checker.found(self.now, broken);
    }
}
