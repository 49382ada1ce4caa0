//! Schedules of whole clusters that end with two leaders, or with none, once the clause is left out.

use super::cluster::*;
use super::*;

/// Two processes have led at one instant if the clause was left out, and not otherwise.
fn two_lead_only_without(cluster: &Cluster, leaves_out: Option<Mutation>) {
    let (led, together) = (&cluster.led, &cluster.together);
    assert_eq!(!together.is_empty(), leaves_out.is_some(), "{leaves_out:?}: {led:?} {together:?}");
}

/// One epoch had two leaders if the clause was left out, and not otherwise.
fn one_epoch_has_two_leaders_only_without(cluster: &Cluster, leaves_out: Option<Mutation>) {
    let led = &cluster.led;
    let twice = led.iter().any(|(k, epoch)| led.iter().any(|(other, same)| epoch == same && k != other));
    assert_eq!(twice, leaves_out.is_some(), "{leaves_out:?}: {led:?}");
}

fn p1_and_p2(from: u8, to: u8, _: &Message) -> Way {
    within(&[&[1, 2]], from, to)
}

fn p2_and_p3(from: u8, to: u8, _: &Message) -> Way {
    within(&[&[2, 3]], from, to)
}

/// p1 leads epoch 5, elected by p2. p3 has heard of nothing.
fn p1_led_by_p2(leaves_out: Option<Mutation>) -> Cluster {
    let mut cluster = Cluster::of(&[1, 2, 3], leaves_out);
    cluster.wait(|c| c.leader() == Some(1), p1_and_p2);
    cluster.run(300, p1_and_p2);
    cluster
}

/// From now on only p2 and p3 reach each other, as long as p1's lease at least.
fn p1_is_cut_off(cluster: &mut Cluster) {
    cluster.lose_mail();
    cluster.run(3000, p2_and_p3);
}

/// p2 has promised p1, and that promise is cut off from p1 together with p2.
#[test]
fn a_promise_keeps_its_voter_from_electing_another() {
    for leaves_out in [None, Some(Mutation::PromiseIgnored), Some(Mutation::PromiseShort)] {
        let mut cluster = p1_led_by_p2(leaves_out);
        p1_is_cut_off(&mut cluster);
        two_lead_only_without(&cluster, leaves_out);
    }
}

#[test]
fn a_restarted_voter_may_have_forgotten_a_promise() {
    for leaves_out in [None, Some(Mutation::NoGrace), Some(Mutation::OwnVoteInGrace)] {
        let mut cluster = p1_led_by_p2(leaves_out);
        cluster.lose_mail();
        cluster.restart(2, &[1, 3]);
        p1_is_cut_off(&mut cluster);
        two_lead_only_without(&cluster, leaves_out);
    }
}

/// p2's connection to p1 breaks, and p2 takes p1 for dead.
#[test]
fn a_candidates_own_vote_obeys_its_own_promise() {
    for leaves_out in [None, Some(Mutation::OwnVoteExempt)] {
        let mut cluster = p1_led_by_p2(leaves_out);
        let (id, incarnation) = (cluster.machine(1).me.id, cluster.machine(1).me.incarnation);
        cluster.feed(2, Event::LinkDown { id, incarnation });
        cluster.feed(2, Event::Crashed { id, incarnation });
        p1_is_cut_off(&mut cluster);
        two_lead_only_without(&cluster, leaves_out);
    }
}

/// p1's lease of 1.5 s goes on while its latest round asks for 200 ms only.
#[test]
fn a_short_round_shortens_neither_a_promise_nor_the_restart_grace() {
    for (leaves_out, restarts) in [
        (None, false),
        (None, true),
        (Some(Mutation::PromiseShortened), false),
        (Some(Mutation::GraceEndedByRound), true),
    ] {
        let mut cluster = p1_led_by_p2(leaves_out);
        cluster.machine(1).ask_for_lease(Duration::from_millis(200));
        if restarts {
            cluster.restart(2, &[1, 3]);
        }
        cluster.run(260, p1_and_p2);
        p1_is_cut_off(&mut cluster);
        two_lead_only_without(&cluster, leaves_out);
    }
}

