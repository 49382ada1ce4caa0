//! The voter's rules one by one, each with the clause left out: a rule that makes no difference is no rule.
#![allow(clippy::unwrap_used)]

use crate::election::machine::{Machine, Mutation};
use crate::election::{
    Action, Ballot, Body, Epoch, Event, Incarnation, Message, Moment, Now, Peer, Priority, ProcessId,
    Question, Record, Refusal, Safety, Settings, Verdict, ViewStamp, VoteRecord, VoterView,
};
use std::collections::BTreeSet;
use std::time::Duration;
use uuid::Uuid;

fn peer(k: u8) -> Peer {
    Peer {
        id: ProcessId(Uuid::from_u128(u128::from(k))),
        incarnation: Incarnation(u64::from(k)),
        name: format!("p{k}"),
        address: ([198, 18, 0, k], 4041).into(),
        priority: Priority::DEFAULT,
        revision: String::new(),
    }
}

fn voters() -> BTreeSet<String> {
    (1..=3).map(|k| format!("p{k}")).collect()
}

/// p1 with a record of epoch 4, linked with p2 and p3.
struct Voter {
    machine: Machine,
    now: Duration,
}

impl Voter {
    fn new(leaves_out: Option<Mutation>) -> Voter {
        let settings = Settings { safety: Safety::Majority { voters: voters() }, ..Settings::default() };
        let stamp = ViewStamp { epoch: Epoch(4), version: 0 };
        let vote = VoteRecord {
            name: "p1".to_owned(),
            granted_to: None,
            view: VoterView { stamp, voters: voters() },
            lease_longest_ms: 1500,
        };
        let record = Record {
            cluster: "c".to_owned(),
            id: peer(1).id,
            epoch: Epoch(4),
            leader: None,
            members: Vec::new(),
            vote: Some(vote),
        };
        let mut machine = Machine::new(settings, "c".to_owned(), peer(1), Some(&record));
        if let Some(clause) = leaves_out {
            machine.mutate(clause);
        }
        let mut voter = Voter { machine, now: Duration::from_secs(9) };
        voter.feed(Event::Start);
        for k in [2, 3] {
            voter.feed(Event::LinkUp(peer(k)));
        }
        voter
    }

    fn feed(&mut self, event: Event) -> Vec<Action> {
        self.machine.handle(Now { at: Moment(self.now), wall_ms: 0 }, event)
    }

    /// Lets time pass, in turns that are no pauses.
    fn pass(&mut self, mut ms: u64) {
        while ms > 0 {
            let step = ms.min(500);
            self.now += Duration::from_millis(step);
            self.feed(Event::Turn);
            ms -= step;
        }
    }

    fn hear(&mut self, from: u8, epoch: u64, body: Body) -> Vec<Action> {
        self.feed(Event::Received { from: peer(from).id, message: Message { epoch: Epoch(epoch), body } })
    }

    fn ask(&mut self, from: u8, question: Question, epoch: u64, life: u64) -> Option<Verdict> {
        let ballot = Ballot {
            epoch: Epoch(epoch),
            incarnation: Incarnation(life),
            lease_ms: 1500,
            view: ViewStamp { epoch: Epoch(4), version: 0 },
        };
        let sent = self.hear(from, epoch, Body::Contest { question, ballot, freed: None });
        sent.into_iter().find_map(|action| match action {
            Action::Send { message: Message { body: Body::Vote { verdict, .. }, .. }, .. } => Some(verdict),
            _ => None,
        })
    }

    fn claim(&mut self, from: u8, epoch: u64) -> Option<Verdict> {
        self.ask(from, Question::Claim, epoch, u64::from(from))
    }
}

/// A voter whose caution is over.
fn settled(leaves_out: Option<Mutation>) -> Voter {
    let mut voter = Voter::new(leaves_out);
    voter.pass(1500);
    voter
}

