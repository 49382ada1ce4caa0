//! The candidate: clauses 13 to 15, 24 and 25.

use super::*;
use crate::election::core::Phase;
use crate::election::majority::tally::Tally;
use crate::election::{ListWanted, State};

pub(super) const OUTRANKED: VoteOutcome = VoteOutcome::Denied(Denial::Outranked);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn the_answers_of_voters_are_counted_by_their_names() {
    let config = config(4, &[1, 2, 3, 4, 5]);
    let tally = |answers: &[(&str, VoteOutcome, u64)]| {
        let answers: Vec<_> =
            answers.iter().map(|(name, outcome, rest)| ((*name).to_owned(), *outcome, ms(*rest))).collect();
        let tally = Tally::of(&config, answers.iter().map(|(name, outcome, rest)| (name, *outcome, *rest)));
        (tally.granted, tally.outranked, tally.refused, tally.held)
    };
    assert_eq!(tally(&[]), (0, 0, 0, vec![]));
    assert_eq!(tally(&[("p1", GRANTED, 0), ("p2", GRANTED, 0)]), (2, 0, 0, vec![]));
    assert_eq!(tally(&[("p6", GRANTED, 0), ("p7", OUTRANKED, 0)]), (0, 0, 0, vec![]), "no voters");
    assert_eq!(tally(&[("p2", OUTRANKED, 0), ("p3", OUTRANKED, 0)]), (0, 2, 0, vec![]));
    let (stale, older, none) = (denied(Denial::Stale), denied(Denial::OlderConfig), denied(Denial::NoRecord));
    assert_eq!(tally(&[("p2", stale, 0), ("p3", older, 0), ("p4", none, 0)]), (0, 0, 3, vec![]));
    let grace = denied(Denial::Grace { for_ms: 90 });
    assert_eq!(tally(&[("p2", promised(70), 70), ("p3", grace, 20)]), (0, 0, 0, vec![ms(20), ms(70)]));
}

#[test]
fn a_candidate_waits_until_a_majority_can_be_had() {
    let wait = |granted, held: &[u64]| {
        let held = held.iter().map(|rest| ms(*rest)).collect();
        Tally { granted, held, ..Tally::default() }.wait(3)
    };
    for (granted, held, expected) in [
        (1, vec![], None),
        (1, vec![20], None),
        (1, vec![20, 70], Some(70)),
        (1, vec![20, 70, 90], Some(70)),
        (2, vec![20, 70], Some(20)),
        (3, vec![20], None),
        (4, vec![20], None),
    ] {
        assert_eq!(wait(granted, &held), expected.map(ms), "{granted} {held:?}");
    }
}

#[test]
fn a_candidate_asks_for_pre_votes_first() {
    for (leaves_out, stage) in [(None, Stage::PreVote), (Some(Mutation::NoPreVote), Stage::Vote)] {
        let mut voter = Voter::settled(leaves_out);
        assert_eq!(requests(&voter.start_campaign()), [(stage, 5)], "{leaves_out:?}");
        assert_eq!(
            voter.machine.epoch == Epoch(4),
            leaves_out.is_none(),
            "{leaves_out:?}: it unseats a leader"
        );
    }
}

#[test]
fn a_majority_of_the_configuration_that_the_request_names_elects() {
    let five = config(4, &[1, 2, 3, 4, 5]);
    let all = [2, 3, 4, 5, 6];
    let mut voter = Voter::start(peer(1), given(&[1, 2, 3, 4, 5], 1500), Some(&record(1, five)), &all, None);
    voter.wait_for_grace();
    voter.start_campaign();
    for stage in [Stage::PreVote, Stage::Vote] {
        assert_eq!(voter.asked.as_ref().unwrap().ballot.stage, stage);
        [2, 2, 6].into_iter().for_each(|from| drop(voter.answered(from, GRANTED)));
        assert_eq!(voter.asked.as_ref().unwrap().ballot.stage, stage, "two of five");
        voter.answered(5, GRANTED);
    }
    assert!(voter.leads());
}

/// p9 has p2's name: p2's disk was lost, or its pod runs twice.
#[test]
fn of_two_live_processes_of_one_name_the_one_known_longer_votes() {
    let double = Peer { name: "p2".to_owned(), ..peer(9) };
    let mut voter = Voter::settled(None);
    voter.hear(2, 4, Body::LeaderQuery { list: ListWanted::Whole });
    voter.feed(Event::LinkUp(double.clone()));
    voter.start_campaign();
    voter.answered(9, GRANTED);
    assert_eq!(voter.asked.as_ref().unwrap().ballot.stage, Stage::PreVote);
    voter.feed(Event::LinkDown { id: peer(2).id, incarnation: peer(2).incarnation });
    voter.answered(9, GRANTED);
    assert_eq!(voter.asked.as_ref().unwrap().ballot.stage, Stage::Vote);
}

