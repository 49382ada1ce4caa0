//! Votes and claims of who has none to give or may not ask: of no voter, of another process with a voter's name, of a
//! former life, of another question.

use super::*;
use crate::election::machine::Phase;

/// p2's name with another id, as after its disk was lost, or when its pod runs twice.
fn double() -> Peer {
    Peer { name: "p2".to_owned(), ..peer(9) }
}

/// A settled voter that is connected with a member that is no voter, and with a second process of p2's name.
fn among_strangers() -> Voter {
    let mut voter = settled(None);
    for k in [2, 3] {
        // It has not been silent.
        voter.hear(k, 4, Body::Ask);
    }
    voter.feed(Event::LinkUp(peer(4)));
    voter.feed(Event::LinkUp(double()));
    voter
}

#[test]
fn who_is_no_voter_is_granted_nothing() {
    let mut voter = among_strangers();
    assert_eq!(voter.claim(4, 5), Some(Verdict::No(Refusal::NoVoter)));
    assert_eq!(voter.claim(9, 5), Some(Verdict::No(Refusal::NoVoter)), "p2 is another process");
    assert_eq!(voter.ask(2, Question::Claim, 5, 1), None, "a former life of p2 has asked");
    assert_eq!(voter.machine.epoch(), Epoch(4));
    assert_eq!(voter.claim(2, 5), Some(Verdict::Yes));
}

#[test]
fn another_process_of_a_voters_name_votes_once_the_former_is_gone() {
    let mut voter = settled(None);
    let life = peer(2).incarnation;
    voter.feed(Event::LinkDown { id: peer(2).id, incarnation: life });
    voter.feed(Event::LinkUp(double()));
    assert_eq!(voter.claim(9, 5), Some(Verdict::Yes));
}

/// Whether a vote made the voter claim.
fn claims_after(voter: &mut Voter, from: u8, epoch: u64, life: u64, question: Question) -> bool {
    let mut vote = voter.vote(question, epoch, Verdict::Yes, &view(4, voters()));
    if let Body::Vote { incarnation, .. } = &mut vote {
        *incarnation = Incarnation(life);
    }
    let sent = voter.hear(from, 4, vote);
    sent.iter().any(|action| {
        matches!(
            action,
            Action::Send {
                message: Message { body: Body::Contest { question: Question::Claim, .. }, .. },
                ..
            }
        )
    })
}

#[test]
fn only_the_voters_own_answer_to_this_very_question_counts() {
    let mut voter = among_strangers();
    voter.feed(Event::Timer(Timer::Margin));
    let sent = voter.feed(Event::Timer(Timer::Announcement));
    let asked = sent.iter().find_map(|action| match action {
        Action::Send { message: Message { body: Body::Contest { ballot, .. }, .. }, .. } => Some(*ballot),
        _ => None,
    });
    let epoch = asked.unwrap().epoch.0;
    let life = peer(1).incarnation.0;
    assert!(!claims_after(&mut voter, 4, epoch, life, Question::Sounding), "of no voter");
    assert!(!claims_after(&mut voter, 9, epoch, life, Question::Sounding), "of another p2");
    assert!(!claims_after(&mut voter, 2, epoch, life - 1, Question::Sounding), "to a former life");
    assert!(!claims_after(&mut voter, 2, epoch - 1, life, Question::Sounding), "for another epoch");
    assert!(!claims_after(&mut voter, 2, epoch, life, Question::Claim), "to a claim that was not made");
    assert!(claims_after(&mut voter, 2, epoch, life, Question::Sounding));
}

#[test]
fn the_longest_lease_ever_promised_is_waited_out() {
    let mut voter = settled(None);
    voter.hear(2, 4, contest(Question::Claim, 5, 2, 4000));
    let record = voter.machine.record();
    assert_eq!(record.vote.as_ref().unwrap().lease_longest_ms, 4000);
    // A further life, whose own lease is 1.5 s.
    let settings = Settings { safety: Safety::Majority { voters: voters() }, ..Settings::default() };
    let machine = Machine::new(settings, "c".to_owned(), peer(1), Some(&record));
    let mut voter = Voter { machine, now: Duration::from_secs(20) };
    voter.feed(Event::Start);
    voter.feed(Event::LinkUp(peer(3)));
    voter.pass(3999);
    assert_eq!(voter.claim(3, 6), Some(Verdict::Conditional));
    voter.pass(1);
    assert_eq!(voter.claim(3, 7), Some(Verdict::Yes));
}

/// What is refused is an address. Whose life was there it does not say: the next one's may be on its way.
#[test]
fn under_release_a_crash_frees_a_promise_and_a_refused_dial_does_not() {
    let Peer { id, incarnation, address, .. } = peer(2);
    for (evidence, verdict) in [
        (Event::Refused(address), Verdict::No(Refusal::Promised { for_ms: 1500 })),
        (Event::Crashed { id, incarnation: Incarnation(1) }, Verdict::No(Refusal::Promised { for_ms: 1500 })),
        (Event::Crashed { id, incarnation }, Verdict::Yes),
    ] {
        let record = settled(None).machine.record();
        let safety = Safety::Majority { voters: voters() };
        let settings = Settings { safety, crash_evidence: CrashEvidence::Release, ..Settings::default() };
        let mut voter = Voter::given(settings, None, Some(&record));
        voter.pass(1500);
        assert_eq!(voter.claim(2, 5), Some(Verdict::Yes));
        voter.feed(Event::LinkDown { id, incarnation });
        voter.feed(evidence.clone());
        assert_eq!(voter.claim(3, 6), Some(verdict), "{evidence:?}");
    }
}

/// A leader that is not connected with a member may know a former life of it only.
#[test]
fn a_leaders_list_leaves_the_life_of_a_connected_member_alone() {
    let mut voter = settled(None);
    let version = MembershipVersion { epoch: Epoch(5), version: 0 };
    let view = view(4, voters()).stamp;
    voter.hear(3, 5, Body::Renew { sequence: 1, membership: version, lease_ms: 1500, view });
    assert!(voter.machine.phase == Phase::Following);
    let former = Peer { incarnation: Incarnation(1), address: ([198, 18, 0, 9], 4041).into(), ..peer(2) };
    for state in [State::Alive, State::Failed] {
        let entries = vec![Entry { peer: former.clone(), state }];
        voter.hear(3, 5, Body::Membership { version, entries });
        let verdict = voter.ask(2, Question::Claim, 6, peer(2).incarnation.0);
        assert_eq!(verdict, Some(Verdict::No(Refusal::Promised { for_ms: 1500 })), "{state:?}");
    }
}
