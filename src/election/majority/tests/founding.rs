//! The first start: clauses 22 and 23.

use super::*;
use crate::election::Founding;
use crate::election::core::Phase;

/// p1 of three empty voters, which has waited for one bound and asks again.
fn empty(leaves_out: Option<Mutation>, settings: Settings, connected: &[u8]) -> Voter {
    let mut voter = Voter::start(peer(1), settings, None, connected, leaves_out);
    voter.discovers(true);
    voter.timer(Timer::Recover);
    voter
}

impl Voter {
    fn discovers(&mut self, complete: bool) -> Vec<Action> {
        self.feed(Event::Discovered { addresses: BTreeSet::new(), complete })
    }

    /// Another answers its latest question.
    fn told(&mut self, from: u8, state: RecoveredState, flags: Flags) -> Vec<Action> {
        let asked = self.timer(Timer::Recover);
        let round = bodies(&asked).find_map(|body| match body {
            Body::Recover { round, .. } => Some(*round),
            _ => None,
        });
        let (round, incarnation) = (round.unwrap_or(1), Incarnation(1));
        self.hear(from, 0, Body::Recovered { round, incarnation, state, flags })
    }

    /// What its record says: none, founding or founded.
    fn state(&self) -> Option<&'static str> {
        self.machine.record().vote.map(|vote| if vote.founding { "founding" } else { "founded" })
    }
}

const EMPTY: RecoveredState = RecoveredState::Empty;

fn founding() -> RecoveredState {
    RecoveredState::Founding(config(0, &[1, 2, 3]))
}

fn refusals(sent: &[Action]) -> usize {
    sent.iter()
        .filter(|action| matches!(action, Action::Notification(Notification::FoundingRefused(_))))
        .count()
}

#[test]
fn a_voter_begins_founding_once_all_others_of_its_list_have_answered() {
    for (leaves_out, begun) in [(None, None), (Some(Mutation::FoundedByMajority), Some("founding"))] {
        let mut voter = empty(leaves_out, given(&[1, 2, 3], 1500), &[2]);
        voter.told(2, EMPTY, flags(&[1, 2, 3], 1500));
        assert_eq!(voter.state(), begun, "{leaves_out:?}");
        voter.feed(Event::LinkUp(peer(3)));
        voter.told(3, EMPTY, flags(&[1, 2, 3], 1500));
        assert_eq!(voter.state(), Some("founding"));
    }
}

#[test]
fn a_list_or_a_lease_that_differs_blocks_founding() {
    for (leaves_out, of_p3, begun) in [
        (None, flags(&[1, 2, 3], 1500), Some("founding")),
        (None, flags(&[1, 3], 1500), None),
        (None, flags(&[1, 2, 3], 3000), None),
        (Some(Mutation::FoundedWithOtherList), flags(&[1, 3], 1500), Some("founding")),
        (Some(Mutation::FoundedWithOtherLease), flags(&[1, 2, 3], 3000), Some("founding")),
    ] {
        let mut voter = empty(leaves_out, given(&[1, 2, 3], 1500), &[2, 3]);
        voter.told(2, EMPTY, flags(&[1, 2, 3], 1500));
        let told = [(); 2].map(|()| voter.told(3, EMPTY, of_p3));
        assert_eq!(voter.state(), begun, "{leaves_out:?}");
        let named = told.iter().flatten().filter(|action| {
            matches!(action, Action::Notification(Notification::VotersDiffer { peer, first_start })
                if peer.name == "p3" && *first_start)
        });
        assert_eq!(named.count(), usize::from(of_p3 != flags(&[1, 2, 3], 1500)), "the log names it once");
    }
}

#[test]
fn a_founded_neighbour_blocks_founding_also_outside_the_list() {
    // A founded voter of its own list lets it vote at once.
    for (founded, voting) in [(3, "founded"), (4, "founding")] {
        for (leaves_out, begun) in [(None, None), (Some(Mutation::FoundedBesideRecord), Some(voting))] {
            let mut voter = empty(leaves_out, given(&[1, 2, 3], 1500), &[2, 3, 4]);
            for from in [2, 3, 4] {
                let state =
                    if from == founded { RecoveredState::Founded(config(4, &[3, 4, 5])) } else { EMPTY };
                voter.told(from, state, flags(&[1, 2, 3], 1500));
            }
            assert_eq!(voter.state(), begun, "{leaves_out:?}: p{founded}");
        }
    }
}

