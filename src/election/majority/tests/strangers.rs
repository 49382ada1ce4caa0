//! Clause 29: whose words count. p4 is connected with p1, but no list names it.

use super::*;
use crate::election::LEASE_MS_MAX;
use crate::election::core::Phase;

const FOREIGN: u32 = u32::MAX;

/// What a stranger would like to be stored: it alone votes, for good.
fn foreign(epoch: u64) -> VoterConfig {
    VoterConfig { version: version(epoch, FOREIGN), voters: names(&[4]), lease_ms: 1, bound_ms: LEASE_MS_MAX }
}

/// p1 of three voters, connected with p2, p3 and the stranger p4.
fn beside_a_stranger(leaves_out: Option<Mutation>) -> Voter {
    let mut voter = Voter::settled(leaves_out);
    voter.feed(Event::LinkUp(peer(4)));
    voter
}

#[test]
fn a_stranger_gets_no_vote() {
    for (leaves_out, expected) in
        [(None, denied(Denial::Unlisted)), (Some(Mutation::StrangersCount), GRANTED)]
    {
        for stage in [Stage::PreVote, Stage::Vote] {
            let mut voter = beside_a_stranger(leaves_out);
            let asks = VoteRequest { config: foreign(5), ..request(4, stage, 6) };
            let asks = VoteRequest { ballot: Ballot { lease_ms: 1, ..asks.ballot }, ..asks };
            assert_eq!(voter.outcome_for(4, asks), Some(expected), "{leaves_out:?} {stage:?}");
            let stored = stage == Stage::Vote && leaves_out.is_some();
            assert_eq!(voter.config() == foreign(5), stored, "{leaves_out:?} {stage:?}");
        }
    }
}

/// A rolling change of `--voters` may start a voter with a name that the configuration has not yet.
#[test]
fn a_process_that_the_flags_name_is_no_stranger() {
    let record = record(1, config(4, &[1, 2, 3]));
    let mut voter = Voter::start(peer(1), given(&[1, 2, 4], 1500), Some(&record), &[2, 3, 4], None);
    voter.wait_for_grace();
    let grown =
        |from, epoch| VoteRequest { config: config(5, &[1, 2, 3, 4]), ..request(from, Stage::Vote, epoch) };
    assert_eq!(voter.outcome_for(4, grown(4, 6)), Some(GRANTED), "by the flags");
    let mut voter = Voter::start(peer(1), given(&[1, 2, 4], 1500), Some(&record), &[2, 3, 4], None);
    voter.wait_for_grace();
    assert_eq!(voter.outcome_for(3, grown(3, 6)), Some(GRANTED), "by the configuration");
}

#[test]
fn a_stranger_is_not_followed() {
    for leaves_out in [None, Some(Mutation::StrangersCount)] {
        let mut voter = beside_a_stranger(leaves_out);
        assert_eq!(voter.acknowledges(4, 9, 1500, version(4, 0)), leaves_out.map(|_| true), "{leaves_out:?}");
        assert_eq!(voter.machine.phase == Phase::Following, leaves_out.is_some(), "{leaves_out:?}");
        voter.hear(4, 9, Body::Coordinator { elected_at_ms: 0 });
        voter.hear(4, 9, Body::Configuration { config: foreign(9) });
        assert_eq!(voter.config() == foreign(9), leaves_out.is_some(), "{leaves_out:?}");
    }
}

/// p1 was away while p4 became a voter, and does not vote by its own configuration. p4 leads.
#[test]
fn a_leader_that_only_a_later_configuration_names_is_followed() {
    for leaves_out in [None, Some(Mutation::ConfigNotAsked)] {
        let record = record(1, config(4, &[2, 3]));
        let mut voter = Voter::start(peer(1), given(&[1, 2], 1500), Some(&record), &[2, 3, 4], leaves_out);
        voter.wait_for_grace();
        voter.timer(Timer::Margin);
        voter.hear(4, 6, Body::Coordinator { elected_at_ms: 0 });
        assert_eq!(voter.machine.phase, Phase::Deferring, "no list names p4");
        let sent = voter.timer(Timer::Coordinator);
        assert_eq!(requests(&sent).is_empty(), leaves_out.is_some(), "{leaves_out:?}");
        let Some(request) = voter.asked.clone() else { continue };
        assert_eq!((request.ballot.stage, request.contender), (Stage::PreVote, false));
        let later = config(6, &[2, 3, 4]);
        let answer =
            |ballot| Body::Vote { ballot, outcome: denied(Denial::OlderConfig), config: Some(later.clone()) };
        voter.hear(4, 6, answer(request.ballot));
        voter.hear(2, 6, answer(Ballot { epoch: Epoch(9), ..request.ballot }));
        assert_eq!(voter.config(), config(4, &[2, 3]), "of a stranger, and of another question");
        voter.hear(2, 6, answer(request.ballot));
        assert_eq!(voter.config(), later);
        voter.hear(4, 6, Body::Coordinator { elected_at_ms: 0 });
        assert_eq!(voter.machine.phase, Phase::Following);
        // Once it follows, an answer that was late changes nothing.
        let stale = Body::Vote {
            ballot: request.ballot,
            outcome: denied(Denial::OlderConfig),
            config: Some(config(9, &[2, 3])),
        };
        voter.hear(2, 6, stale);
        assert_eq!(voter.config(), later);
    }
}

