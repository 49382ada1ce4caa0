//! The voter's rules one by one, each with the clause left out: a rule that makes no difference is no rule.
#![allow(clippy::unwrap_used)]

use crate::election::machine::{Machine, Mutation};
use crate::election::voters::fingerprint;
use crate::election::{
    Action, Ballot, Body, CrashEvidence, Entry, Epoch, Event, Incarnation, MembershipVersion, Message,
    Moment, Now, Peer, Priority, ProcessId, Question, Recollection, Record, Refusal, Safety, Settings, State,
    Timer, Verdict, ViewStamp, VoteRecord, VoterView,
};
use std::collections::BTreeSet;
use std::time::Duration;
use uuid::Uuid;

mod by_hand;
mod recovery;
mod schedules;
mod strangers;
mod views;

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
    first(3)
}

fn first(n: u8) -> BTreeSet<String> {
    (1..=n).map(|k| format!("p{k}")).collect()
}

/// p1, linked with p2 and p3; with a record of epoch 4, or without one.
struct Voter {
    machine: Machine,
    now: Duration,
}

impl Voter {
    fn new(leaves_out: Option<Mutation>) -> Voter {
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
        Voter::with(leaves_out, voters(), Some(&record))
    }

    fn with(leaves_out: Option<Mutation>, voters: BTreeSet<String>, record: Option<&Record>) -> Voter {
        let settings = Settings { safety: Safety::Majority { voters }, ..Settings::default() };
        Voter::given(settings, leaves_out, record)
    }

    fn given(settings: Settings, leaves_out: Option<Mutation>, record: Option<&Record>) -> Voter {
        let mut machine = Machine::new(settings, "c".to_owned(), peer(1), record);
        if let Some(clause) = leaves_out {
            machine.mutate(clause);
        }
        let mut voter = Voter { machine, now: Duration::from_secs(9) };
        voter.feed(Event::Start);
        [2, 3].into_iter().for_each(|k| drop(voter.feed(Event::LinkUp(peer(k)))));
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
        self.verdict(from, epoch, contest(question, epoch, life, 1500))
    }

    fn verdict(&mut self, from: u8, epoch: u64, contest: Body) -> Option<Verdict> {
        let sent = self.hear(from, epoch, contest);
        sent.into_iter().find_map(|action| match action {
            Action::Send { message: Message { body: Body::Vote { verdict, .. }, .. }, .. } => Some(verdict),
            _ => None,
        })
    }

    fn claim(&mut self, from: u8, epoch: u64) -> Option<Verdict> {
        self.ask(from, Question::Claim, epoch, u64::from(from))
    }
}