/// p4 is connected, since DNS names it, and has not answered.
#[test]
fn founding_waits_for_every_connected_process_and_for_discovery() {
    let mut voter = empty(None, given(&[1, 2, 3], 1500), &[2, 3, 4]);
    for (from, begun) in [(2, None), (3, None), (4, Some("founding"))] {
        voter.told(from, EMPTY, flags(&[1, 2, 3], 1500));
        assert_eq!(voter.state(), begun, "p{from}");
    }
    let mut voter = Voter::start(peer(1), given(&[1, 2, 3], 1500), None, &[2, 3], None);
    for complete in [false, true] {
        voter.discovers(complete);
        [2, 3].into_iter().for_each(|from| drop(voter.told(from, EMPTY, flags(&[1, 2, 3], 1500))));
        assert_eq!(voter.state(), complete.then_some("founding"));
    }
}

/// p1 of three empty voters, which has taken the first step of a first start.
fn begun(leaves_out: Option<Mutation>) -> Voter {
    let mut voter = empty(leaves_out, given(&[1, 2, 3], 1500), &[2, 3]);
    [2, 3].into_iter().for_each(|from| drop(voter.told(from, EMPTY, flags(&[1, 2, 3], 1500))));
    voter
}

/// The same, and waits for p3 alone.
fn waits_for_p3() -> Voter {
    let mut voter = begun(None);
    voter.told(2, founding(), flags(&[1, 2, 3], 1500));
    assert_eq!(voter.state(), Some("founding"));
    voter
}

/// Otherwise the best voter, which has its vote first, would lose an answer timeout or two. A request that
/// came earlier than that is not answered: its candidate has asked again, or has given up.
#[test]
fn a_voter_answers_the_request_that_it_denied_before_it_had_its_vote() {
    let asked = |stage| VoteRequest { config: config(0, &[1, 2, 3]), ..request(3, stage, 1) };
    for (stage, after, answer) in [
        (Stage::PreVote, 0, Some(GRANTED)),
        (Stage::PreVote, 299, Some(GRANTED)),
        (Stage::PreVote, 300, None),
        (Stage::Vote, 0, Some(GRANTED)),
    ] {
        let mut voter = waits_for_p3();
        assert_eq!(voter.outcome_for(3, asked(stage)), Some(VoteOutcome::Denied(Denial::NoRecord)));
        voter.pass(after);
        let sent = voter.told(3, founding(), flags(&[1, 2, 3], 1500));
        assert_eq!((voter.state(), outcome(&sent)), (Some("founded"), answer), "{stage:?} {after}");
        assert_eq!(stage == Stage::Vote, voter.machine.phase == Phase::Waiting(peer(3).id), "{stage:?}");
    }
}

/// Its age counts from when it came, for the answer and for the candidacy rule.
#[test]
fn a_request_is_no_younger_where_it_is_answered_later() {
    let asked = || VoteRequest { config: config(0, &[1, 2, 3]), ..request(3, Stage::PreVote, 1) };
    for (votes_after, answer) in [(290, Some(GRANTED)), (310, None)] {
        let mut voter = waits_for_p3();
        assert_eq!(voter.outcome_for(3, asked()), Some(VoteOutcome::Denied(Denial::NoRecord)));
        voter.pass(250);
        assert_eq!(outcome(&voter.timer(Timer::Margin)), None, "it still has no vote");
        voter.pass(votes_after - 250);
        let sent = voter.told(3, founding(), flags(&[1, 2, 3], 1500));
        assert_eq!((voter.state(), outcome(&sent)), (Some("founded"), answer), "{votes_after}");
        voter.pass(20);
        assert!(!requests(&voter.timer(Timer::Retry)).is_empty(), "{votes_after}: p3 has not asked for long");
    }
}

#[test]
fn an_answer_to_a_former_incarnation_is_no_reason_to_found() {
    for (leaves_out, begun) in [(None, None), (Some(Mutation::RecoveryEchoIgnored), Some("founding"))] {
        let mut voter = empty(leaves_out, given(&[1, 2], 1500), &[2]);
        let (state, flags) = (EMPTY, flags(&[1, 2], 1500));
        voter.hear(2, 0, Body::Recovered { round: 2, incarnation: Incarnation(99), state, flags });
        assert_eq!(voter.state(), begun, "{leaves_out:?}");
    }
}