/// p3 and p1 have led earlier epochs, and their last words of these were slower than p1's election.
#[test]
fn late_words_of_earlier_leaders_free_nothing() {
    let resign = || Body::Resign { successor: None, leaving: false };
    let round =
        || Body::Renew { sequence: 9, lease_ms: 200, config: version(4, 0), learnt: Learnt::default() };
    for (leaves_out, restarts, from, body) in [
        (None, false, 3, resign()),
        (None, false, 1, resign()),
        (None, true, 3, round()),
        (None, true, 3, resign()),
        (Some(Mutation::ResignFreesAny), false, 3, resign()),
        (Some(Mutation::ResignFreesAny), true, 3, resign()),
        (Some(Mutation::LateResignFrees), false, 1, resign()),
        (Some(Mutation::GraceEndedByStaleRound), true, 3, round()),
    ] {
        let mut cluster = p1_led_by_p2(leaves_out);
        cluster.lose_mail();
        if restarts {
            cluster.restart(2, &[1, 3]);
        }
        cluster.late(from, 2, Message { epoch: Epoch(4), priority: Priority::DEFAULT, body });
        p1_is_cut_off(&mut cluster);
        two_lead_only_without(&cluster, leaves_out);
    }
}

/// p2's vote for p1 takes 850 ms, in which p1 asks three times.
#[test]
fn a_lease_counts_from_the_first_sending() {
    for leaves_out in [None, Some(Mutation::LeaseFromWinning), Some(Mutation::RepetitionRestartsLease)] {
        let mut cluster = Cluster::of(&[1, 2, 3], leaves_out);
        let voted =
            |body: &Body| matches!(body, Body::Vote { ballot: Ballot { stage: Stage::Vote, .. }, .. });
        let slow = |from: u8, to: u8, m: &Message| if voted(&m.body) { Slow } else { p1_and_p2(from, to, m) };
        cluster.wait(|c| c.epoch(2) == 5, slow);
        let unrepeated = |from: u8, to: u8, m: &Message| if from == 1 { Lost } else { slow(from, to, m) };
        cluster.run(850, unrepeated);
        cluster.run(10, |from, to, m| if voted(&m.body) { p1_and_p2(from, to, m) } else { Lost });
        assert_eq!(cluster.leader(), Some(1));
        p1_is_cut_off(&mut cluster);
        two_lead_only_without(&cluster, leaves_out);
    }
}

/// p2's acknowledgement takes more than a second.
#[test]
fn a_renewed_lease_counts_from_the_sending_of_its_round() {
    for leaves_out in [None, Some(Mutation::LeaseFromAcknowledgement)] {
        let mut cluster = p1_led_by_p2(leaves_out);
        let acknowledges = |m: &Message| matches!(m.body, Body::Renewed { .. });
        cluster.run(260, |from, to, m| if acknowledges(m) { Slow } else { p1_and_p2(from, to, m) });
        cluster.run(900, |from, to, m| if acknowledges(m) { Slow } else { p2_and_p3(from, to, m) });
        cluster.run(10, |from, to, m| if acknowledges(m) { Arrives } else { p2_and_p3(from, to, m) });
        p1_is_cut_off(&mut cluster);
        two_lead_only_without(&cluster, leaves_out);
    }
}

#[test]
fn a_leader_without_a_majority_does_not_go_on() {
    for leaves_out in [None, Some(Mutation::RenewedByOne)] {
        let mut cluster = p1_led_by_p2(leaves_out);
        p1_is_cut_off(&mut cluster);
        two_lead_only_without(&cluster, leaves_out);
        assert_eq!(cluster.leader() == Some(1), leaves_out.is_some());
    }
}

/// The machine p1 leads epoch 5, by p2's vote, and is gone. The voter p2 forgets its vote by a crash that was
/// faster than its disk, or by the loss of its disk.
#[test]
fn a_vote_is_forgotten_neither_by_a_crash_nor_by_the_loss_of_a_disk() {
    for (leaves_out, disk_lost) in [
        (None, false),
        (None, true),
        (Some(Mutation::VoteNotDurable), false),
        (Some(Mutation::NoRecovery), true),
        (Some(Mutation::RecoveryCountsItself), true),
    ] {
        let mut cluster = Cluster::of(&[1, 3, 2], leaves_out);
        let votes = |from: u8, to: u8, m: &Message| match m.body {
            Body::VoteRequest { .. } | Body::Vote { .. } => p1_and_p2(from, to, m),
            _ => Lost,
        };
        cluster.wait(|c| c.leader() == Some(1), votes);
        cluster.lose_mail();
        cluster.crash(1, false, &[2, 3]);
        cluster.crash(2, disk_lost, &[3]);
        cluster.start(2, &[3]);
        cluster.run(6000, p2_and_p3);
        one_epoch_has_two_leaders_only_without(&cluster, leaves_out);
        assert_eq!(
            cluster.leader().is_none(),
            leaves_out.is_none() && disk_lost,
            "p2 cannot recover from p3 alone"
        );
    }
}

