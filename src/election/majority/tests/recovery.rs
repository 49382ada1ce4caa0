//! A voter without its record: clauses 10 to 12.

use super::*;

/// What a voter was told, and by which process.
struct Told {
    from: u8,
    epoch: u64,
    config: VoterConfig,
}

fn told(from: u8, epoch: u64, config: VoterConfig) -> Told {
    Told { from, epoch, config }
}

/// A voter whose record is lost, after these answers to a question of `after_ms` after its start, to this
/// incarnation.
fn recovering(
    leaves_out: Option<Mutation>,
    voters: u8,
    answers: &[Told],
    incarnation: u64,
    after_ms: u64,
) -> Voter {
    let list: Vec<u8> = (1..=voters).collect();
    let mut voter = Voter::start(peer(1), given(&list, 1500), None, &[2, 3, 4], leaves_out);
    voter.pass(after_ms);
    let asked = voter.timer(Timer::Recover);
    let round = bodies(&asked).find_map(|body| match body {
        Body::Recover { round, .. } => Some(*round),
        _ => None,
    });
    for Told { from, epoch, config } in answers {
        // One that recovers early has no further question.
        let Some(round) = round else { break };
        let (state, flags) = (RecoveredState::Founded(config.clone()), flags(&list, 1500));
        let incarnation = Incarnation(incarnation);
        voter.hear(*from, *epoch, Body::Recovered { round, incarnation, state, flags });
    }
    voter
}

/// What it asks for may have come without an answer.
#[test]
fn a_voter_without_a_record_asks_again_soon_whatever_its_lease() {
    for (lease_ms, heartbeat, apart) in
        [(1_500, 250, 250), (60_000, 250, 250), (1_500, 10, 187), (60_000, 10, 250)]
    {
        let settings =
            Settings { heartbeat: Duration::from_millis(heartbeat), ..given(&[1, 2, 3], lease_ms) };
        let mut voter = Voter::start(peer(1), settings, None, &[2], None);
        let sent = voter.timer(Timer::Recover);
        let next = armed(&sent, Timer::Recover).map(|next| next.as_millis());
        assert_eq!(next, Some(apart), "a lease of {lease_ms} ms, heartbeats of {heartbeat}");
    }
}

fn recovers(
    leaves_out: Option<Mutation>,
    voters: u8,
    answers: &[u8],
    incarnation: u64,
    after_ms: u64,
) -> bool {
    let list: Vec<u8> = (1..=voters).collect();
    let answers: Vec<Told> = answers.iter().map(|from| told(*from, 4, config(4, &list))).collect();
    recovering(leaves_out, voters, &answers, incarnation, after_ms).machine.record().vote.is_some()
}

#[test]
fn a_voter_without_its_record_waits_for_a_majority_and_does_not_count_itself() {
    assert!(recovers(None, 5, &[2, 3, 4], 1, 1500));
    for (leaves_out, expected) in [(None, false), (Some(Mutation::RecoveryCountsItself), true)] {
        assert_eq!(recovers(leaves_out, 5, &[2, 3], 1, 1500), expected, "{leaves_out:?}");
    }
    for (leaves_out, expected) in [(None, false), (Some(Mutation::NoRecovery), true)] {
        assert_eq!(recovers(leaves_out, 5, &[2], 1, 1500), expected, "{leaves_out:?}");
        assert_eq!(recovers(leaves_out, 5, &[], 1, 1500), expected, "{leaves_out:?}");
    }
}

#[test]
fn answers_to_questions_before_one_bound_after_the_start_do_not_count() {
    for (leaves_out, expected) in [(None, false), (Some(Mutation::RecoveryEarly), true)] {
        assert_eq!(recovers(leaves_out, 5, &[2, 3, 4], 1, 1499), expected, "{leaves_out:?}");
    }
    let four_seconds = |after_ms| {
        let config = VoterConfig { bound_ms: 4000, ..config(4, &[1, 2, 3]) };
        let answers = [told(2, 4, config.clone()), told(3, 4, config)];
        recovering(None, 3, &answers, 1, after_ms).machine.record().vote.is_some()
    };
    assert!(!four_seconds(3999), "the bound is the configuration's");
    assert!(four_seconds(4000));
}

#[test]
fn an_answer_counts_as_given_when_its_question_was_asked() {
    let mut voter = recovering(None, 3, &[], 1, 1499);
    voter.pass(1);
    for from in [2, 3] {
        let (state, flags) = (RecoveredState::Founded(config(4, &[1, 2, 3])), flags(&[1, 2, 3], 1500));
        voter.hear(from, 4, Body::Recovered { round: 2, incarnation: Incarnation(1), state, flags });
    }
    assert_eq!(voter.machine.record().vote, None, "round 2 was asked 1 ms too early");
}