#[test]
fn only_an_answer_to_this_very_request_counts() {
    let mut voter = Voter::settled(None);
    voter.start_campaign();
    let ballot = voter.asked.as_ref().unwrap().ballot;
    for other in [
        Ballot { epoch: Epoch(4), ..ballot },
        Ballot { incarnation: Incarnation(0), ..ballot },
        Ballot { asked_at: Moment::default(), ..ballot },
        Ballot { stage: Stage::Vote, ..ballot },
        Ballot { lease_ms: 1000, ..ballot },
    ] {
        voter.hear(2, 4, Body::Vote { ballot: other, outcome: GRANTED, config: None });
        assert_eq!(voter.asked.as_ref().unwrap().ballot.stage, Stage::PreVote, "{other:?}");
    }
    voter.answered(2, GRANTED);
    assert_eq!(voter.asked.as_ref().unwrap().ballot.stage, Stage::Vote);
}

/// The vote comes 400 ms after the request, which was repeated 300 ms after its first sending.
#[test]
fn the_lease_counts_from_before_the_first_sending_of_the_request() {
    for (leaves_out, counted) in [
        (None, 1485 - 400),
        (Some(Mutation::LeaseFromWinning), 1485),
        (Some(Mutation::RepetitionRestartsLease), 1485 - 100),
    ] {
        let mut voter = Voter::settled(leaves_out);
        voter.ask_for_votes();
        voter.pass(300);
        assert_eq!(requests(&voter.timer(Timer::Answer)), [(Stage::Vote, 5)], "{leaves_out:?}");
        voter.pass(100);
        voter.answered(2, GRANTED);
        let until = voter.machine.valid_until().unwrap();
        assert_eq!(until.since(Moment(voter.now)), ms(counted), "{leaves_out:?}");
    }
}

#[test]
fn a_majority_that_comes_after_the_lease_elects_no_leader() {
    let mut voter = Voter::settled(None);
    voter.ask_for_votes();
    voter.pass(1485);
    let sent = voter.answered(2, GRANTED);
    assert!(!voter.leads());
    assert!(!bodies(&sent).any(|body| matches!(body, Body::Coordinator { .. })), "it does not even say so");
}

#[test]
fn a_request_for_votes_is_repeated_as_long_as_a_majority_is_possible() {
    let mut voter = Voter::settled(None);
    voter.ask_for_votes();
    let (first, sendings) = (voter.asked.clone(), |sent: &[Action]| {
        bodies(sent).filter(|body| matches!(body, Body::VoteRequest { .. })).count()
    });
    assert_eq!(sendings(&voter.timer(Timer::Answer)), 2, "p2 and p3");
    voter.answered(3, promised(100));
    assert_eq!(sendings(&voter.timer(Timer::Answer)), 2, "p3 may vote later");
    assert_eq!(voter.asked, first, "the same in every sending");
    assert_eq!(sendings(&voter.timer(Timer::Answer)), 0, "three times");
    let mut voter = Voter::settled(None);
    voter.ask_for_votes();
    [2, 3].into_iter().for_each(|from| drop(voter.answered(from, denied(Denial::Stale))));
    assert_eq!(sendings(&voter.timer(Timer::Answer)), 0);
    assert_eq!(voter.machine.phase, Phase::Deferring);
}

/// Its own promise to itself is over, and no timer has ended the candidacy.
#[test]
fn a_vote_for_another_ends_the_voters_own_candidacy() {
    for (leaves_out, again) in [(None, false), (Some(Mutation::CandidacySurvivesVote), true)] {
        let mut voter = Voter::settled(leaves_out);
        voter.ask_for_votes();
        voter.pass(1500);
        assert_eq!(voter.vote_for(3, 6), Some(GRANTED));
        assert_eq!(!requests(&voter.timer(Timer::Answer)).is_empty(), again, "{leaves_out:?}");
        assert_eq!(voter.machine.phase == Phase::Waiting(peer(3).id), !again, "{leaves_out:?}");
    }
}

#[test]
fn following_a_leader_ends_a_candidacy() {
    let mut voter = Voter::settled(None);
    voter.ask_for_votes();
    voter.hear(3, 6, Body::Coordinator { elected_at_ms: 0 });
    voter.answered(2, GRANTED);
    assert_eq!(voter.machine.phase, Phase::Following);
}