#[test]
fn a_restarted_voter_grants_conditionally_for_a_lease() {
    assert_eq!(Voter::new(None).claim(3, 5), Some(Verdict::Conditional));
    assert_eq!(Voter::new(Some(Mutation::NoCaution)).claim(3, 5), Some(Verdict::Yes));
    assert_eq!(settled(None).claim(3, 5), Some(Verdict::Yes));
}

#[test]
fn a_promise_holds_for_a_lease() {
    for (leaves_out, second) in [
        (None, Verdict::No(Refusal::Promised { for_ms: 500 })),
        (Some(Mutation::PromiseShort), Verdict::Yes),
        (Some(Mutation::PromiseIgnored), Verdict::Yes),
    ] {
        let mut voter = settled(leaves_out);
        assert_eq!(voter.claim(2, 5), Some(Verdict::Yes), "{leaves_out:?}");
        voter.pass(1000);
        assert_eq!(voter.claim(3, 6), Some(second), "{leaves_out:?}");
    }
    let mut voter = settled(None);
    voter.claim(2, 5);
    voter.pass(1500);
    assert_eq!(voter.claim(3, 6), Some(Verdict::Yes));
}

#[test]
fn an_epoch_is_granted_once_but_again_to_the_same_life() {
    for (leaves_out, other) in
        [(None, Verdict::No(Refusal::Stale)), (Some(Mutation::EpochGrantedTwice), Verdict::Yes)]
    {
        let mut voter = settled(leaves_out);
        assert_eq!(voter.claim(2, 5), Some(Verdict::Yes));
        assert_eq!(voter.claim(2, 5), Some(Verdict::Yes), "a repetition");
        voter.pass(1500);
        assert_eq!(voter.claim(3, 5), Some(other), "{leaves_out:?}");
    }
    assert_eq!(settled(None).ask(3, Question::Claim, 5, 99), None, "a claim of another life says nothing");
}

#[test]
fn a_withdrawal_that_overtakes_its_claim_is_remembered() {
    for (leaves_out, late) in
        [(None, Verdict::No(Refusal::Withdrawn)), (Some(Mutation::WithdrawalForgotten), Verdict::Yes)]
    {
        let mut voter = settled(leaves_out);
        voter.hear(2, 5, Body::Withdraw { epoch: Epoch(5), incarnation: Incarnation(2) });
        assert_eq!(voter.claim(2, 5), Some(late), "{leaves_out:?}");
    }
}

#[test]
fn a_farewell_frees_what_was_promised_to_its_sender_only() {
    for (leaves_out, after) in [
        (None, Verdict::No(Refusal::Promised { for_ms: 1500 })),
        (Some(Mutation::FarewellFreesAny), Verdict::Yes),
    ] {
        let mut voter = settled(leaves_out);
        voter.claim(2, 5);
        voter.hear(3, 4, Body::Resign { successor: None, leaving: false });
        assert_eq!(voter.claim(3, 6), Some(after), "{leaves_out:?}");
    }
    let mut voter = settled(None);
    voter.claim(2, 5);
    voter.hear(2, 5, Body::Resign { successor: Some(peer(3).id), leaving: false });
    assert_eq!(voter.claim(3, 6), Some(Verdict::Yes));
}

#[test]
fn a_refusal_changes_nothing() {
    for leaves_out in [None, Some(Mutation::RefusalRaisesEpoch)] {
        let mut voter = settled(leaves_out);
        voter.claim(2, 5);
        voter.claim(3, 9);
        let expected = if leaves_out.is_none() { 5 } else { 9 };
        assert_eq!(voter.machine.epoch(), Epoch(expected), "{leaves_out:?}");
    }
}

#[test]
fn a_grant_is_durable_before_its_reply() {
    for leaves_out in [None, Some(Mutation::GrantNotDurable)] {
        let mut voter = settled(leaves_out);
        voter.claim(2, 5);
        let kept = voter.machine.record();
        assert_eq!(kept.epoch == Epoch(5), leaves_out.is_none(), "{leaves_out:?}");
    }
}
