//! Holds: docs/safety/holds.md, rule by rule.

use super::*;
use crate::election::{
    CrashEvidence, HOLDS_MAX, HoldAnswer, HoldOutcome, HoldRequest, ListWanted, Operation, OperationRefusal,
    Role,
};

const SECOND: Duration = Duration::from_secs(1);

/// A leader whose first round p2 has acknowledged, firmly or not.
fn leader(firm: bool, leaves_out: Option<Mutation>) -> Voter {
    leader_with(|_| {}, firm, leaves_out)
}

fn leader_with(change: impl Fn(&mut Settings), firm: bool, leaves_out: Option<Mutation>) -> Voter {
    let mut settings = given(&[1, 2, 3], 1500);
    settings.hold_max = Duration::from_secs(60);
    change(&mut settings);
    let mut voter = Voter::leader_with(settings, leaves_out);
    voter.acknowledged_by(2, firm);
    voter
}

impl Voter {
    /// The latest round.
    fn acknowledged_by(&mut self, from: u8, firm: bool) -> Vec<Action> {
        let (membership, config) = (MembershipVersion::default(), version(5, 0));
        let (sequence, flags) = (self.round, flags(&[1, 2, 3], 1500));
        self.hear(from, 5, Body::Renewed { sequence, membership, promised: true, firm, config, flags })
    }

    fn asked_to_hold(&mut self, request: HoldRequest) -> HoldOutcome {
        held(&self.feed(Event::Hold(request)))
    }

    /// For how long it promises.
    fn takes(&mut self, lasts: Duration) -> Option<(u64, Duration)> {
        match self.asked_to_hold(HoldRequest::Take { lasts }) {
            HoldOutcome::Granted { hold, lasts, epoch: Epoch(5) } => Some((hold, lasts)),
            HoldOutcome::Nothing => None,
            other => panic!("{other:?}"),
        }
    }

    fn role(&self) -> Role {
        self.machine.status().role
    }
}

fn held(actions: &[Action]) -> HoldOutcome {
    let answer = actions.iter().find_map(|action| match action {
        Action::Held(HoldAnswer { outcome, .. }) => Some(*outcome),
        _ => None,
    });
    answer.unwrap()
}

fn resignation(actions: &[Action]) -> Option<(Option<ProcessId>, bool)> {
    bodies(actions).find_map(|body| match body {
        Body::Resign { successor, leaving } => Some((*successor, *leaving)),
        _ => None,
    })
}

fn refused(actions: &[Action]) -> Option<OperationRefusal> {
    actions.iter().find_map(|action| match action {
        Action::Answer { outcome, .. } => outcome.clone().err(),
        _ => None,
    })
}

#[test]
fn a_hold_takes_nine_tenths_of_what_is_left_of_the_lease() {
    // The lease of 1500 ms counts as 1485 ms.
    for (leaves_out, lasts) in [(None, 1336), (Some(Mutation::HoldTakesLease), 1620)] {
        let granted = leader(true, leaves_out).takes(SECOND * 60).unwrap().1;
        assert_eq!(granted, Duration::from_millis(lasts), "{leaves_out:?}");
    }
    let mut voter = leader(true, None);
    voter.pass(500);
    assert_eq!(voter.takes(SECOND * 60).unwrap().1, Duration::from_millis(886));
    assert_eq!(voter.takes(Duration::from_millis(50)).unwrap().1, Duration::from_millis(50));
    let mut short = leader_with(|settings| settings.hold_max = SECOND / 2, true, None);
    assert_eq!(short.takes(SECOND).unwrap().1, SECOND / 2);
}

#[test]
fn a_hold_rests_on_firm_promises_only() {
    for (leaves_out, granted) in [(None, false), (Some(Mutation::HoldOnLoosePromise), true)] {
        assert_eq!(leader(false, leaves_out).takes(SECOND).is_some(), granted, "{leaves_out:?}");
    }
    let mut voter = leader(false, None);
    voter.acknowledged_by(3, true);
    assert!(voter.takes(SECOND).is_some(), "two of three are firm");
    assert_eq!(Voter::settled(None).takes(SECOND), None, "it does not lead");
}