#[test]
fn a_candidate_takes_the_later_configuration_that_a_voter_has() {
    for (leaves_out, stored, asks) in
        [(None, 6, vec![(Stage::PreVote, 5)]), (Some(Mutation::LaterConfigNotTaken), 4, Vec::new())]
    {
        let mut voter = Voter::settled(leaves_out);
        voter.start_campaign();
        voter.pass(10);
        let sent = voter.answered_with(2, denied(Denial::OlderConfig), Some(config(6, &[1, 2, 3, 4])));
        assert_eq!(requests(&sent), asks, "{leaves_out:?}");
        assert_eq!(voter.config().version, version(stored, 0), "{leaves_out:?}");
    }
}

#[test]
fn a_candidate_takes_the_higher_epoch_that_a_voter_has() {
    let mut voter = Voter::settled(None);
    voter.start_campaign();
    let ballot = voter.asked.as_ref().unwrap().ballot;
    let sent = voter.hear(2, 9, Body::Vote { ballot, outcome: denied(Denial::Stale), config: None });
    assert_eq!(requests(&sent), [(Stage::PreVote, 10)]);
}

/// The best live voter stands at once, each other one a third of the answer timeout later for each better
/// one.
#[test]
fn better_live_voters_stand_first() {
    for (priority, others, wait) in
        [(101, vec![2, 3], None), (100, vec![2], Some(100)), (100, vec![2, 3, 4], Some(200))]
    {
        let record = record(1, config(4, &[1, 2, 3]));
        let me = Peer { priority: Priority(priority), ..peer(1) };
        let mut voter = Voter::start(me, given(&[1, 2, 3], 1500), Some(&record), &others, None);
        voter.wait_for_grace();
        let sent = voter.timer(Timer::Margin);
        assert_eq!(armed(&sent, Timer::Retry), wait.map(ms), "{others:?}");
        assert_eq!(requests(&sent).is_empty(), wait.is_some());
    }
}

/// p1 with a priority above that of the others.
pub(super) fn best(leaves_out: Option<Mutation>) -> Voter {
    let record = record(1, config(4, &[1, 2, 3]));
    let me = Peer { priority: Priority(200), ..peer(1) };
    let mut voter = Voter::start(me, given(&[1, 2, 3], 1500), Some(&record), &[2, 3], leaves_out);
    voter.wait_for_grace();
    voter
}

#[test]
fn a_voter_refuses_a_pre_vote_while_it_knows_of_a_better_contender() {
    for (leaves_out, vote) in [(None, OUTRANKED), (Some(Mutation::NoRanks), GRANTED)] {
        let mut voter = Voter::settled(leaves_out);
        assert_eq!(voter.pre_vote_for(3, 5), Some(GRANTED), "p3 ranks above p1 and p2");
        assert_eq!(voter.pre_vote_for(2, 5), Some(vote), "{leaves_out:?}: p3 has asked");
        assert_eq!(best(leaves_out).pre_vote_for(2, 5), Some(vote), "{leaves_out:?}: p1 itself");
    }
    let mut voter = Voter::settled(None);
    voter.pre_vote_for(3, 5);
    assert_eq!(voter.vote_for(2, 5), Some(GRANTED), "ranks do not count in votes");
    let mut voter = Voter::settled(None);
    voter.pre_vote_for(3, 5);
    voter.pass(900);
    assert_eq!(voter.pre_vote_for(2, 5), Some(GRANTED), "p3 has not asked for one coordinator timeout");
}

#[test]
fn a_candidate_waits_for_a_better_contender_that_has_asked() {
    for (leaves_out, stands) in [(None, false), (Some(Mutation::NoRanks), true)] {
        let mut voter = Voter::settled(leaves_out);
        voter.pre_vote_for(3, 5);
        assert_eq!(!requests(&voter.start_campaign()).is_empty(), stands, "{leaves_out:?}");
    }
    let mut voter = Voter::settled(None);
    voter.pre_vote_for(3, 5);
    voter.start_campaign();
    voter.pass(301);
    assert_eq!(requests(&voter.timer(Timer::Retry)), [(Stage::PreVote, 5)]);
}

#[test]
fn a_voter_that_refuses_for_its_own_rank_stands_at_once() {
    let sent = best(None).hear(2, 4, Body::VoteRequest { request: request(2, Stage::PreVote, 5) });
    assert_eq!(requests(&sent), [(Stage::PreVote, 5)]);
}

