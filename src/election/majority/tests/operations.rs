//! What operators ask for: clause 30, and the answers.

use super::*;
use crate::election::core::Phase;
use crate::election::{Operation, OperationDone, OperationOutcome, OperationRefusal, Unfit};

const WITHIN: Duration = Duration::from_secs(10);
const RESIGN: Operation = Operation::Resign { stand_aside: None };

impl Voter {
    fn asked_for(&mut self, operation: Operation) -> Vec<Action> {
        self.feed(Event::Operation { number: 7, operation, within: WITHIN })
    }

    /// p3, whose priority its messages name, acknowledges a round.
    fn hear_of_priority(&mut self, priority: Priority) {
        let (membership, config) = (MembershipVersion::default(), version(5, 0));
        let flags = flags(&[1, 2, 3], 1500);
        let body =
            Body::Renewed { sequence: self.round, membership, promised: true, firm: true, config, flags };
        let message = Message { epoch: Epoch(5), priority, body };
        self.feed(Event::Received { from: peer(3).id, message });
    }
}

fn answer(actions: &[Action]) -> Option<&OperationOutcome> {
    actions.iter().find_map(|action| match action {
        Action::Answer { number: 7, outcome } => Some(outcome),
        _ => None,
    })
}

fn done(actions: &[Action]) -> &OperationDone {
    answer(actions).unwrap().as_ref().unwrap()
}

fn refusal(actions: &[Action]) -> &OperationRefusal {
    answer(actions).unwrap().as_ref().unwrap_err()
}

/// Which members are asked to take over.
fn proposed(actions: &[Action]) -> Vec<ProcessId> {
    let proposal =
        |(to, message): (ProcessId, &Message)| (message.body == Body::ProposeTransfer).then_some(to);
    actions.iter().filter_map(send).filter_map(proposal).collect()
}

fn resigns_to(actions: &[Action]) -> Option<ProcessId> {
    bodies(actions).find_map(|body| match body {
        Body::Resign { successor, leaving: false } => *successor,
        _ => None,
    })
}

/// p1 has resigned in favour of p3, since an operator has asked for that.
fn resigned(operation: Operation, leaves_out: Option<Mutation>) -> Voter {
    let mut voter = Voter::leader(leaves_out);
    assert_eq!(proposed(&voter.asked_for(operation)), [peer(3).id]);
    let sent = voter.hear(3, 5, Body::TransferReady { majority: true });
    assert_eq!((resigns_to(&sent), answer(&sent)), (Some(peer(3).id), None), "p3 does not lead yet");
    voter
}

#[test]
fn an_operator_is_answered_when_another_process_leads() {
    let mut voter = resigned(RESIGN, None);
    assert_eq!(voter.machine.phase, Phase::Waiting(peer(3).id));
    let sent = voter.hear(3, 6, Body::Coordinator { elected_at_ms: 0 });
    let OperationDone { leader, candidacy, aside } = done(&sent);
    assert_eq!(leader.as_ref().map(|(peer, epoch)| (peer.id, *epoch)), Some((peer(3).id, Epoch(6))));
    assert_eq!((candidacy.cordoned, *aside), (false, Some(Duration::from_millis(1500))));
    let sent = voter.hear(3, 6, Body::Coordinator { elected_at_ms: 0 });
    assert_eq!(answer(&sent), None, "once");
}

#[test]
fn a_process_that_has_resigned_for_a_while_does_not_stand_before_that_is_over() {
    for (leaves_out, stands) in [(None, false), (Some(Mutation::AsideIgnored), true)] {
        let operation = Operation::Resign { stand_aside: Some(Duration::from_secs(60)) };
        let mut voter = resigned(operation, leaves_out);
        voter.hear(3, 6, Body::Coordinator { elected_at_ms: 0 });
        voter.feed(Event::Crashed { id: peer(3).id, incarnation: peer(3).incarnation });
        voter.pass(1500);
        voter.timer(Timer::Coordinator);
        assert_eq!(!requests(&voter.timer(Timer::Retry)).is_empty(), stands, "{leaves_out:?}");
        voter.timer(Timer::Aside);
        assert!(stands || !requests(&voter.timer(Timer::Retry)).is_empty());
    }
}