/// A voter says whether it frees its promise for crash evidence.
#[test]
fn a_voter_that_frees_promises_for_crash_evidence_says_so() {
    for (crash_evidence, is_firm) in
        [(CrashEvidence::Suspect, true), (CrashEvidence::Off, true), (CrashEvidence::Release, false)]
    {
        let settings = Settings { crash_evidence, ..given(&[1, 2, 3], 1500) };
        let record = record(1, config(4, &[1, 2, 3]));
        let mut voter = Voter::start(peer(1), settings, Some(&record), &[2, 3], None);
        let sent = voter.hear(
            2,
            7,
            Body::Renew { sequence: 1, lease_ms: 1500, config: version(4, 0), learnt: Learnt::default() },
        );
        let firm = |body: &Body| match body {
            Body::Renewed { firm, .. } => Some(*firm),
            _ => None,
        };
        assert_eq!(bodies(&sent).find_map(firm), Some(is_firm), "{crash_evidence:?}");
    }
}

/// Where others free their promises, a leader without its connections counts on firm ones, whatever its own
/// flag is.
#[test]
fn a_leader_without_its_connections_counts_on_firm_promises_only() {
    for (firm, leads) in [(true, true), (false, false)] {
        let mut voter = leader(firm, None);
        for k in [2, 3] {
            voter.feed(Event::LinkDown { id: peer(k).id, incarnation: peer(k).incarnation });
        }
        assert_eq!(voter.leads(), leads, "firm: {firm}");
    }
}

const FIVE: [u8; 5] = [1, 2, 3, 4, 5];

/// p1 of five, which has p2's vote and lacks one more.
fn candidate_of_five(crash_evidence: CrashEvidence) -> Voter {
    let settings = Settings { crash_evidence, ..given(&FIVE, 1500) };
    let record = record(1, config(4, &FIVE));
    let mut voter = Voter::start(peer(1), settings, Some(&record), &[2, 3, 4, 5], None);
    voter.wait_for_grace();
    voter.start_campaign();
    // The pre-vote, and a vote.
    for from in [2, 3, 2] {
        voter.answered(from, GRANTED);
    }
    voter
}

/// p3 alone stays connected.
fn connections_lost(voter: &mut Voter) {
    for k in [2, 4, 5] {
        voter.feed(Event::LinkDown { id: peer(k).id, incarnation: peer(k).incarnation });
    }
}

/// The voter that granted first frees its promise by evidence, so the others may elect.
#[test]
fn a_candidate_that_has_lost_its_connections_does_not_lead_by_votes_that_are_not_firm() {
    for (crash_evidence, leads) in [(CrashEvidence::Release, false), (CrashEvidence::Suspect, true)] {
        let mut voter = candidate_of_five(crash_evidence);
        connections_lost(&mut voter);
        voter.answered(3, GRANTED);
        assert_eq!(voter.leads(), leads, "{crash_evidence:?}");
    }
}

/// One of them has acknowledged the round before its connection was lost, and another one after that.
#[test]
fn late_promises_that_are_not_firm_lengthen_no_lease_without_connections() {
    let mut voter = candidate_of_five(CrashEvidence::Suspect);
    voter.answered(3, GRANTED);
    assert!(voter.leads());
    let acknowledges = |voter: &mut Voter, from: u8, firm: bool| {
        let (sequence, config) = (voter.round, version(5, 0));
        let (membership, flags) = (MembershipVersion::default(), flags(&FIVE, 1500));
        let body = Body::Renewed { sequence, membership, promised: true, firm, config, flags };
        voter.hear(from, 5, body);
    };
    voter.timer(Timer::Heartbeat);
    for from in [2, 3] {
        acknowledges(&mut voter, from, true);
    }
    voter.pass(100);
    voter.timer(Timer::Heartbeat);
    acknowledges(&mut voter, 2, false);
    connections_lost(&mut voter);
    let until = |voter: &Voter| voter.machine.protocol.leading.as_ref().unwrap().lease_until;
    let firm = until(&voter);
    acknowledges(&mut voter, 3, false);
    assert_eq!(until(&voter), firm);
}