/// p3 says that it is no contender any more, or is no voter of its own configuration.
#[test]
fn a_candidate_that_cannot_win_is_no_contender() {
    for (contender, voters) in [(false, vec![1, 2, 3]), (true, vec![1, 2])] {
        let mut voter = Voter::settled(None);
        voter.pre_vote_for(3, 5);
        let no = VoteRequest { contender, config: config(4, &voters), ..request(3, Stage::PreVote, 5) };
        voter.outcome_for(3, no);
        assert_eq!(voter.pre_vote_for(2, 5), Some(GRANTED), "{contender} {voters:?}");
    }
}

/// p1 ranks highest, and p2 and p3 have no answer for it, or know of a better candidate.
#[test]
fn a_candidate_that_too_few_voters_answer_refuses_no_lower_rank() {
    for (leaves_out, answer, then) in [
        (None, None, GRANTED),
        (None, Some(denied(Denial::NoRecord)), GRANTED),
        (None, Some(OUTRANKED), OUTRANKED),
        (Some(Mutation::ContenderForGood), None, OUTRANKED),
    ] {
        let mut voter = best(leaves_out);
        voter.start_campaign();
        if let Some(answer) = answer {
            voter.answered(2, answer);
        }
        [Timer::Answer, Timer::Answer].into_iter().for_each(|timer| drop(voter.timer(timer)));
        assert_eq!(voter.machine.phase, Phase::Deferring);
        assert_eq!(voter.pre_vote_for(2, 5), Some(then), "{leaves_out:?} {answer:?}");
    }
}

/// p1 ranks highest and was no contender. It is a contender again after a pre-vote with a better result, or
/// when it follows a leader.
#[test]
fn a_later_pre_vote_or_a_leader_restores_a_contender() {
    let no_contender = || {
        let mut voter = best(None);
        voter.start_campaign();
        [Timer::Answer, Timer::Answer].into_iter().for_each(|timer| drop(voter.timer(timer)));
        voter.timer(Timer::Retry);
        assert!(!voter.asked.as_ref().unwrap().contender, "it says so in each pre-vote");
        voter
    };
    let mut voter = no_contender();
    voter.answered(2, OUTRANKED);
    assert_eq!(voter.pre_vote_for(2, 5), Some(OUTRANKED));
    let mut voter = no_contender();
    voter.acknowledges(3, 5, 1500, version(4, 0));
    voter.pass(1500);
    voter.timer(Timer::Silence);
    assert_eq!(voter.pre_vote_for(2, 6), Some(OUTRANKED));
}

#[test]
fn a_voter_that_may_not_stand_refuses_no_lower_rank() {
    let restarted = || {
        let me = Peer { priority: Priority(200), ..peer(1) };
        let record = record(1, config(4, &[1, 2, 3]));
        Voter::start(me, given(&[1, 2, 3], 1500), Some(&record), &[2, 3], None)
    };
    assert!(matches!(restarted().pre_vote_for(2, 5), Some(VoteOutcome::Denied(Denial::Grace { .. }))));
    let mut no_voter = restarted();
    no_voter.tells_config(2, config(5, &[2, 3, 4]));
    no_voter.feed(Event::LinkDown { id: peer(2).id, incarnation: peer(2).incarnation });
    no_voter.feed(Event::Crashed { id: peer(2).id, incarnation: peer(2).incarnation });
    no_voter.feed(Event::LinkUp(peer(2)));
    no_voter.wait_for_grace();
    let asked = VoteRequest { config: config(5, &[2, 3, 4]), ..request(2, Stage::PreVote, 6) };
    assert_eq!(no_voter.outcome_for(2, asked), Some(GRANTED));
}

/// A refusal for a promise names what is left of it: the candidate asks that voter again then, and p2's
/// answer goes on counting.
#[test]
fn a_voter_that_is_held_by_a_promise_is_asked_again_when_it_is_over() {
    let five = config(4, &[1, 2, 3, 4, 5]);
    let record = record(1, five);
    let mut voter = Voter::start(peer(1), given(&[1, 2, 3, 4, 5], 1500), Some(&record), &[2, 3, 4], None);
    voter.wait_for_grace();
    voter.start_campaign();
    voter.answered(2, GRANTED);
    let sent = voter.answered(3, promised(700));
    assert_eq!(armed(&sent, Timer::Retry), Some(ms(700)));
    [Timer::Answer, Timer::Answer].into_iter().for_each(|timer| drop(voter.timer(timer)));
    voter.pass(700);
    let sent = voter.timer(Timer::Retry);
    let asked: Vec<ProcessId> = sent
        .iter()
        .filter_map(send)
        .filter(|(_, message)| matches!(message.body, Body::VoteRequest { .. }))
        .map(|(to, _)| to)
        .collect();
    assert_eq!(asked, [peer(3).id, peer(4).id], "p2 has answered, and p4 has not");
    assert_eq!(requests(&voter.answered(3, GRANTED)), [(Stage::Vote, 5)]);
}

