//! Leadership transfer: clause 28.

use super::*;
use crate::election::core::Phase;

/// p1 leads epoch 5 and p3, of higher priority, has been there for long: the time of the transfer has come.
fn transferring(leaves_out: Option<Mutation>) -> (Voter, Vec<Action>) {
    transferring_after(5, leaves_out)
}

fn transferring_after(seconds: u64, leaves_out: Option<Mutation>) -> (Voter, Vec<Action>) {
    let preempt = Preempt::After(Duration::from_secs(seconds));
    let settings = Settings { preempt, ..given(&[1, 2, 3], 1500) };
    let record = record(1, config(4, &[1, 2, 3]));
    let mut voter = Voter::start(peer(1), settings, Some(&record), &[2], leaves_out);
    voter.feed(Event::LinkUp(Peer { priority: Priority(200), ..peer(3) }));
    voter.wait_for_grace();
    voter.ask_for_votes();
    voter.answered(2, GRANTED);
    assert!(voter.leads());
    let sent = voter.timer(Timer::Preempt);
    (voter, sent)
}

fn resigns(sent: &[Action]) -> bool {
    bodies(sent).any(|body| matches!(body, Body::Resign { .. }))
}

#[test]
fn a_leader_resigns_only_after_its_successor_has_won_a_pre_vote() {
    for (leaves_out, at_once) in [(None, false), (Some(Mutation::TransferUnprepared), true)] {
        let (voter, sent) = transferring(leaves_out);
        assert_eq!(resigns(&sent), at_once, "{leaves_out:?}");
        assert_eq!(voter.leads(), !at_once, "{leaves_out:?}");
    }
    let (mut voter, sent) = transferring(None);
    assert!(sent.iter().filter_map(send).any(|(to, m)| to == peer(3).id && m.body == Body::ProposeTransfer));
    assert!(!resigns(&voter.hear(2, 5, Body::TransferReady { majority: true })), "p2 was not asked");
    assert!(!resigns(&voter.hear(3, 4, Body::TransferReady { majority: true })), "in another epoch");
    let sent = voter.hear(3, 5, Body::TransferReady { majority: true });
    assert!(resigns(&sent) && !voter.leads());
    assert_eq!(voter.machine.phase, Phase::Waiting(peer(3).id));
}

#[test]
fn always_hands_over_to_a_better_voter_at_once() {
    let settings = Settings { preempt: Preempt::Always, ..given(&[1, 2, 3], 1500) };
    let record = record(1, config(4, &[1, 2, 3]));
    let mut voter = Voter::start(peer(1), settings, Some(&record), &[2], None);
    voter.wait_for_grace();
    voter.ask_for_votes();
    voter.answered(2, GRANTED);
    let sent = voter.feed(Event::LinkUp(Peer { priority: Priority(200), ..peer(3) }));
    assert_eq!(armed(&sent, Timer::Preempt), Some(Duration::ZERO));
}

/// A heartbeat comes before the answer where that takes longer than the time between two.
#[test]
fn a_successor_has_its_time_to_answer_whatever_heartbeats_come_meanwhile() {
    let (mut voter, _) = transferring_after(1, None);
    let sent = voter.timer(Timer::Heartbeat);
    assert_eq!(armed(&sent, Timer::Preempt), Some(Duration::from_millis(600)));
    let sent = voter.hear(3, 5, Body::TransferReady { majority: true });
    assert!(resigns(&sent) && !voter.leads());
}

/// What has become of the first question is nothing to the second.
#[test]
fn a_better_member_that_is_unfit_for_a_while_is_asked_anew() {
    let (mut voter, _) = transferring(None);
    voter.feed(Event::LinkDown { id: peer(3).id, incarnation: peer(3).incarnation });
    voter.timer(Timer::Heartbeat);
    voter.feed(Event::LinkUp(Peer { priority: Priority(200), ..peer(3) }));
    let sent = voter.timer(Timer::Preempt);
    assert!(bodies(&sent).any(|body| *body == Body::ProposeTransfer));
}

#[test]
fn a_successor_without_a_majority_does_not_unseat_the_leader() {
    let (mut voter, _) = transferring(None);
    let sent = voter.hear(3, 5, Body::TransferReady { majority: false });
    assert!(voter.leads() && !resigns(&sent));
    assert_eq!(armed(&sent, Timer::Preempt), Some(Duration::from_secs(10)), "the next attempt comes later");
    assert!(!resigns(&voter.hear(3, 5, Body::TransferReady { majority: true })), "it was refused");
}

/// p1 is still bound to p2, which was never elected. p3 leads, asks p1 whether it could win, and ends.
#[test]
fn a_successor_that_may_not_stand_yet_tries_again() {
    let mut voter = Voter::settled(None);
    assert_eq!(voter.vote_for(2, 6), Some(GRANTED));
    voter.hear(3, 7, Body::Coordinator { elected_at_ms: 0 });
    let sent = voter.hear(3, 7, Body::ProposeTransfer);
    assert!(!requests(&sent).is_empty());
    let sent = voter.hear(3, 7, Body::Resign { successor: Some(peer(1).id), leaving: true });
    assert_eq!(voter.machine.phase, Phase::Deferring);
    assert!(armed(&sent, Timer::Retry).is_some());
}

