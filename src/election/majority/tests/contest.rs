//! The candidacy rule: which candidate asks, and when (clause 25).

use super::candidate::{OUTRANKED, best};
use super::*;

#[test]
fn a_voter_that_is_in_no_position_to_win_refuses_no_lower_rank() {
    let mut following = best(None);
    following.acknowledges(3, 5, 200, version(4, 0));
    following.pass(300);
    assert_eq!(following.pre_vote_for(2, 6), Some(GRANTED), "it follows a leader");
    let mut paused = best(None);
    assert_eq!(paused.pre_vote_for(2, 5), Some(OUTRANKED), "it asks which process leads, as at each start");
    paused.now += Duration::from_secs(2);
    assert_eq!(paused.pre_vote_for(2, 5), Some(GRANTED), "it was paused, and knows of no contest yet");
}

#[test]
fn a_voter_does_not_refuse_the_leader_that_it_follows() {
    let mut voter = Voter::settled(None);
    voter.acknowledges(2, 5, 1500, version(4, 0));
    assert_eq!(voter.pre_vote_for(3, 6), Some(promised(1500)));
    assert_eq!(voter.pre_vote_for(2, 7), Some(GRANTED), "p3 has asked, and ranks higher");
}

#[test]
fn a_voter_of_priority_zero_does_not_stand() {
    let me = Peer { priority: Priority(0), ..peer(1) };
    let record = record(1, config(4, &[1, 2, 3]));
    let mut voter = Voter::start(me, given(&[1, 2, 3], 1500), Some(&record), &[2, 3], None);
    voter.wait_for_grace();
    voter.start_campaign();
    assert_eq!(voter.asked, None);
}

/// p9 has this voter's own name.
#[test]
fn another_process_of_the_candidates_name_has_no_vote() {
    let mut voter = Voter::settled(None);
    voter.feed(Event::LinkUp(Peer { name: "p1".to_owned(), ..peer(9) }));
    voter.start_campaign();
    voter.answered(9, denied(Denial::Stale));
    assert_eq!(requests(&voter.answered(2, GRANTED)), [(Stage::Vote, 5)]);
}

#[test]
fn a_candidate_does_not_begin_again_for_each_lower_rank_that_asks() {
    let mut voter = best(None);
    voter.start_campaign();
    voter.pass(10);
    let sent = voter.hear(2, 4, Body::VoteRequest { request: request(2, Stage::PreVote, 5) });
    assert_eq!(requests(&sent), []);
}

/// A refusal that names no higher epoch than the request's would make it ask without end.
#[test]
fn a_candidate_begins_again_only_above_an_epoch_that_it_has_seen() {
    let mut voter = Voter::settled(None);
    voter.start_campaign();
    assert_eq!(requests(&voter.answered(2, denied(Denial::Stale))), []);
}

#[test]
fn a_leader_that_stands_for_a_higher_epoch_keeps_its_configuration() {
    let mut voter = Voter::leader(None);
    voter.hear(3, 7, Body::LeaderInfo { leader: None, entries: [].into() });
    let (ballot, later) = (voter.asked.as_ref().unwrap().ballot, config(6, &[1, 2, 3]));
    voter.hear(3, 7, Body::Vote { ballot, outcome: denied(Denial::OlderConfig), config: Some(later) });
    assert_eq!(voter.config().version, version(5, 0));
}

/// Two of five are held, for different times: only the one that is free again is asked.
#[test]
fn a_voter_that_is_still_held_is_not_asked_again() {
    let record = record(1, config(4, &[1, 2, 3, 4]));
    let mut voter = Voter::start(peer(1), given(&[1, 2, 3, 4], 1500), Some(&record), &[2, 3, 4], None);
    voter.wait_for_grace();
    voter.start_campaign();
    voter.answered(2, promised(300));
    voter.answered(3, promised(700));
    voter.answered(4, GRANTED);
    voter.pass(300);
    let sent = voter.timer(Timer::Retry);
    let asked: Vec<ProcessId> = sent.iter().filter_map(send).map(|(to, _)| to).collect();
    assert_eq!(asked, [peer(2).id]);
}

#[test]
fn a_candidate_waits_for_an_answer_timeout_after_a_better_one_has_asked() {
    let mut voter = Voter::settled(None);
    voter.pre_vote_for(3, 5);
    voter.pass(100);
    let sent = voter.start_campaign();
    assert_eq!(requests(&sent), []);
    let wait = Settings::default().answer_timeout - Duration::from_millis(100);
    assert_eq!(armed(&sent, Timer::Retry), Some(wait + Duration::from_millis(1)));
}

/// p2 follows p3 and is held by its promise for as long as p3 leads. p1 has lost sight of p3.
#[test]
fn a_candidate_whose_voters_are_held_seeks_all_addresses() {
    let record = record(1, config(4, &[1, 2, 3]));
    let mut voter = Voter::start(peer(1), given(&[1, 2, 3], 1500), Some(&record), &[2], None);
    voter.feed(Event::Discovered { addresses: [2, 3].map(|k| peer(k).address).into(), complete: true });
    voter.wait_for_grace();
    voter.start_campaign();
    voter.answered(2, promised(1500));
    voter.timer(Timer::Answer);
    let sent = voter.timer(Timer::Answer);
    let sought = sent.iter().find_map(|action| match action {
        Action::Seek(addresses) => Some(addresses.contains(&peer(3).address)),
        _ => None,
    });
    assert_eq!(sought, Some(true));
    assert!(armed(&sent, Timer::Retry).is_some(), "it asks p2 again when it is free");
}