#[test]
fn answers_to_a_former_incarnation_do_not_count() {
    for (leaves_out, expected) in [(None, false), (Some(Mutation::RecoveryEchoIgnored), true)] {
        assert_eq!(recovers(leaves_out, 5, &[2, 3, 4], 99, 1500), expected, "{leaves_out:?}");
    }
}

#[test]
fn a_recovered_voter_takes_over_the_highest_epoch_it_was_told() {
    let answers = [told(2, 7, config(4, &[1, 2, 3])), told(3, 9, config(4, &[1, 2, 3]))];
    for (leaves_out, epoch, vote) in
        [(None, 9, denied(Denial::Stale)), (Some(Mutation::RecoveredEpochForgotten), 0, GRANTED)]
    {
        let mut voter = recovering(leaves_out, 3, &answers, 1, 1500);
        assert_eq!(voter.machine.record().epoch, Epoch(epoch), "{leaves_out:?}");
        assert_eq!(voter.vote_for(2, 9), Some(vote), "{leaves_out:?}: it may have voted in epoch 9 before");
    }
}

#[test]
fn the_epoch_of_an_early_answer_counts_too() {
    let mut voter = recovering(None, 3, &[told(3, 9, config(4, &[1, 2, 3]))], 1, 1000);
    voter.pass(500);
    voter.timer(Timer::Recover);
    for (from, epoch, round) in [(2, 4, 3), (4, 4, 3)] {
        let (state, flags) = (RecoveredState::Founded(config(5, &[2, 3, 4])), flags(&[1, 2, 3], 1500));
        voter.hear(from, epoch, Body::Recovered { round, incarnation: Incarnation(1), state, flags });
    }
    assert_eq!(voter.machine.record().epoch, Epoch(9));
}

#[test]
fn a_recovered_voter_takes_the_highest_configuration_it_was_told() {
    let answers = [
        told(2, 4, config(4, &[1, 2, 3])),
        told(3, 6, config(6, &[1, 2, 3, 4])),
        told(4, 6, config(6, &[1, 2, 3, 4])),
    ];
    for (leaves_out, taken) in [(None, Some(6)), (Some(Mutation::RecoveredConfigLowest), Some(4))] {
        let record = recovering(leaves_out, 3, &answers, 1, 1500).machine.record();
        assert_eq!(record.vote.map(|vote| vote.config.version.epoch.0), taken, "{leaves_out:?}");
    }
    let record = recovering(None, 3, &answers[..2], 1, 1500).machine.record();
    assert_eq!(record.vote, None, "a majority of the lower configuration is not enough");
}

/// Members without a record, and members that are no voters, are no majority.
#[test]
fn only_voters_with_a_record_count() {
    let two = |from| told(from, 4, config(4, &[1, 2, 3]));
    let record = recovering(None, 3, &[two(4), two(2)], 1, 1500).machine.record();
    assert_eq!(record.vote, None, "p4 is no voter");
    let mut voter = recovering(None, 3, &[two(2)], 1, 1500);
    for state in [RecoveredState::Empty, RecoveredState::Founding(config(0, &[1, 2, 3]))] {
        let flags = flags(&[1, 2, 3], 1500);
        voter.hear(3, 0, Body::Recovered { round: 2, incarnation: Incarnation(1), state, flags });
        assert_eq!(voter.machine.record().vote, None);
    }
}

/// No further wait follows: a recovered voter may vote at once.
#[test]
fn a_recovered_voter_has_no_restart_grace() {
    let answers = [told(2, 4, config(4, &[1, 2, 3])), told(3, 4, config(4, &[1, 2, 3]))];
    let mut voter = recovering(None, 3, &answers, 1, 1500);
    assert_eq!(voter.vote_for(2, 5), Some(GRANTED));
}

#[test]
fn the_answers_of_a_forgotten_member_do_not_count() {
    let mut voter = recovering(None, 3, &[told(2, 4, config(4, &[1, 2, 3]))], 1, 1500);
    voter.hear(2, 4, Body::Leave { version: None, id: peer(2).id });
    let (state, flags) = (RecoveredState::Founded(config(4, &[1, 2, 3])), flags(&[1, 2, 3], 1500));
    voter.hear(3, 4, Body::Recovered { round: 2, incarnation: Incarnation(1), state, flags });
    assert_eq!(voter.machine.record().vote, None);
}

fn answer(voter: &mut Voter, from: u8, epoch: u64, round: u32) {
    let (state, flags) = (RecoveredState::Founded(config(4, &[1, 2, 3])), flags(&[1, 2, 3], 1500));
    voter.hear(from, epoch, Body::Recovered { round, incarnation: Incarnation(1), state, flags });
}