#[test]
fn a_resignation_waits_for_holds() {
    for (leaves_out, waits) in [(None, true), (Some(Mutation::ResignsUnderHold), false)] {
        let mut voter = leader(true, leaves_out);
        voter.takes(Duration::from_millis(400)).unwrap();
        let sent = voter.feed(Event::Stop);
        assert_eq!(resignation(&sent).is_none(), waits, "{leaves_out:?}");
        if !waits {
            continue;
        }
        assert_eq!(voter.role(), Role::Resigning);
        assert_eq!(voter.takes(SECOND), None, "no new hold");
        voter.pass(403);
        assert_eq!(voter.role(), Role::Resigning);
        voter.pass(1);
        assert_eq!(voter.role(), Role::Leaving);
    }
}

/// The holder's clock may be the slow one.
#[test]
fn a_hold_ends_on_the_slow_clock() {
    for (leaves_out, resigns) in [(None, false), (Some(Mutation::HoldEndsEarly), true)] {
        let mut voter = leader(true, leaves_out);
        voter.takes(Duration::from_millis(400)).unwrap();
        voter.feed(Event::Stop);
        voter.lag = Duration::from_millis(30);
        voter.pass(420);
        assert_eq!(voter.role() == Role::Leaving, resigns, "{leaves_out:?}");
        voter.pass(20);
        assert_eq!(voter.role(), Role::Leaving);
    }
}

#[test]
fn a_holder_that_has_stopped_is_waited_for_no_longer() {
    let mut voter = leader(true, None);
    let (hold, _) = voter.takes(SECOND).unwrap();
    voter.feed(Event::Stop);
    let sent = voter.feed(Event::Hold(HoldRequest::End { hold }));
    assert_eq!((held(&sent), resignation(&sent)), (HoldOutcome::Ended, Some((Some(peer(3).id), true))));
}

#[test]
fn holds_go_on_within_the_time_of_a_resignation() {
    let mut voter = leader_with(|settings| settings.stop_wait = SECOND, true, None);
    let (hold, _) = voter.takes(SECOND).unwrap();
    voter.feed(Event::Stop);
    let mut extend = |after: u64| {
        voter.pass(after);
        voter.feed(Event::Timer(Timer::Heartbeat));
        voter.acknowledged_by(2, true);
        voter.asked_to_hold(HoldRequest::Extend { hold, lasts: SECOND })
    };
    let granted = |lasts| HoldOutcome::Granted { hold, epoch: Epoch(5), lasts: Duration::from_millis(lasts) };
    assert_eq!(extend(400), granted(600));
    assert_eq!(extend(500), granted(100));
    voter.pass(120);
    assert_eq!(voter.role(), Role::Leaving);
}

#[test]
fn a_hold_is_never_shortened_and_ends_once() {
    let mut voter = leader(true, None);
    let (hold, _) = voter.takes(SECOND).unwrap();
    voter.asked_to_hold(HoldRequest::Extend { hold, lasts: Duration::from_millis(10) });
    voter.feed(Event::Stop);
    let cordon = Event::Operation { number: 1, operation: Operation::Cordon, within: SECOND };
    assert_eq!(refused(&voter.feed(cordon)), Some(OperationRefusal::Stopping));
    voter.pass(1009);
    assert_eq!(voter.role(), Role::Resigning);
    let mut voter = leader(true, None);
    let (hold, _) = voter.takes(Duration::from_millis(100)).unwrap();
    voter.pass(101);
    assert_eq!(voter.asked_to_hold(HoldRequest::Extend { hold, lasts: SECOND }), HoldOutcome::Unknown);
    assert_eq!(voter.asked_to_hold(HoldRequest::End { hold }), HoldOutcome::Ended);
}

#[test]
fn so_many_holds_and_no_more() {
    let mut voter = leader(true, None);
    for _ in 0..HOLDS_MAX {
        voter.takes(SECOND).unwrap();
    }
    assert_eq!(voter.asked_to_hold(HoldRequest::Take { lasts: SECOND }), HoldOutcome::TooMany);
    assert_eq!(voter.machine.status().holds, HOLDS_MAX);
    voter.pass(1011);
    assert_eq!(voter.machine.status().holds, 0);
}