#[test]
fn a_cordoned_process_votes_and_does_not_stand() {
    for (leaves_out, stands) in [(None, false), (Some(Mutation::CordonIgnored), true)] {
        let mut voter = Voter::settled(leaves_out);
        let sent = voter.asked_for(Operation::Cordon);
        assert!(done(&sent).candidacy.cordoned);
        let sent = voter.start_campaign();
        assert_eq!(!requests(&sent).is_empty(), stands, "{leaves_out:?}");
        if stands {
            continue;
        }
        assert_eq!(voter.pre_vote_for(2, 5), Some(GRANTED), "it refuses none for its rank");
        assert_eq!(voter.vote_for(2, 5), Some(GRANTED));
        assert!(voter.declines_transfer(2, 5));
        assert!(!done(&voter.asked_for(Operation::Uncordon)).candidacy.cordoned);
        assert!(voter.stands_after(2, 5), "it stands again");
    }
}

/// A candidate is cordoned while it waits for votes.
#[test]
fn a_candidate_that_is_cordoned_gives_up() {
    let mut voter = Voter::settled(None);
    voter.ask_for_votes();
    let sent = voter.asked_for(Operation::Cordon);
    assert!(done(&sent).candidacy.cordoned);
    voter.answered(2, GRANTED);
    assert!(!voter.leads(), "it got the votes, and does not lead");
    let sent = voter.timer(Timer::Coordinator);
    assert!(
        requests(&sent).iter().all(|(stage, _)| *stage == Stage::PreVote),
        "it may ask, and never stands"
    );
    assert!(!voter.asked.as_ref().unwrap().contender);
    voter.answered(2, GRANTED);
    voter.answered(3, GRANTED);
    assert!(!voter.leads());
}