/// The question of a life that leases for so long, and whose view is the one of the record.
fn contest(question: Question, epoch: u64, life: u64, lease_ms: u32) -> Body {
    let ballot =
        Ballot { epoch: Epoch(epoch), incarnation: Incarnation(life), asked_at: Moment::default(), lease_ms };
    Body::Contest { question, ballot, freed: None, view: view(4, voters()) }
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

#[test]
fn who_is_outranked_waits_one_answer_timeout_for_each_that_outranks_it() {
    let mut voter = settled(None);
    // A former life of this voter, with its disk lost: nobody to wait for.
    voter.feed(Event::LinkUp(Peer { name: "p1".to_owned(), ..peer(9) }));
    let sent = voter.feed(Event::Timer(Timer::Margin));
    let waits = sent.into_iter().find_map(|action| match action {
        Action::Arm { timer: Timer::Announcement, after } => Some(after),
        _ => None,
    });
    assert_eq!(waits, Some(2 * Settings::default().answer_timeout));
}

#[test]
fn a_leader_by_a_later_view_that_this_voter_has_missed_is_asked_for_it() {
    for (epoch, asked) in [(4, false), (5, true)] {
        let mut voter = settled(None);
        voter.feed(Event::LinkUp(peer(4)));
        let view = ViewStamp { epoch: Epoch(epoch), version: 0 };
        let membership = MembershipVersion::default();
        let sent = voter.hear(4, 5, Body::Renew { sequence: 1, membership, lease_ms: 1500, view });
        let asks = |action: &Action| matches!(action, Action::Send { to, message: Message { body: Body::Ask, .. }, .. } if *to == peer(4).id);
        assert_eq!(sent.iter().any(asks), asked, "{view:?}");
    }
}

#[test]
fn a_withdrawal_frees_what_was_promised_for_its_epoch_and_not_for_a_later_one() {
    for (leaves_out, after) in [
        (None, Verdict::No(Refusal::Promised { for_ms: 1500 })),
        (Some(Mutation::WithdrawalFreesAny), Verdict::Yes),
    ] {
        let mut voter = settled(leaves_out);
        voter.claim(2, 5);
        voter.hear(2, 5, Body::Withdraw { epoch: Epoch(4), incarnation: Incarnation(2) });
        assert_eq!(voter.claim(3, 6), Some(after), "{leaves_out:?}");
    }
    let mut voter = settled(None);
    voter.claim(2, 5);
    voter.hear(2, 5, Body::Withdraw { epoch: Epoch(5), incarnation: Incarnation(2) });
    assert_eq!(voter.claim(3, 6), Some(Verdict::Yes));
}

#[test]
fn the_successor_in_a_farewell_is_outranked_by_nobody() {
    for (leaves_out, verdict) in
        [(None, Verdict::Yes), (Some(Mutation::SuccessorNotFavoured), Verdict::No(Refusal::Outranked))]
    {
        let mut voter = settled(leaves_out);
        voter.feed(Event::LinkUp(Peer { priority: Priority(50), ..peer(2) }));
        assert_eq!(voter.claim(2, 5), Some(Verdict::No(Refusal::Outranked)), "{leaves_out:?}");
        voter.hear(3, 5, Body::Resign { successor: Some(peer(2).id), leaving: true });
        assert_eq!(voter.claim(2, 6), Some(verdict), "{leaves_out:?}");
    }
}

#[test]
fn another_life_has_no_right_to_what_was_granted_to_the_former() {
    for (leaves_out, verdict) in
        [(None, Verdict::No(Refusal::Stale)), (Some(Mutation::IncarnationIgnored), Verdict::Yes)]
    {
        let mut voter = settled(leaves_out);
        voter.claim(2, 5);
        voter.feed(Event::LinkUp(Peer { incarnation: Incarnation(22), ..peer(2) }));
        let promised = voter.ask(2, Question::Claim, 6, 22);
        assert!(
            matches!(promised, Some(Verdict::No(Refusal::Promised { .. }))),
            "which life is the former one?"
        );
        voter.pass(1500);
        assert_eq!(voter.ask(2, Question::Claim, 5, 22), Some(verdict), "{leaves_out:?}");
    }
}

/// Who leads by a lease longer than this voter's own may have won by a grant that was forgotten since.
#[test]
fn who_agrees_to_a_sounding_keeps_its_lease() {
    for (leaves_out, longest) in [(None, 4000), (Some(Mutation::LeaseOfSoundingForgotten), 1500)] {
        let mut voter = settled(leaves_out);
        voter.hear(2, 4, contest(Question::Sounding, 5, 2, 4000));
        let kept = voter.machine.record().vote.unwrap().lease_longest_ms;
        assert_eq!(kept, longest, "{leaves_out:?}");
    }
}

/// The questions among what is sent.
fn asked(sent: &[Action]) -> Vec<(Question, u64)> {
    let question = |action: &Action| match action {
        Action::Send { message: Message { body: Body::Contest { question, ballot, .. }, .. }, .. } => {
            Some((*question, ballot.epoch.0))
        }
        _ => None,
    };
    let mut asked: Vec<_> = sent.iter().filter_map(question).collect();
    asked.dedup();
    asked
}

impl Voter {
    fn yes(&mut self, from: u8, question: Question, epoch: u64, view: &VoterView) -> Vec<Action> {
        self.hear(from, 4, self.vote(question, epoch, Verdict::Yes, view))
    }

    /// The answer of a voter to what it was asked last.
    fn vote(&self, question: Question, epoch: u64, verdict: Verdict, view: &VoterView) -> Body {
        // It was asked at the moment of the last turn.
        let asked_at = Moment(self.now);
        let (epoch, incarnation, view) = (Epoch(epoch), self.machine.me.incarnation, view.clone());
        Body::Vote { question, epoch, incarnation, asked_at, verdict, view, lease_ms: 1500 }
    }

    /// Sounds epoch 5.
    fn sound(&mut self) {
        self.feed(Event::Timer(Timer::Margin));
        assert_eq!(asked(&self.feed(Event::Timer(Timer::Announcement))), [(Question::Sounding, 5)]);
    }
}

fn view(epoch: u64, voters: BTreeSet<String>) -> VoterView {
    VoterView { stamp: ViewStamp { epoch: Epoch(epoch), version: 0 }, voters }
}

#[test]
fn a_majority_is_counted_in_the_highest_view_among_the_grants() {
    for (leaves_out, highest, wins) in [
        (None, view(4, voters()), true),
        (None, view(5, first(5)), false),
        (Some(Mutation::CountedInOwnView), view(5, first(5)), true),
    ] {
        let mut voter = settled(leaves_out);
        voter.sound();
        voter.yes(2, Question::Sounding, 5, &view(4, voters()));
        voter.yes(2, Question::Claim, 5, &highest);
        assert_eq!(voter.machine.phase.leading(), wins, "{leaves_out:?} {highest:?}");
    }
}

#[test]
fn a_grant_voids_the_voters_own_claim() {
    for leaves_out in [None, Some(Mutation::OwnClaimSurvivesGrant)] {
        let mut voter = settled(leaves_out);
        voter.sound();
        let sent = voter.yes(2, Question::Sounding, 5, &view(4, voters()));
        assert_eq!(asked(&sent), [(Question::Claim, 5)]);
        // Its own promise is over, and no timer has ended the claim.
        voter.pass(1500);
        let sent = voter.hear(3, 6, contest(Question::Claim, 6, 3, 1500));
        let withdraws = |action: &Action| {
            matches!(
                action,
                Action::Send { message: Message { body: Body::Withdraw { epoch: Epoch(5), .. }, .. }, .. }
            )
        };
        assert_eq!(sent.iter().any(withdraws), leaves_out.is_none(), "{leaves_out:?}");
    }
}

#[test]
fn of_two_claims_of_one_epoch_the_lower_ranked_ones_gives_way() {
    let cases = [(None, Priority(101), true), (None, Priority(99), false)];
    for (leaves_out, priority, gives_way) in
        cases.into_iter().chain([(Some(Mutation::NoneGivesWay), Priority(101), false)])
    {
        let mut voter = settled(leaves_out);
        voter.sound();
        voter.feed(Event::LinkUp(Peer { priority, incarnation: Incarnation(33), ..peer(3) }));
        voter.yes(2, Question::Sounding, 5, &view(4, voters()));
        let sent = voter.hear(3, 5, contest(Question::Claim, 5, 33, 1500));
        let withdraws = |action: &Action| {
            matches!(action, Action::Send { message: Message { body: Body::Withdraw { .. }, .. }, .. })
        };
        assert_eq!(sent.iter().any(withdraws), gives_way, "{leaves_out:?} {priority:?}");
    }
}

#[test]
fn a_conditional_yes_is_no_yes_until_all_have_said_it() {
    for (leaves_out, claims) in [(None, false), (Some(Mutation::ConditionalCounts), true)] {
        let mut voter = settled(leaves_out);
        voter.sound();
        let conditional = voter.vote(Question::Sounding, 5, Verdict::Conditional, &view(4, voters()));
        let sent = voter.hear(2, 4, conditional.clone());
        assert_eq!(!asked(&sent).is_empty(), claims, "{leaves_out:?}");
        if !claims {
            let sent = voter.hear(3, 4, conditional);
            assert_eq!(asked(&sent), [(Question::Claim, 5)], "all have said it");
        }
    }
}