/// A suspend ends a leadership, and a holder may not have noticed it. The leader's own promise stays.
#[test]
fn the_end_of_a_leadership_frees_no_promise_that_a_hold_rests_on() {
    for (held, leaves_out, votes) in
        [(false, None, true), (true, None, false), (true, Some(Mutation::OwnPromiseFreedUnderHold), true)]
    {
        let mut voter = leader(true, leaves_out);
        if held {
            voter.takes(SECOND).unwrap();
        }
        let now = Moment(voter.now);
        voter.machine.handle(Now { suspends: 1, ..Now::at(now) }, Event::Turn);
        assert_eq!(voter.role(), Role::Asking);
        let request = VoteRequest { config: config(5, &[1, 2, 3]), ..request(2, Stage::Vote, 9) };
        let request = Body::VoteRequest { request };
        let message = Message { epoch: Epoch(8), priority: Priority::DEFAULT, body: request };
        let event = Event::Received { from: peer(2).id, message };
        let sent = voter.machine.handle(Now { suspends: 1, ..Now::at(now) }, event);
        assert_eq!(outcome(&sent) == Some(GRANTED), votes, "{held} {leaves_out:?}");
    }
}

/// An operator's transfer: a pre-vote, the wait, and a second pre-vote, since the first may be out of date.
#[test]
fn a_transfer_asks_its_successor_again_after_the_wait() {
    for majority in [true, false] {
        let mut voter = leader(true, None);
        let (hold, _) = voter.takes(SECOND).unwrap();
        let (operation, within) = (Operation::Transfer { to: "p3".to_owned() }, SECOND * 10);
        voter.feed(Event::Operation { number: 1, operation, within });
        let sent = voter.hear(3, 5, Body::TransferReady { majority: true });
        assert_eq!((resignation(&sent), voter.role()), (None, Role::Resigning));
        let sent = voter.feed(Event::Hold(HoldRequest::End { hold }));
        assert!(bodies(&sent).any(|body| *body == Body::ProposeTransfer));
        assert_eq!(resignation(&sent), None);
        let sent = voter.hear(3, 5, Body::TransferReady { majority });
        let successor = majority.then_some(peer(3).id);
        assert_eq!(resignation(&sent), Some((successor, false)), "its applications have stopped");
        assert!(voter.machine.status().candidacy.aside_until.is_some());
    }
    // The successor does not answer.
    let mut voter = leader(true, None);
    let (hold, _) = voter.takes(SECOND).unwrap();
    let operation = Operation::Resign { stand_aside: None };
    voter.feed(Event::Operation { number: 1, operation, within: SECOND * 10 });
    voter.hear(3, 5, Body::TransferReady { majority: true });
    voter.feed(Event::Hold(HoldRequest::End { hold }));
    assert_eq!(resignation(&voter.timer(Timer::Hold)), Some((None, false)));
}

#[test]
fn an_operator_whose_time_is_over_is_told_of_the_holds() {
    let mut voter = leader(true, None);
    let (hold, _) = voter.takes(SECOND).unwrap();
    let cordon = |within| Event::Operation { number: 1, operation: Operation::Cordon, within };
    voter.feed(cordon(SECOND / 5));
    voter.hear(3, 5, Body::TransferReady { majority: true });
    assert_eq!(refused(&voter.timer(Timer::Operation)), Some(OperationRefusal::StillHeld));
    assert_eq!(refused(&voter.feed(cordon(SECOND))), Some(OperationRefusal::Busy));
    voter.feed(Event::Hold(HoldRequest::End { hold }));
    assert!(resignation(&voter.hear(3, 5, Body::TransferReady { majority: true })).is_some());
    assert!(voter.machine.status().candidacy.cordoned, "as was asked");
}