#[test]
fn a_configuration_counts_from_the_leader_that_is_followed() {
    for (leaves_out, from, epoch, written_in, stored) in [
        (None, 3, 5, 5, true),
        // Of another member, in the leader's epoch and in a later one.
        (None, 2, 5, 5, false),
        (None, 2, 9, 9, false),
        // Of the leader, but of an epoch that it does not lead in.
        (None, 3, 5, 9, false),
        (None, 3, 9, 9, false),
        (Some(Mutation::ConfigOfAny), 2, 9, 9, true),
    ] {
        let mut voter = Voter::settled(leaves_out);
        voter.acknowledges(3, 5, 1500, version(4, 0));
        let told = VoterConfig { version: version(written_in, 7), ..config(written_in, &[1, 3]) };
        voter.hear(from, epoch, Body::Configuration { config: told.clone() });
        assert_eq!(voter.config() == told, stored, "{leaves_out:?} p{from} {epoch} {written_in}");
    }
}

#[test]
fn an_answer_counts_from_a_voter_that_was_asked() {
    for leaves_out in [None, Some(Mutation::StrangersCount)] {
        let mut voter = beside_a_stranger(leaves_out);
        voter.start_campaign();
        let ballot = voter.asked.as_ref().unwrap().ballot;
        let answer = Body::Vote { ballot, outcome: denied(Denial::OlderConfig), config: Some(foreign(9)) };
        voter.hear(4, 4, answer);
        assert_eq!(voter.config() == foreign(9), leaves_out.is_some(), "{leaves_out:?}");
    }
}

/// It would cost an election, and a durable epoch each.
#[test]
fn a_stranger_resigns_from_nothing() {
    for leaves_out in [None, Some(Mutation::StrangersCount)] {
        let mut voter = beside_a_stranger(leaves_out);
        voter.start_campaign();
        voter.hear(4, 9, Body::Resign { successor: Some(peer(2).id), leaving: false });
        assert_eq!(voter.machine.epoch == Epoch(9), leaves_out.is_some(), "{leaves_out:?}");
        assert_eq!(voter.machine.phase == Phase::Electing, leaves_out.is_none(), "{leaves_out:?}");
    }
}

/// The stranger acknowledges rounds under one name after the other.
#[test]
fn a_leader_counts_no_acknowledgement_of_a_stranger() {
    for leaves_out in [None, Some(Mutation::StrangersCount)] {
        let mut voter = Voter::leader(leaves_out);
        for name in 10..13 {
            voter.feed(Event::LinkUp(Peer { name: peer(name).name, ..peer(4) }));
            voter.acknowledged(4, 1, version(5, 0), flags(&[1, 2, 3], 1500));
        }
        let stores = &voter.machine.protocol.leading.as_ref().unwrap().stores;
        assert_eq!(*stores, if leaves_out.is_some() { names(&[1, 10, 11, 12]) } else { names(&[1]) });
    }
}

/// Each stranger takes the place of one before it, which has died.
#[test]
fn a_leader_keeps_nothing_of_strangers_that_others_have_replaced() {
    let settings = Settings { members_max: 6, ..given(&[1, 2, 3], 1500) };
    let mut voter = Voter::leader_with(settings, None);
    for stranger in (10..50).map(peer) {
        let (id, incarnation) = (stranger.id, stranger.incarnation);
        voter.feed(Event::LinkUp(stranger));
        voter.feed(Event::Crashed { id, incarnation });
    }
    assert!(voter.machine.heartbeats.lists.len() <= 7, "{}", voter.machine.heartbeats.lists.len());
}

/// p2 and p3 tell what they store, p4 what it would like to be stored.
#[test]
fn a_recovering_voter_is_told_by_its_list() {
    for leaves_out in [None, Some(Mutation::StrangersCount)] {
        let mut voter = Voter::start(peer(1), given(&[1, 2, 3], 1500), None, &[2, 3, 4], leaves_out);
        voter.pass(4000);
        voter.timer(Timer::Recover);
        let round = 2;
        let answer = |state| Body::Recovered {
            round,
            incarnation: peer(1).incarnation,
            state,
            flags: flags(&[1, 2, 3], 1500),
        };
        let unbound = VoterConfig { bound_ms: 1, ..foreign(9) };
        voter.hear(4, 4, answer(RecoveredState::Founded(unbound.clone())));
        let told = config(4, &[1, 2, 3]);
        for from in [2, 3] {
            voter.hear(from, 4, answer(RecoveredState::Founded(told.clone())));
        }
        let stored = voter.machine.record().vote.map(|vote| vote.config);
        assert_eq!(stored, Some(if leaves_out.is_none() { told } else { unbound }), "{leaves_out:?}");
    }
}