#[test]
fn members_count_for_what_their_messages_say() {
    for (leaves_out, asked) in [(None, 2), (Some(Mutation::PriorityIgnored), 3)] {
        let mut voter = Voter::leader(leaves_out);
        voter.hear_of_priority(Priority::NEVER);
        assert_eq!(proposed(&voter.asked_for(RESIGN)), [peer(asked).id], "{leaves_out:?}");
    }
    let mut voter = Voter::leader(None);
    voter.hear_of_priority(Priority::NEVER);
    voter.feed(Event::LinkUp(peer(3)));
    let joins = |sent: &[Action]| {
        let told = bodies(sent).filter_map(|body| match body {
            Body::Join { entry, .. } => Some(entry.peer.priority),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    let sent = voter.timer(Timer::Heartbeat);
    assert_eq!(joins(&sent), [Priority::NEVER], "its Hello is older than its messages, and p2 is told");
    assert_eq!(joins(&voter.timer(Timer::Heartbeat)), [], "once");
    assert_eq!(proposed(&voter.asked_for(RESIGN)), [peer(2).id]);
}

#[test]
fn the_next_member_is_asked_where_one_cannot_win() {
    let refused = Body::TransferReady { majority: false };
    let mut voter = Voter::leader(None);
    voter.asked_for(RESIGN);
    let sent = voter.hear(3, 5, refused.clone());
    assert_eq!((proposed(&sent), answer(&sent)), (vec![peer(2).id], None));
    let sent = voter.timer(Timer::Operation);
    let names = ["p2", "p3"].map(str::to_owned).to_vec();
    assert_eq!(*refusal(&sent), OperationRefusal::NoMajority { asked: names });
    assert!(voter.leads() && voter.machine.rank().eligible(), "nothing has changed");
    let sent = voter.hear(2, 5, Body::TransferReady { majority: true });
    assert!(voter.leads() && resigns_to(&sent).is_none(), "p2 comes too late");

    let mut voter = Voter::leader(None);
    assert_eq!(proposed(&voter.asked_for(Operation::Transfer { to: "p2".to_owned() })), [peer(2).id]);
    let sent = voter.hear(2, 5, refused);
    assert_eq!(proposed(&sent), [], "no other was named");
    assert_eq!(refusal(&sent).name(), "no_majority");
}

#[test]
fn an_operation_that_cannot_be_is_refused_and_changes_nothing() {
    let transfer = |to: &str| Operation::Transfer { to: to.to_owned() };
    let mut voter = Voter::leader(None);
    voter.feed(Event::LinkUp(peer(4)));
    assert_eq!(*refusal(&voter.asked_for(transfer("p1"))), OperationRefusal::LeadsAlready);
    let unfit = |name: &str, unfit| OperationRefusal::UnfitSuccessor { name: name.to_owned(), unfit };
    assert_eq!(*refusal(&voter.asked_for(transfer("p4"))), unfit("p4", Unfit::NoVoter));
    assert_eq!(refusal(&voter.asked_for(transfer("p9"))).name(), "unknown");
    voter.hear_of_priority(Priority::NEVER);
    assert_eq!(*refusal(&voter.asked_for(transfer("p3"))), unfit("p3", Unfit::NoCandidate));
    voter.feed(Event::LinkDown { id: peer(2).id, incarnation: peer(2).incarnation });
    assert_eq!(*refusal(&voter.asked_for(transfer("p2"))), unfit("p2", Unfit::NotConnected));
    assert_eq!(refusal(&voter.asked_for(RESIGN)).name(), "no_successor");
    assert_eq!(refusal(&voter.asked_for(Operation::Cordon)).name(), "no_successor");
    assert!(voter.leads());
    let mut voter = Voter::leader(None);
    voter.asked_for(RESIGN);
    assert_eq!(*refusal(&voter.asked_for(Operation::Cordon)), OperationRefusal::Busy);
    assert_eq!(*refusal(&voter.feed(Event::Stop)), OperationRefusal::Stopping);
    assert_eq!(*refusal(&voter.asked_for(RESIGN)), OperationRefusal::Stopping);
    let mut voter = Voter::settled(None);
    assert_eq!(*refusal(&voter.asked_for(RESIGN)), OperationRefusal::NotLeading { leader: None });
}

#[test]
fn an_operator_waits_no_longer_than_asked() {
    let mut voter = resigned(RESIGN, None);
    voter.timer(Timer::Announcement);
    let sent = voter.timer(Timer::Operation);
    assert_eq!(*refusal(&sent), OperationRefusal::NoLeader);
    assert!(!voter.machine.rank().eligible(), "it has resigned, and stands aside");
    let mut voter = Voter::leader(None);
    voter.asked_for(RESIGN);
    voter.pass(10_000);
    assert!(!voter.leads());
}

/// The lease ends while the successor's answer is awaited.
#[test]
fn a_leader_that_loses_its_lease_before_it_resigns_stands_aside_all_the_same() {
    for operation in [RESIGN, Operation::Cordon] {
        let mut voter = Voter::leader(None);
        voter.asked_for(operation);
        voter.pass(1500);
        assert!(!voter.leads() && !voter.machine.rank().eligible());
        let sent = voter.hear(3, 6, Body::Coordinator { elected_at_ms: 0 });
        assert!(done(&sent).leader.is_some());
    }
    let mut voter = Voter::leader(None);
    voter.asked_for(Operation::Transfer { to: "p3".to_owned() });
    let mut sent = Vec::new();
    for _ in 0..3 {
        voter.now += Duration::from_millis(500);
        sent.extend(voter.feed(Event::Turn));
    }
    assert_eq!(*refusal(&sent), OperationRefusal::NotLeading { leader: None });
    assert!(voter.machine.rank().eligible());
}

#[test]
fn an_operator_who_uncordons_ends_what_is_under_way() {
    let mut voter = Voter::leader(None);
    voter.feed(Event::Operation { number: 6, operation: Operation::Cordon, within: WITHIN });
    let sent = voter.asked_for(Operation::Uncordon);
    let answers = sent.iter().filter_map(|action| match action {
        Action::Answer { number, outcome } => Some((*number, outcome.as_ref().err())),
        _ => None,
    });
    assert_eq!(answers.collect::<Vec<_>>(), [(6, Some(&OperationRefusal::Uncordoned)), (7, None)]);
    let sent = voter.hear(3, 5, Body::TransferReady { majority: true });
    assert!(voter.leads() && resigns_to(&sent).is_none());
}