#[test]
fn an_answer_to_a_question_that_is_forgotten_does_not_count() {
    let mut voter = recovering(None, 3, &[], 1, 1500);
    for _ in 0..20 {
        voter.timer(Timer::Recover);
    }
    [2, 3].into_iter().for_each(|from| answer(&mut voter, from, 4, 2));
    assert_eq!(voter.machine.record().vote, None, "the memory is bounded");
    [2, 3].into_iter().for_each(|from| answer(&mut voter, from, 4, 22));
    assert!(voter.machine.record().vote.is_some());
}

/// Its fast clock has passed the bound, and its slow one has not.
#[test]
fn a_recovery_waits_on_the_slow_clock() {
    let mut voter = recovering(None, 3, &[], 1, 1000);
    for (pass_ms, lag_ms, round, recovered) in [(500, 100, 3, false), (100, 100, 4, true)] {
        voter.lag = Duration::from_millis(lag_ms);
        voter.pass(pass_ms);
        voter.timer(Timer::Recover);
        [2, 3].into_iter().for_each(|from| answer(&mut voter, from, 4, round));
        assert_eq!(voter.machine.record().vote.is_some(), recovered);
    }
}

#[test]
fn a_newcomer_is_asked_at_once() {
    let mut voter = recovering(None, 3, &[], 1, 1500);
    let asks = |sent: &[Action]| bodies(sent).any(|body| matches!(body, Body::Recover { .. }));
    assert!(asks(&voter.feed(Event::LinkUp(peer(5)))));
    [2, 3].into_iter().for_each(|from| answer(&mut voter, from, 4, 2));
    assert!(!asks(&voter.feed(Event::LinkUp(peer(6)))), "it has recovered");
    assert!(!asks(&voter.timer(Timer::Recover)));
}

/// It follows the leader of epoch 5, which a voter of epoch 9 has left.
#[test]
fn a_recovered_voter_does_not_follow_a_leader_of_a_lower_epoch() {
    let mut voter = recovering(None, 3, &[], 1, 1500);
    voter.acknowledges(2, 5, 1500, version(4, 0));
    for (from, epoch, leader) in [(2, 5, true), (3, 9, false)] {
        answer(&mut voter, from, epoch, 2);
        assert_eq!(voter.machine.leader.is_some(), leader);
    }
    assert!(voter.machine.record().vote.is_some());
}

#[test]
fn a_recovered_voter_stands_where_there_is_no_leader() {
    let mut voter = recovering(None, 3, &[], 1, 1500);
    voter.timer(Timer::Margin);
    answer(&mut voter, 2, 4, 2);
    let (state, flags) = (RecoveredState::Founded(config(4, &[1, 2, 3])), flags(&[1, 2, 3], 1500));
    let sent = voter.hear(3, 4, Body::Recovered { round: 2, incarnation: Incarnation(1), state, flags });
    assert!(armed(&sent, Timer::Retry).is_some());
}

/// p1 has kept its record, and p2 and p3 have lost theirs. p4 is no voter.
#[test]
fn a_voter_with_a_record_names_each_voter_without_one_once_an_incarnation() {
    let named = |sent: &[Action]| -> Vec<String> {
        let named = sent.iter().filter_map(|action| match action {
            Action::Notification(Notification::VoterRecovers(peer)) => Some(peer.name.clone()),
            _ => None,
        });
        named.collect()
    };
    let asks = |voter: &mut Voter, from: u8| {
        named(&voter.hear(from, 0, Body::Recover { round: 1, incarnation: Incarnation(1) }))
    };
    let list = given(&[1, 2, 3], 1500);
    let kept = record(1, config(4, &[1, 2, 3]));
    let mut voter = Voter::start(peer(1), list.clone(), Some(&kept), &[2, 3, 4], None);
    for (from, expected) in [(2, vec!["p2"]), (3, vec!["p3"]), (2, vec![]), (3, vec![]), (4, vec![])] {
        assert_eq!(asks(&mut voter, from), expected, "{from}");
    }
    // Its link begins anew, and then another incarnation has one.
    voter.feed(Event::LinkUp(peer(2)));
    assert_eq!(asks(&mut voter, 2), Vec::<String>::new());
    voter.feed(Event::LinkUp(Peer { incarnation: Incarnation(99), ..peer(2) }));
    assert_eq!(asks(&mut voter, 2), ["p2"]);
    assert_eq!(asks(&mut voter, 2), Vec::<String>::new());

    // A voter without a record names no other, nor does one of a first start.
    let first = Record { epoch: Epoch(0), ..record(1, config(0, &[1, 2, 3])) };
    for record in [None, Some(&first)] {
        let mut voter = Voter::start(peer(1), list.clone(), record, &[2, 3], None);
        assert_eq!(asks(&mut voter, 2), Vec::<String>::new());
    }
}