#[test]
fn a_founding_voter_votes_once_all_others_are_founding_or_one_is_founded() {
    let first = VoteRequest { config: config(0, &[1, 2, 3]), ..request(2, Stage::Vote, 1) };
    for (leaves_out, state, vote) in
        [(None, "founding", denied(Denial::NoRecord)), (Some(Mutation::FoundedAtOnce), "founded", GRANTED)]
    {
        let mut voter = begun(leaves_out);
        assert_eq!(voter.state(), Some(state), "{leaves_out:?}");
        assert_eq!(voter.outcome_for(2, first.clone()), Some(vote), "{leaves_out:?}");
    }
    let mut voter = begun(None);
    voter.told(2, founding(), flags(&[1, 2, 3], 1500));
    assert_eq!(voter.state(), Some("founding"), "p3 has not begun");
    voter.told(3, founding(), flags(&[1, 2, 3], 1500));
    assert_eq!(voter.state(), Some("founded"));
    assert_eq!(voter.outcome_for(2, first), Some(GRANTED));
    let mut voter = begun(None);
    voter.told(3, RecoveredState::Founded(config(1, &[1, 2, 3])), flags(&[1, 2, 3], 1500));
    assert_eq!(voter.state(), Some("founded"), "p3 has heard all of us");
}

/// Two that found do not ask each other without end, also where their lists differ.
#[test]
fn a_founding_voter_asks_back_a_process_that_has_not_said_that_it_founds() {
    let asks = |sent: &[Action]| bodies(sent).filter(|body| matches!(body, Body::Recover { .. })).count();
    let question = |round| Body::Recover { round, incarnation: Incarnation(1) };
    let mut voter = empty(None, given(&[1, 2, 3], 1500), &[2, 3]);
    assert_eq!(asks(&voter.hear(2, 0, question(7))), 0, "it does not found itself");
    [2, 3].into_iter().for_each(|from| drop(voter.told(from, EMPTY, flags(&[1, 2, 3], 1500))));
    assert_eq!(voter.state(), Some("founding"));
    assert_eq!(asks(&voter.hear(2, 0, question(7))), 1);
    assert_eq!(asks(&voter.hear(2, 0, question(7))), 0, "once for this round of p2");
    assert_eq!(asks(&voter.hear(2, 0, question(8))), 1, "p2 may have begun since then");
    assert_eq!(asks(&voter.hear(2, 0, question(8))), 0);
    voter.timer(Timer::Recover);
    assert_eq!(asks(&voter.hear(2, 0, question(8))), 1);
    let other = RecoveredState::Founding(config(0, &[1, 2]));
    for state in [founding(), other] {
        voter.told(2, state, flags(&[1, 2, 3], 1500));
        assert_eq!(asks(&voter.hear(2, 0, question(7))), 0);
    }
    assert_eq!(asks(&voter.hear(3, 0, question(7))), 1);
    voter.told(2, founding(), flags(&[1, 2, 3], 1500));
    voter.told(3, founding(), flags(&[1, 2, 3], 1500));
    assert_eq!((voter.state(), asks(&voter.hear(3, 0, question(7)))), (Some("founded"), 0));
}

#[test]
fn a_founding_voter_that_is_restarted_goes_on() {
    let mut record = record(1, config(0, &[1, 2, 3]));
    record.epoch = Epoch(0);
    record.vote.as_mut().unwrap().founding = true;
    let mut voter = Voter::start(peer(1), given(&[1, 2, 3], 1500), Some(&record), &[2, 3], None);
    assert_eq!(voter.state(), Some("founding"));
    voter.told(2, founding(), flags(&[1, 2, 3], 1500));
    voter.told(3, founding(), flags(&[1, 2, 3], 1500));
    assert_eq!(voter.state(), Some("founded"));
}

#[test]
fn both_steps_of_a_first_start_are_durable_before_what_is_sent_next() {
    let mut voter = empty(None, given(&[1, 2], 1500), &[2]);
    for (state, is_founding) in [(EMPTY, true), (RecoveredState::Founding(config(0, &[1, 2])), false)] {
        let sent = voter.told(2, state, flags(&[1, 2], 1500));
        let Some(Action::Persist(record)) = sent.first() else { panic!("{sent:?}") };
        assert_eq!(record.vote.as_ref().map(|vote| vote.founding), Some(is_founding));
    }
}

#[test]
fn a_single_voter_founds_only_where_the_operator_says_so() {
    for (founding, state, refused) in
        [(Founding::Auto, None, 1), (Founding::No, None, 1), (Founding::Yes, Some("founded"), 0)]
    {
        let settings = Settings { founding, ..given(&[1], 1500) };
        let mut voter = Voter::start(peer(1), settings, None, &[], None);
        let mut sent = voter.timer(Timer::Recover);
        assert_eq!((voter.state(), refusals(&sent)), (None, 0), "discovery has not answered: {founding:?}");
        voter.discovers(true);
        sent.extend(voter.timer(Timer::Recover));
        assert_eq!((voter.state(), refusals(&sent)), (None, 0), "it waits for peers: {founding:?}");
        voter.timer(Timer::Margin);
        for _ in 0..3 {
            sent.extend(voter.timer(Timer::Recover));
        }
        assert_eq!((voter.state(), refusals(&sent)), (state, refused), "{founding:?}");
    }
}