#[test]
fn a_leader_that_loses_its_lease_while_it_waits_has_nothing_to_resign_from() {
    let mut voter = leader(true, None);
    voter.takes(SECOND).unwrap();
    voter.feed(Event::Stop);
    voter.now += Duration::from_millis(1490);
    let sent = voter.feed(Event::Turn);
    assert_eq!((resignation(&sent), voter.role()), (None, Role::Leaving));
    assert!(sent.contains(&Action::Exit));
}

/// p1 frees promises for crash evidence since its restart. What it had promised firmly before that stands.
#[test]
fn crash_evidence_frees_no_firm_promise_of_an_earlier_incarnation() {
    for (firm, leaves_out, votes) in
        [(true, None, false), (false, None, true), (true, Some(Mutation::GraceFreedByEvidence), true)]
    {
        let settings = Settings { crash_evidence: CrashEvidence::Release, ..given(&[1, 2, 3], 1500) };
        let record = record_of(firm);
        let mut voter = Voter::start(peer(1), settings, Some(&record), &[2, 3], leaves_out);
        voter.hear(
            2,
            7,
            Body::Renew { sequence: 1, lease_ms: 1500, config: version(4, 0), learnt: Learnt::default() },
        );
        voter.feed(Event::Crashed { id: peer(2).id, incarnation: peer(2).incarnation });
        assert_eq!(voter.vote_for(3, 8) == Some(GRANTED), votes, "{firm} {leaves_out:?}");
        if votes {
            continue;
        }
        voter.pass(1500);
        voter.timer(Timer::Grace);
        assert_eq!(voter.vote_for(3, 9), Some(GRANTED));
    }
}

/// p1's record says so from the start on that promises firmly, until one bound after the next that does not.
#[test]
fn a_record_says_whether_a_firm_promise_may_be_out() {
    let settings = |crash_evidence| Settings { crash_evidence, ..given(&[1, 2, 3], 1500) };
    let says = |record: &Record| record.vote.as_ref().unwrap().firm;
    for (evidence, firm, written) in [
        (CrashEvidence::Suspect, false, true),
        (CrashEvidence::Suspect, true, true),
        (CrashEvidence::Release, false, false),
        (CrashEvidence::Release, true, true),
    ] {
        let record = record_of(firm);
        let mut p1 = Core::<Majority>::new(settings(evidence), "c".to_owned(), peer(1), Some(&record));
        let actions = p1.handle(Now::at(Moment::default()), Event::Start);
        let Some(Action::Persist(record)) = actions.first() else { panic!("{actions:?}") };
        assert_eq!(says(record), written, "{evidence:?} {firm}");
    }
    let release = settings(CrashEvidence::Release);
    let mut voter = Voter::start(peer(1), release, Some(&record_of(true)), &[2, 3], None);
    voter.pass(1499);
    voter.feed(Event::Turn);
    assert!(says(&voter.machine.record()), "a promise of its earlier incarnation may last as long");
    voter.pass(1);
    voter.feed(Event::Turn);
    assert!(!says(&voter.machine.record()));
}

fn record_of(firm: bool) -> Record {
    let mut record = record(1, config(4, &[1, 2, 3]));
    record.vote.iter_mut().for_each(|vote| vote.firm = firm);
    record
}