/// p2 loses its disk, asks p1 and p3, and is cut off from p1 when it has recovered. p3 knows of epoch 4 only.
#[test]
fn a_recovered_voter_does_not_vote_again_in_an_epoch_that_it_was_told() {
    for leaves_out in [None, Some(Mutation::RecoveredEpochForgotten)] {
        let mut cluster = Cluster::of(&[1, 3, 2], leaves_out);
        cluster.wait(|c| c.leader() == Some(1), p1_and_p2);
        cluster.crash(2, true, &[1, 3]);
        cluster.run(1600, |_, _, _| Lost);
        cluster.start(2, &[1, 3]);
        let recovery = |m: &Message| matches!(m.body, Body::Recover { .. } | Body::Recovered { .. });
        let way = |from: u8, to: u8, m: &Message| match (from, to) {
            (1, 3) | (3, 1) => Lost,
            _ if recovery(m) => Arrives,
            _ => Lost,
        };
        cluster.wait(|c| c.vote(2).is_some(), way);
        p1_is_cut_off(&mut cluster);
        one_epoch_has_two_leaders_only_without(&cluster, leaves_out);
    }
}

/// p3 has won pre-votes for epoch 5, and its request for p2's vote is slower than p1's election and
/// resignation.
#[test]
fn an_epoch_has_one_vote_of_each_voter() {
    for leaves_out in [None, Some(Mutation::EpochVotedTwice)] {
        let mut cluster = p1_led_by_p2(leaves_out);
        cluster.lose_mail();
        cluster.late(
            1,
            2,
            Message {
                epoch: Epoch(5),
                priority: Priority::DEFAULT,
                body: Body::Resign { successor: None, leaving: true },
            },
        );
        let me = cluster.machine(3).me.clone();
        let ballot = Ballot {
            stage: Stage::Vote,
            epoch: Epoch(5),
            incarnation: me.incarnation,
            asked_at: Moment::default(),
            lease_ms: 1500,
        };
        let body = Body::VoteRequest {
            request: VoteRequest {
                ballot,
                contender: true,
                transfer: None,
                config: cluster.vote(2).unwrap().config.clone(),
            },
        };
        cluster.late(3, 2, Message { epoch: Epoch(4), priority: Priority::DEFAULT, body });
        let voted = cluster.answers_to(3).contains(&GRANTED);
        assert_eq!(voted, leaves_out.is_some(), "{leaves_out:?}: one epoch with two leaders");
    }
}

/// p1 was given five voters. It reaches p4 and p5, and p2 and p3 reach each other.
#[test]
fn a_change_of_one_voter_keeps_majorities_together() {
    for leaves_out in [None, Some(Mutation::VotersChangedAtOnce)] {
        let (three, five) = ([1, 2, 3], [1, 2, 3, 4, 5]);
        let disk = |k| (k < 4).then(|| record(k, config(4, &three)));
        let mut cluster = Cluster::new(&five, leaves_out, |_| given(&five, 1500), disk);
        cluster.rank(1, 200);
        cluster.start_all(&five);
        let tells = |to: u8, m: &Message| {
            to < 4 && matches!(&m.body, Body::Configuration { config } if config.voters.len() > 3)
        };
        cluster.wait(|c| c.names(4, "p4"), |_, to, m| if tells(to, m) { Lost } else { Arrives });
        cluster.lose_mail();
        cluster.run(6000, |from, to, _| within(&[&[1, 4, 5], &[2, 3]], from, to));
        two_lead_only_without(&cluster, leaves_out);
    }
}