#[test]
fn a_failed_campaign_is_tried_again_after_an_answer_timeout_and_a_little_more() {
    let mut voter = Voter::settled(None);
    voter.start_campaign();
    voter.timer(Timer::Answer);
    let sent = voter.timer(Timer::Answer);
    let wait = armed(&sent, Timer::Retry).unwrap();
    assert!((ms(300)..=ms(330)).contains(&wait), "{wait:?}");
    assert_eq!(requests(&voter.timer(Timer::Retry)), [(Stage::PreVote, 5)]);
}

/// Of two live processes with one name, this process cannot tell which one has the vote.
#[test]
fn two_processes_of_one_name_that_came_at_once_have_no_vote() {
    for (later, elected) in [(0, false), (1, true)] {
        let record = record(1, config(4, &[1, 2, 3]));
        let mut voter = Voter::start(peer(1), given(&[1, 2, 3], 1500), Some(&record), &[2], None);
        voter.pass(later);
        voter.feed(Event::LinkUp(Peer { name: "p2".to_owned(), ..peer(4) }));
        voter.pass(500);
        voter.hear(2, 4, Body::LeaderQuery { list: ListWanted::Whole });
        voter.hear(4, 4, Body::LeaderQuery { list: ListWanted::Whole });
        voter.pass(1000);
        voter.timer(Timer::Grace);
        let asked = voter.ask_for_votes();
        assert_eq!(requests(&asked), if elected { vec![(Stage::Vote, 5)] } else { vec![] }, "{later}");
    }
}

/// The time that rivals add differs from attempt to attempt and from process to process.
#[test]
fn rivals_do_not_stay_in_step() {
    let waits = |incarnation| {
        let me = Peer { incarnation: Incarnation(incarnation), ..peer(1) };
        let record = record(1, config(4, &[1, 2, 3]));
        let mut voter = Voter::start(me, given(&[1, 2, 3], 1500), Some(&record), &[2, 3], None);
        voter.wait_for_grace();
        voter.start_campaign();
        let mut waits = Vec::new();
        for _ in 0..4 {
            voter.pass(310);
            voter.timer(Timer::Answer);
            waits.push(armed(&voter.timer(Timer::Answer), Timer::Retry).unwrap());
            voter.timer(Timer::Retry);
        }
        waits
    };
    let (one, other) = (waits(0x1234_5678_9abc_def0), waits(0xfeed_beef_0bad_cafe));
    assert_ne!(one, other);
    for waits in [one, waits(u64::MAX)] {
        assert!(waits.iter().any(|wait| *wait != waits[0]), "{waits:?}");
    }
}

#[test]
fn the_promise_to_a_failed_leader_comes_to_its_end_before_a_process_stands() {
    let mut voter = Voter::settled(None);
    voter.acknowledges(3, 5, 1500, version(4, 0));
    voter.pass(1000);
    let Peer { id, incarnation, .. } = peer(3);
    voter.feed(Event::LinkDown { id, incarnation });
    let sent = voter.feed(Event::Crashed { id, incarnation });
    assert_eq!(armed(&sent, Timer::Retry), Some(ms(500 + 100)), "and p2 is better");
}

#[test]
fn a_voter_that_answers_no_candidate_has_failed_once_it_is_silent_for_the_failure_timeout() {
    let mut voter = Voter::settled(None);
    // No voter, and so not asked.
    voter.feed(Event::LinkUp(peer(4)));
    voter.pass(1501);
    voter.hear(2, 4, Body::LeaderQuery { list: ListWanted::Whole });
    let states = |voter: &Voter| [2, 3, 4].map(|k| voter.machine.members.get(peer(k).id).unwrap().state);
    voter.start_campaign();
    voter.timer(Timer::Answer);
    assert_eq!(states(&voter), [State::Alive; 3], "it asks twice");
    voter.timer(Timer::Answer);
    assert_eq!(states(&voter), [State::Alive, State::Failed, State::Alive]);
    voter.hear(3, 4, Body::LeaderQuery { list: ListWanted::Whole });
    assert_eq!(states(&voter), [State::Alive; 3]);
}