#[test]
fn voters_that_may_not_found_never_do() {
    let settings = Settings { founding: Founding::No, ..given(&[1, 2, 3], 1500) };
    let mut voter = empty(None, settings, &[2, 3]);
    let mut sent = Vec::new();
    for from in [2, 3, 2, 3] {
        sent.extend(voter.told(from, EMPTY, flags(&[1, 2, 3], 1500)));
    }
    assert_eq!((voter.state(), refusals(&sent)), (None, 1), "the log says it once");
}

/// A process that is neither listed nor named by discovery says that it has a record. Its word counts as long
/// as it is connected. The word of a process that discovery names counts for longer: its record may come
/// back.
#[test]
fn a_record_of_a_stranger_forbids_founding_while_the_stranger_is_connected() {
    for (named, begun) in [(false, Some("founding")), (true, None)] {
        let mut voter = empty(None, given(&[1, 2, 3], 1500), &[2, 3, 4]);
        let addresses = if named { BTreeSet::from([peer(4).address]) } else { BTreeSet::new() };
        voter.feed(Event::Discovered { addresses, complete: true });
        voter.told(4, RecoveredState::Founded(config(5, &[4])), flags(&[4], 1500));
        for from in [2, 3] {
            voter.told(from, EMPTY, flags(&[1, 2, 3], 1500));
        }
        assert_eq!(voter.state(), None, "it is connected");
        voter.feed(Event::LinkDown { id: peer(4).id, incarnation: peer(4).incarnation });
        voter.timer(Timer::Recover);
        assert_eq!(voter.state(), begun, "named: {named}");
    }
}

/// The log says it too, once each time that nothing has changed for ten seconds.
#[test]
fn a_voter_that_waits_for_long_says_so_in_its_log() {
    let mut voter = empty(None, given(&[1, 2, 3], 1500), &[2]);
    let lines = |voter: &mut Voter| -> Vec<String> {
        let mut lines = Vec::new();
        for _ in 0..120 {
            voter.pass(100);
            for action in voter.timer(Timer::Recover) {
                if let Action::Notification(Notification::NoVoteYet(not_ready)) = action {
                    lines.push(crate::election::describe::not_ready(&not_ready));
                }
            }
        }
        lines
    };
    let said = lines(&mut voter);
    assert!(matches!(&said[..], [line] if line == "recovery, for p2 p3"), "{said:?}");
    assert_eq!(lines(&mut voter), [""; 0]);
    voter.told(2, EMPTY, flags(&[1, 2, 3], 1500));
    let said = lines(&mut voter);
    assert!(matches!(&said[..], [line] if line == "recovery, for p3"), "{said:?}");
    voter.feed(Event::LinkUp(peer(3)));
    voter.told(3, EMPTY, flags(&[1, 2, 3], 1500));
    let said = lines(&mut voter);
    assert!(matches!(&said[..], [line] if line == "founding, for p2 p3"));
    for other in [2, 3] {
        voter.told(other, founding(), flags(&[1, 2, 3], 1500));
    }
    assert_eq!(lines(&mut voter), [""; 0], "it votes");
}

/// The status names what is still missing, so that the log can.
#[test]
fn a_voter_says_which_answers_are_missing_and_which_flags_differ() {
    let mut voter = empty(None, given(&[1, 2, 3], 1500), &[2, 3]);
    voter.told(3, EMPTY, flags(&[1, 2, 3], 3000));
    let expected = crate::election::NotReady::Recovery {
        missing: vec!["p2".to_owned()],
        differ: vec!["p3".to_owned()],
        records: None,
    };
    assert_eq!(voter.machine.status().voting.unwrap().not_ready, Some(expected));
    voter.told(2, RecoveredState::Founded(config(5, &[1, 2, 3, 4, 5])), flags(&[1, 2, 3], 1500));
    let Some(crate::election::NotReady::Recovery { missing, records, .. }) =
        voter.machine.status().voting.unwrap().not_ready
    else {
        panic!("it recovers")
    };
    assert_eq!((missing, records), (vec!["p4".to_owned(), "p5".to_owned()], Some((1, 3))));
}