/// p1 grows the cluster from three to five. p2's firm promise is of the first configuration.
#[test]
fn the_configuration_does_not_change_past_a_hold() {
    const FIVE: [u8; 5] = [1, 2, 3, 4, 5];
    for (hold, leaves_out, voters) in
        [(false, None, 5), (true, None, 4), (true, Some(Mutation::ChangesUnderHold), 5)]
    {
        let settings = Settings { hold_max: SECOND * 60, ..given(&FIVE, 1500) };
        let record = record(1, config(4, &[1, 2, 3]));
        let mut voter = Voter::start(peer(1), settings, Some(&record), &[2, 3], leaves_out);
        [4, 5].into_iter().for_each(|k| drop(voter.feed(Event::LinkUp(peer(k)))));
        voter.wait_for_grace();
        voter.ask_for_votes();
        voter.answered(2, GRANTED);
        let acknowledged = |voter: &mut Voter, from: u8, firm: bool, counter: u32| {
            let (membership, config) = (MembershipVersion::default(), version(5, counter));
            let (sequence, flags) = (voter.round, flags(&FIVE, 1500));
            voter.hear(from, 5, Body::Renewed { sequence, membership, promised: true, firm, config, flags });
        };
        [4, 5].into_iter().for_each(|k| acknowledged(&mut voter, k, false, 0));
        acknowledged(&mut voter, 2, true, 0);
        assert_eq!(voter.config().voters.len(), 4);
        if hold {
            assert!(voter.takes(SECOND).is_some());
        }
        [4, 5, 3].into_iter().for_each(|k| acknowledged(&mut voter, k, false, 1));
        assert_eq!(voter.config().voters.len(), voters, "{hold} {leaves_out:?}");
        if voters == 4 {
            assert!(voter.takes(SECOND).is_some(), "the first majority's promise stands");
            voter.pass(1011);
            voter.timer(Timer::Heartbeat);
            [4, 5, 3].into_iter().for_each(|k| acknowledged(&mut voter, k, false, 1));
            assert_eq!(voter.config().voters.len(), 5);
        }
        assert_eq!(voter.takes(SECOND), None, "no majority of the five has promised firmly");
    }
}

/// p1 is elected again with a hold of its first term out. The rounds of the second may be shorter than it.
#[test]
fn a_hold_of_an_earlier_term_keeps_the_voters() {
    const FOUR: [u8; 4] = [1, 2, 3, 4];
    for (leaves_out, voters) in [(None, 3), (Some(Mutation::ChangesUnderHold), 4)] {
        let settings = Settings { hold_max: SECOND * 60, ..given(&FOUR, 1500) };
        let record = record(1, config(4, &[1, 2, 3]));
        let mut voter = Voter::start(peer(1), settings, Some(&record), &[2, 3, 4], leaves_out);
        voter.wait_for_grace();
        voter.ask_for_votes();
        voter.answered(2, GRANTED);
        let acknowledged = |voter: &mut Voter, from: u8, firm: bool, epoch: u64| {
            let (membership, config) = (MembershipVersion::default(), version(epoch, 0));
            let (sequence, flags) = (voter.round, flags(&FOUR, 1500));
            let body = Body::Renewed { sequence, membership, promised: true, firm, config, flags };
            voter.hear(from, epoch, body);
        };
        acknowledged(&mut voter, 2, true, 5);
        assert!(voter.takes(SECOND).is_some());
        voter.hear(3, 7, Body::LeaderQuery { list: ListWanted::Whole });
        [2, 2].into_iter().for_each(|k| drop(voter.answered(k, GRANTED)));
        assert!(voter.leads() && voter.machine.epoch == Epoch(8));
        let both = |voter: &mut Voter| {
            acknowledged(voter, 4, false, 8);
            acknowledged(voter, 2, true, 8);
        };
        both(&mut voter);
        assert_eq!(voter.config().voters.len(), voters, "{leaves_out:?}");
        voter.pass(1011);
        if voters == 3 {
            voter.timer(Timer::Heartbeat);
            both(&mut voter);
            assert_eq!(voter.config().voters.len(), 4, "the hold is over");
        }
    }
}

/// A leader that stands for a higher epoch would stop leading in the middle of its wait.
#[test]
fn a_leader_that_waits_for_holds_does_not_stand_for_another_epoch() {
    for stops in [true, false] {
        let mut voter = leader(true, None);
        let (hold, _) = voter.takes(SECOND).unwrap();
        voter.hear(3, 7, Body::LeaderQuery { list: ListWanted::Whole });
        if stops {
            voter.feed(Event::Stop);
        }
        voter.answered(2, GRANTED);
        assert_eq!(voter.leads(), stops);
        if !stops {
            voter.answered(2, GRANTED);
            assert!(voter.leads() && voter.machine.epoch == Epoch(8));
            let extend = HoldRequest::Extend { hold, lasts: SECOND };
            assert_eq!(voter.asked_to_hold(extend), HoldOutcome::Unknown, "it is of another epoch");
        }
    }
}