#[test]
fn a_successor_that_does_not_answer_is_asked_again_later() {
    let (mut voter, _) = transferring(None);
    let sent = voter.timer(Timer::Preempt);
    assert!(voter.leads() && !bodies(&sent).any(|body| *body == Body::ProposeTransfer));
    assert_eq!(armed(&sent, Timer::Preempt), Some(Duration::from_secs(10)));
}

/// p1 follows p2, which wants to transfer leadership to it.
fn follower() -> Voter {
    let mut voter = Voter::settled(None);
    assert_eq!(voter.acknowledges(2, 5, 1500, version(4, 0)), Some(true));
    voter
}

fn ready(sent: &[Action]) -> Option<bool> {
    bodies(sent).find_map(|body| match body {
        Body::TransferReady { majority } => Some(*majority),
        _ => None,
    })
}

#[test]
fn the_successor_asks_for_pre_votes_in_which_the_promise_to_the_leader_does_not_count() {
    let mut voter = follower();
    let sent = voter.hear(2, 5, Body::ProposeTransfer);
    assert_eq!((requests(&sent), ready(&sent)), (vec![(Stage::PreVote, 6)], None));
    assert_eq!(voter.asked.as_ref().unwrap().transfer, Some(Epoch(5)));
    assert_eq!(ready(&voter.answered(3, GRANTED)), Some(true));
    assert_eq!(voter.machine.phase, Phase::Following, "it goes on following");
    // The leader does not wait for voters that are silent, or held.
    for held in [None, Some(denied(Denial::Grace { for_ms: 900 }))] {
        let mut voter = follower();
        voter.hear(2, 5, Body::ProposeTransfer);
        if let Some(outcome) = held {
            assert_eq!(armed(&voter.answered(3, outcome), Timer::Retry), None);
        }
        voter.timer(Timer::Answer);
        assert_eq!(ready(&voter.timer(Timer::Answer)), Some(false), "{held:?}");
        assert_eq!(voter.machine.phase, Phase::Following);
    }
}

#[test]
fn only_the_leader_that_is_followed_can_propose_a_transfer() {
    let mut voter = follower();
    assert_eq!(ready(&voter.hear(3, 5, Body::ProposeTransfer)), Some(false));
    assert_eq!(ready(&voter.hear(2, 4, Body::ProposeTransfer)), Some(false));
    let mut restarted = Voter::new(None);
    restarted.acknowledges(2, 5, 1500, version(3, 0));
    assert_eq!(ready(&restarted.hear(2, 5, Body::ProposeTransfer)), Some(false), "in its restart grace");
}

/// p3 has a promise to p2, the leader of epoch 5.
#[test]
fn a_voter_disregards_only_its_promise_to_the_leader_that_hands_over() {
    for (transfer, vote) in
        [(Some(Epoch(5)), GRANTED), (Some(Epoch(4)), promised(1500)), (None, promised(1500))]
    {
        let mut voter = follower();
        let asked = VoteRequest { transfer, ..request(3, Stage::PreVote, 6) };
        assert_eq!(voter.outcome_for(3, asked), Some(vote), "{transfer:?}");
    }
    let mut voter = follower();
    voter.resigns(2, 5);
    voter.vote_for(2, 6);
    let asked = VoteRequest { transfer: Some(Epoch(6)), ..request(3, Stage::PreVote, 7) };
    assert_eq!(voter.outcome_for(3, asked), Some(promised(1500)), "a candidate hands nothing over");
}

#[test]
fn the_successor_in_a_resignation_requests_votes_at_once() {
    let mut voter = follower();
    let successor = Some(peer(1).id);
    let sent = voter.hear(2, 5, Body::Resign { successor, leaving: false });
    assert_eq!(requests(&sent), [(Stage::Vote, 6)]);
    let mut held = Voter::settled(None);
    held.vote_for(3, 5);
    let sent = held.hear(2, 6, Body::Resign { successor, leaving: false });
    assert_eq!(requests(&sent), [], "it has promised p3");
    assert!(armed(&sent, Timer::Retry).is_some());
}

#[test]
fn only_a_voter_is_a_successor() {
    let mut voter = Voter::leader(None);
    voter.feed(Event::LinkUp(Peer { priority: Priority(200), ..peer(4) }));
    let sent = voter.feed(Event::Stop);
    let named = bodies(&sent).find_map(|body| match body {
        Body::Resign { successor, leaving: true } => Some(*successor),
        _ => None,
    });
    assert_eq!(named, Some(Some(peer(3).id)));
}

