//! What operators have asked for and were told, and what must hold after that.

use super::node::{Node, NodeInstance};
use super::rule::Rule;
use super::vote_checker::Broken;
use crate::election::{Event, Moment, Operation, OperationOutcome, Role, Status};
use std::collections::BTreeMap;

/// The operations of a run, and which processes do not stand, by their own word.
#[derive(Debug, Default)]
pub(super) struct OperationChecker {
    /// By their numbers.
    asked: Vec<Asked>,
    /// Whether each of these is cordoned, and until when it stands aside, on its fast clock.
    aside: BTreeMap<NodeInstance, (bool, Moment)>,
}

#[derive(Debug)]
struct Asked {
    instance: NodeInstance,
    operation: Operation,
    answered: bool,
}

/// A process whose application is not healthy begins to lead. One that led before may go on.
pub(super) fn begins_sick(process: &Node, status: &Status) -> Option<Broken> {
    let led = |status: &Status| matches!(status.role, Role::Leading | Role::Resigning);
    let begins = led(status) && !process.status.as_ref().is_some_and(led);
    let what = || format!("p-{} begins to lead, and its application is not healthy", process.place);
    (begins && status.candidacy.complaints.any()).then(|| (Rule::SickBegins, what()))
}

impl OperationChecker {
    /// An operator asks a process for something; returns the operation's number.
    pub(super) fn asks(&mut self, instance: NodeInstance, operation: Operation) -> u64 {
        self.asked.push(Asked { instance, operation, answered: false });
        self.asked.len() as u64 - 1
    }

    /// A process is told something. From here on it may lead, if it is uncordoned.
    pub(super) fn told(&mut self, instance: NodeInstance, event: &Event) {
        if matches!(event, Event::Operation { operation: Operation::Uncordon, .. }) {
            self.aside.remove(&instance);
        }
    }

    /// A process answers its operator.
    pub(super) fn answered(
        &mut self,
        process: &Node,
        number: u64,
        outcome: &OperationOutcome,
    ) -> Option<Broken> {
        let instance = process.instance();
        let asked = self.asked.get_mut(number as usize);
        let Some(asked) = asked.filter(|asked| asked.instance == instance && !asked.answered) else {
            let what = format!("p-{} answers operation {number} twice, or another's", process.place);
            return Some((Rule::Unanswered, what));
        };
        asked.answered = true;
        let done = outcome.as_ref().ok()?;
        if asked.operation != Operation::Uncordon {
            let now = process.time.fast();
            let until = done.aside.map_or(now, |aside| now.plus(aside));
            self.aside.insert(instance, (done.candidacy.cordoned, until));
        }
        self.leads(process)
    }

    /// No process leads that has said that it does not stand.
    pub(super) fn leads(&self, process: &Node) -> Option<Broken> {
        let (cordoned, until) = self.aside.get(&process.instance())?;
        let leads = process.status.as_ref().is_some_and(|status| status.role == Role::Leading);
        let what = || format!("p-{} leads, and has told its operator that it does not stand", process.place);
        (leads && (*cordoned || process.time.fast() < *until)).then(|| (Rule::CordonedLeads, what()))
    }

    /// At the end of a run each operation has been answered, unless its process has ended, or its driver is
    /// still held up by a stall that began among the faults.
    pub(super) fn all_answered(&self, processes: &[Node]) -> Option<Broken> {
        let open = |asked: &&Asked| {
            let process = &processes[asked.instance.place];
            !asked.answered && process.runs_as(asked.instance) && process.busy.is_none()
        };
        let Asked { instance, operation, .. } = self.asked.iter().find(open)?;
        Some((Rule::Unanswered, format!("p-{} has not answered {operation:?}", instance.place)))
    }
}