/// p1 leads by a lease of four seconds and lowers it, when p2 is restarted and p1 is cut off.
#[test]
fn a_lowered_lease_does_not_shorten_the_restart_grace_for_longer_leases() {
    for leaves_out in [None, Some(Mutation::LeaseLoweredAtOnce), Some(Mutation::LeaseOutlivesConfig)] {
        let voters = [1, 2, 3];
        let four_seconds = VoterConfig { lease_ms: 4000, bound_ms: 4000, ..config(4, &voters) };
        let disk = |k| Some(record(k, four_seconds.clone()));
        let mut cluster = Cluster::new(&voters, leaves_out, |_| given(&voters, 1500), disk);
        voters.into_iter().for_each(|k| cluster.rank(k, 200 - u16::from(k)));
        cluster.start_all(&voters);
        let lowered = |c: &Cluster| c.vote(2).is_some_and(|vote| vote.config.lease_ms == 1500);
        cluster.wait(lowered, p1_and_p2);
        cluster.run(20, p1_and_p2);
        cluster.lose_mail();
        cluster.restart(2, &[1, 3]);
        cluster.run(5000, p2_and_p3);
        two_lead_only_without(&cluster, leaves_out);
    }
}

const HOUR: u64 = 3_600_000;

/// The longest that three voters with the default lease take to elect a leader: one bound, three answer
/// timeouts and two coordinator timeouts.
const BOUND_MS: u64 = 1500 + 3 * 300 + 2 * 900;

fn pairs(cluster: &Cluster) -> Vec<(u32, u32)> {
    let pair = |k: u8| cluster.vote(k).map(|vote| (vote.config.lease_ms, vote.config.bound_ms));
    [1, 2, 3].into_iter().filter_map(pair).collect()
}

/// One voter is started with `--lease 1h`, leads, is stopped, and is started with 1.5 s again. Then all lose
/// power, and two come back.
#[test]
fn one_voter_with_a_lease_of_one_hour_changes_nothing() {
    let voters = [1, 2, 3];
    let mut cluster = Cluster::of(&voters, None);
    cluster.run(3000, all);
    cluster.give(1, given(&voters, HOUR));
    cluster.restart(1, &[2, 3]);
    cluster.run(5000, all);
    if cluster.leader() != Some(1) {
        [2, 3].into_iter().for_each(|k| cluster.crash(k, false, &[1]));
        [2, 3].into_iter().for_each(|k| cluster.start(k, &[1]));
        cluster.connect(2, 3);
    }
    cluster.wait(|c| c.leader() == Some(1), all);
    cluster.run(5000, all);
    assert_eq!(cluster.leader(), Some(1));
    assert_eq!(pairs(&cluster), [(1500, 1500); 3]);
    cluster.feed(1, Event::Stop);
    cluster.run(1000, all);
    cluster.give(1, given(&voters, 1500));
    cluster.crash(1, false, &[2, 3]);
    cluster.start(1, &[2, 3]);
    cluster.run(5000, all);
    assert_eq!(pairs(&cluster), [(1500, 1500); 3]);
    voters.into_iter().for_each(|k| cluster.crash(k, false, &[]));
    cluster.lose_mail();
    cluster.start_all(&[1, 2]);
    // They ask first, for one stable margin at most.
    let took = cluster.wait(|c| c.leader().is_some(), all);
    assert!(took <= BOUND_MS, "{took} ms");
}

/// A majority is started with one hour, and with 1.5 s again.
#[test]
fn a_lease_of_one_hour_that_a_majority_has_is_lowered_at_once() {
    let voters = [1, 2, 3];
    let mut cluster = Cluster::of(&voters, None);
    cluster.run(3000, all);
    for (lease, expected) in [(HOUR, (3_600_000, 3_600_000)), (1500, (1500, 1500))] {
        // A rolling update: the leader stays alive, or resigns, so that no restart waits for the bound.
        for k in [2, 3, 1] {
            let others: Vec<u8> = voters.into_iter().filter(|other| *other != k).collect();
            cluster.give(k, given(&voters, lease));
            cluster.feed(k, Event::Stop);
            cluster.run(1000, all);
            cluster.crash(k, false, &others);
            cluster.start(k, &others);
            cluster.run(5000, all);
            assert!(cluster.leader().is_some(), "p{k} {lease}");
        }
        assert_eq!(pairs(&cluster), [expected; 3]);
    }
}