#[test]
fn a_leader_that_leaves_frees_its_promise_and_waits_for_a_request() {
    let mut voter = Voter::leader(None);
    voter.feed(Event::Stop);
    let sent = voter.hear(3, 5, Body::VoteRequest { request: request(3, Stage::Vote, 6) });
    assert!(sent.contains(&Action::Exit), "another process sees to the rest");
}

/// p1 follows p2, and p4 has asked it lately: it ranks above the successor, p3.
#[test]
fn ranks_do_not_count_in_a_transfer() {
    let record = record(1, config(4, &[1, 2, 3, 4]));
    let mut voter = Voter::start(peer(1), given(&[1, 2, 3, 4], 1500), Some(&record), &[2, 3, 4], None);
    voter.acknowledges(2, 5, 1500, version(4, 0));
    let asked = |from, transfer| VoteRequest {
        config: config(4, &[1, 2, 3, 4]),
        transfer,
        ..request(from, Stage::PreVote, 6)
    };
    assert_eq!(voter.outcome_for(4, asked(4, None)), Some(promised(1500)));
    assert_eq!(voter.outcome_for(3, asked(3, Some(Epoch(5)))), Some(GRANTED));
}

#[test]
fn a_successor_is_no_contender_by_its_pre_vote() {
    let mut voter = follower();
    let transfer = VoteRequest { transfer: Some(Epoch(5)), ..request(3, Stage::PreVote, 6) };
    voter.outcome_for(3, transfer);
    voter.resigns(2, 5);
    assert_eq!(voter.pre_vote_for(2, 6), Some(GRANTED));
}

#[test]
fn a_leader_that_has_handed_over_votes_for_its_successor_at_once() {
    let (mut voter, _) = transferring(None);
    voter.hear(3, 5, Body::TransferReady { majority: true });
    let asked = VoteRequest { config: config(5, &[1, 2, 3]), ..request(3, Stage::Vote, 6) };
    assert_eq!(voter.outcome_for(3, asked), Some(GRANTED));
}

/// p1 follows p2, which leaves. The request of the successor, p3, overtakes the resignation.
#[test]
fn a_freed_voter_answers_the_request_that_its_promise_stood_in_the_way_of() {
    let leaves = || Body::Resign { successor: Some(peer(3).id), leaving: true };
    let mut voter = follower();
    assert_eq!(voter.vote_for(3, 6), Some(promised(1500)));
    voter.resigns(2, 4);
    assert_eq!(voter.machine.phase, Phase::Following, "a late resignation frees nothing");
    assert_eq!(outcome(&voter.hear(2, 5, leaves())), Some(GRANTED));
    assert_eq!(voter.machine.phase, Phase::Waiting(peer(3).id));
    assert_eq!(outcome(&voter.hear(2, 5, leaves())), None, "it answers once");
    let mut voter = follower();
    assert_eq!(voter.pre_vote_for(3, 6), Some(promised(1500)));
    assert_eq!(outcome(&voter.hear(2, 5, leaves())), Some(GRANTED));
    // The candidate has failed meanwhile.
    let mut voter = follower();
    voter.vote_for(3, 6);
    voter.feed(Event::Crashed { id: peer(3).id, incarnation: peer(3).incarnation });
    assert_eq!(outcome(&voter.hear(2, 5, leaves())), None);
    // The resignation of a process to which it has promised nothing.
    let mut voter = follower();
    voter.vote_for(3, 6);
    assert_eq!(outcome(&voter.hear(3, 5, Body::Resign { successor: None, leaving: false })), None);
    // The candidate has asked again by then.
    let mut voter = follower();
    voter.vote_for(3, 6);
    voter.pass(299);
    assert_eq!(outcome(&voter.clone().hear(2, 5, leaves())), Some(GRANTED));
    voter.pass(1);
    assert_eq!(outcome(&voter.hear(2, 5, leaves())), None);
}

#[test]
fn crash_evidence_that_frees_a_promise_lets_its_voter_answer_too() {
    let settings = Settings { crash_evidence: CrashEvidence::Release, ..given(&[1, 2, 3], 1500) };
    let record = record(1, config(4, &[1, 2, 3]));
    let mut voter = Voter::start(peer(1), settings, Some(&record), &[2, 3], None);
    voter.wait_for_grace();
    voter.acknowledges(2, 5, 1500, version(4, 0));
    assert_eq!(voter.vote_for(3, 6), Some(promised(1500)));
    let sent = voter.feed(Event::Crashed { id: peer(2).id, incarnation: peer(2).incarnation });
    assert_eq!(outcome(&sent), Some(GRANTED));
    assert_eq!(voter.machine.phase, Phase::Waiting(peer(3).id));
    let lost = sent.iter().find_map(|action| match action {
        Action::Notification(Notification::Leaderless { reason, .. }) => Some(*reason),
        _ => None,
    });
    assert_eq!(lost, Some(Reason::Crash));
}
