//! What a promise is, and what frees it.

use super::*;
use crate::election::core::Phase;

/// A vote that names a leader's wish to transfer frees no promise: only a pre-vote does, which binds nothing.
#[test]
fn a_request_for_votes_frees_no_promise_whatever_it_says_of_a_transfer() {
    let mut voter = Voter::settled(None);
    assert_eq!(voter.acknowledges(2, 5, 1500, version(4, 0)), Some(true));
    let transfer = |stage| VoteRequest { transfer: Some(Epoch(5)), ..request(3, stage, 6) };
    assert_eq!(voter.outcome_for(3, transfer(Stage::PreVote)), Some(GRANTED));
    assert_eq!(voter.outcome_for(3, transfer(Stage::Vote)), Some(promised(1500)));
}

#[test]
fn a_process_without_a_record_neither_votes_nor_acknowledges() {
    let mut voter = Voter::start(peer(1), given(&[1, 2, 3], 1500), None, &[2, 3], None);
    assert_eq!(voter.vote_for(2, 5), Some(denied(Denial::NoRecord)));
    assert_eq!(voter.acknowledges(2, 5, 1500, ConfigVersion::default()), Some(false));
}

#[test]
fn a_repeated_request_is_stale_once_a_round_has_raised_the_epoch() {
    let mut voter = Voter::settled(None);
    voter.vote_for(2, 5);
    voter.acknowledges(3, 6, 1500, version(4, 0));
    voter.pass(1500);
    assert_eq!(voter.vote_for(2, 5), Some(denied(Denial::Stale)));
}

#[test]
fn a_repeated_request_of_the_leader_that_is_followed_changes_nothing() {
    let mut voter = Voter::settled(None);
    voter.vote_for(2, 5);
    voter.acknowledges(2, 5, 1500, version(4, 0));
    assert_eq!(voter.vote_for(2, 5), Some(GRANTED));
    assert_eq!(voter.machine.phase, Phase::Following);
}

#[test]
fn a_vote_ends_following_the_leader_of_an_earlier_epoch() {
    let mut voter = Voter::settled(None);
    voter.acknowledges(2, 5, 200, version(4, 0));
    voter.pass(200);
    assert_eq!(voter.vote_for(3, 6), Some(GRANTED));
    assert_eq!(voter.machine.leader, None);
}

/// One clock of the host runs slower: a voter waits until both have passed.
#[test]
fn a_voter_waits_on_its_slow_clock() {
    let mut voter = Voter::new(None);
    voter.pass(1500);
    voter.lag = Duration::from_millis(100);
    let sent = voter.timer(Timer::Grace);
    assert_eq!(armed(&sent, Timer::Grace), Some(Duration::from_millis(100)), "the timer came early");
    assert_eq!(voter.vote_for(2, 5), Some(denied(Denial::Grace { for_ms: 100 })));
    voter.pass(100);
    assert_eq!(voter.vote_for(2, 5), Some(GRANTED));
    voter.pass(1500);
    voter.lag = Duration::from_millis(150);
    assert_eq!(voter.vote_for(3, 6), Some(promised(50)));
}

/// Its promise to itself lasts as long as each of its rounds asks for.
#[test]
fn a_leader_votes_for_no_other_process() {
    let mut voter = Voter::leader(None);
    for _ in 0..8 {
        voter.pass(250);
        voter.timer(Timer::Heartbeat);
        voter.acknowledged(2, voter.round, version(5, 0), flags(&[1, 2, 3], 1500));
    }
    let asked = VoteRequest { config: voter.config(), ..request(3, Stage::Vote, 6) };
    assert_eq!(voter.outcome_for(3, asked), Some(promised(1500)));
    assert!(voter.leads());
}

#[test]
fn a_leader_of_priority_zero_is_not_followed() {
    let mut voter = Voter::settled(None);
    voter.feed(Event::LinkUp(Peer { priority: Priority(0), ..peer(4) }));
    assert_eq!(voter.acknowledges(4, 5, 1500, version(4, 0)), None);
}

#[test]
fn a_leader_follows_no_other_of_its_own_epoch() {
    let mut voter = Voter::leader(None);
    assert_eq!(voter.acknowledges(3, 5, 1500, version(5, 0)), None);
    assert!(voter.leads());
}

#[test]
fn a_leader_of_a_lower_epoch_is_told_so() {
    let mut voter = Voter::settled(None);
    voter.vote_for(2, 5);
    let renew = Body::Renew { sequence: 1, lease_ms: 1500, config: version(4, 0), learnt: Learnt::default() };
    let sent = voter.hear(3, 4, renew);
    assert!(sent.iter().filter_map(send).any(|(to, message)| to == peer(3).id && message.epoch == Epoch(5)));
}

#[test]
fn a_follower_holds_to_its_leader_for_the_lease_where_that_is_longer() {
    let config = VoterConfig { lease_ms: 4000, bound_ms: 4000, ..config(4, &[1, 2, 3]) };
    let mut voter = Voter::start(peer(1), given(&[1, 2, 3], 1500), Some(&record(1, config)), &[2, 3], None);
    voter.pass(500);
    let renew = Body::Renew { sequence: 1, lease_ms: 4000, config: version(4, 0), learnt: Learnt::default() };
    let sent = voter.hear(2, 5, renew);
    assert_eq!(armed(&sent, Timer::Silence), Some(Duration::from_secs(4)));
    assert_eq!(voter.machine.valid_until(), Some(Moment(voter.now + Duration::from_secs(4))));
}
