//! Checks the rules that must hold, each whenever an event could have broken it.

use super::clock::Ns;
use super::node::{Node, NodeInstance};
use super::operation_checker::OperationChecker;
use super::rule::{Rule, Violation};
use super::vote_checker::{Broken, VoteChecker};
use crate::election::{self, Body, Epoch, Message, ProcessId, Record, Role, Stage, Status, VoteOutcome};
use std::collections::{BTreeMap, BTreeSet};

/// What a run remembers, to compare later moments with.
#[derive(Debug)]
pub(super) struct Checker {
    majority: bool,
    pub(super) violation: Option<Violation>,
    /// The leader of each epoch. Bounded by the elections of a run.
    leaders: BTreeMap<Epoch, NodeInstance>,
    /// The highest epoch in the messages of each disk, by place and disk.
    sent: BTreeMap<(usize, u32), Epoch>,
    /// The highest epoch that each incarnation has led in and leads no more.
    over: BTreeMap<NodeInstance, Epoch>,
    /// Which elections each incarnation has begun.
    elections: BTreeSet<(NodeInstance, Epoch)>,
    votes: VoteChecker,
    pub(super) operations: OperationChecker,
    /// Classic: how often one began to lead while another led.
    pub(super) two_leaders: u64,
}

impl Checker {
    pub(super) fn new(majority: bool, freed_by_evidence: bool) -> Checker {
        Checker {
            majority,
            violation: None,
            leaders: BTreeMap::new(),
            sent: BTreeMap::new(),
            over: BTreeMap::new(),
            elections: BTreeSet::new(),
            votes: VoteChecker::new(freed_by_evidence),
            operations: OperationChecker::default(),
            two_leaders: 0,
        }
    }

    /// The first broken rule counts.
    pub(super) fn broken(&mut self, at: Ns, rule: Rule, what: String) {
        self.violation.get_or_insert(Violation { at, rule, what });
    }

    pub(super) fn found(&mut self, at: Ns, broken: Option<Broken>) {
        if let Some((rule, what)) = broken {
            self.broken(at, rule, what);
        }
    }

    /// A process starts, in this epoch.
    pub(super) fn started(&mut self, now: Ns, process: &Node, epoch: Epoch) {
        let sent = self.sent.get(&(process.place, process.disks)).copied().unwrap_or_default();
        if epoch < sent {
            let what =
                format!("p-{} starts in epoch {epoch}, and has sent messages of epoch {sent}", process.place);
            self.broken(now, Rule::EpochBack, what);
        }
    }

    /// Whether there has been a vote.
    pub(super) fn voted(&self) -> bool {
        self.votes.any()
    }

    /// A record becomes durable.
    pub(super) fn durable(&mut self, now: Ns, process: &Node, record: &Record) {
        let before = process.disk.record.as_ref().map_or(Epoch::ZERO, |record| record.epoch);
        if record.epoch < before {
            let what = format!("p-{} writes epoch {} over epoch {before}", process.place, record.epoch);
            self.broken(now, Rule::EpochBack, what);
        }
        if self.majority {
            let broken = self.votes.durable(process, record);
            self.found(now, broken);
        }
    }

    /// A process takes in a message.
    pub(super) fn heard(&mut self, process: &Node, from: election::Instance, message: &Message) {
        if self.majority {
            self.votes.heard(process, from, message);
        }
    }

    /// A message leaves.
    pub(super) fn sent(&mut self, now: Ns, process: &Node, to: ProcessId, message: &Message) {
        if self.majority {
            let broken = self.votes.sent(process, to, message);
            self.found(now, broken);
        }
        let place = process.place;
        let durable = process.disk.record.as_ref();
        let epoch = durable.map_or(Epoch::ZERO, |record| record.epoch);
        if durable.is_none() || message.epoch > epoch {
            let what = format!(
                "p-{place} sends {} of epoch {}, and epoch {epoch} is durable",
                message.body.name(),
                message.epoch
            );
            self.broken(now, Rule::NotDurable, what);
        }
        if let Body::Vote { ballot, outcome: VoteOutcome::Granted, .. } = &message.body
            && ballot.stage == Stage::Vote
            && epoch < ballot.epoch
        {
            let what = format!("p-{place} votes in epoch {}, and no such vote is durable", ballot.epoch);
            self.broken(now, Rule::NotDurable, what);
        }
        let sent = self.sent.entry((place, process.disks)).or_default();
        *sent = message.epoch.max(*sent);
    }

    /// A process begins an election of this epoch (invariant 6).
    pub(super) fn election(&mut self, now: Ns, process: &Node, epoch: Epoch) {
        if !self.elections.insert((process.instance(), epoch)) {
            let what = format!("p-{} begins a second election in epoch {epoch}", process.place);
            self.broken(now, Rule::SecondElection, what);
        }
    }

    /// A process shows HTTP another status than the one it still has.
    pub(super) fn published(&mut self, now: Ns, places: &[Node], place: usize, status: &Status) {
        if !self.majority {
            return;
        }
        let process = &places[place];
        let broken = self.votes.counts_on(now, places, place, status);
        self.found(now, broken);
        let (place, instance) = (process.place, process.instance());
        if let Some(before) = process.status.as_ref().filter(|before| before.role == Role::Leading) {
            let lapsed = before.valid_until.is_none_or(|until| until <= process.turned.fast());
            if status.role != Role::Leading || status.epoch != before.epoch || lapsed {
                let over = self.over.entry(instance).or_default();
                *over = before.epoch.max(*over);
            }
        }
        if status.role != Role::Leading {
            return;
        }
        if self.over.get(&instance).is_some_and(|over| status.epoch <= *over) {
            let what = format!("p-{place} leads epoch {} again, which was over", status.epoch);
            self.broken(now, Rule::LedAgain, what);
        }
        let leader = *self.leaders.entry(status.epoch).or_insert(instance);
        if leader != instance {
            let what = format!("p-{place} leads epoch {}, in which p-{} has led", status.epoch, leader.place);
            self.broken(now, Rule::EpochTwice, what);
        }
    }

    /// Two processes answer that they lead; one of them began to just now, or not.
    pub(super) fn two_leaders(&mut self, now: Ns, one: &Node, other: &Node, began: bool) {
        self.two_leaders += u64::from(began);
        if self.majority {
            let epoch = |p: &Node| p.status.as_ref().map_or(Epoch::ZERO, |status| status.epoch);
            let what = format!(
                "p-{} (epoch {}) and p-{} (epoch {}) answer that they lead",
                one.place,
                epoch(one),
                other.place,
                epoch(other)
            );
            self.broken(now, Rule::TwoLeaders, what);
        }
    }
}
