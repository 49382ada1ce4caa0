//! Schedules that a reviewer has thought of, each of which ended with two leaders, or with none for ever, before the clause
//! that is left out here was a rule.

use super::by_hand::*;
use super::*;

/// Two processes have led at one instant if a clause was left out, and not otherwise.
fn two_lead_only_without(cluster: &Cluster, leaves_out: Option<Mutation>) {
    let together = &cluster.together;
    assert_eq!(!together.is_empty(), leaves_out.is_some(), "{leaves_out:?}: {together:?}");
}

/// p1 leads epoch 5 and writes a view with p6, which p3 acknowledges. That is slower than p3's loss of its disk and its
/// recovery: the round is not counted any more, and the view not committed by it. It would be by p5's acknowledgement, who
/// hears of both late; p1 could then write the view with p7, and be elected by four of seven, while p3 is by three of five.
#[test]
fn an_acknowledgement_that_its_sender_has_forgotten_commits_nothing() {
    for leaves_out in [None, Some(Mutation::CommittedByLateRound)] {
        let (five, seven) = ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6, 7]);
        let disk = |k| (k < 6).then(|| record(k, &five));
        let mut cluster = Cluster::new(&seven, leaves_out, |_| given(&seven, 1500), disk);
        cluster.rank(1, 200);
        cluster.start_all(&seven);
        // The view with p6 reaches p3, p6 and p7.
        let first = |_: u8, to: u8, m: &Message| match to {
            5 if tells_of(m, "p6") => Slow,
            2 | 4 if tells_of(m, "p6") => Lost,
            _ => Arrives,
        };
        cluster.wait(|c| c.names(1, "p6"), first);
        let before = cluster.latest_round();
        let p3_slow = move |from: u8, to: u8, m: &Message| if from == 3 { Slow } else { first(from, to, m) };
        cluster.wait(|c| c.latest_round() > before, p3_slow);
        let (round, sent) = (cluster.latest_round().unwrap(), cluster.now());
        let of_round = move |m: &Message| match m.body {
            Body::Renew { sequence, .. } | Body::Renewed { sequence, .. } => sequence == round,
            _ => false,
        };
        let second = move |from: u8, to: u8, m: &Message| match (from, to) {
            (3, 1) => Slow,
            (_, 5) if of_round(m) => Slow,
            _ => first(from, to, m),
        };
        cluster.run(20, second);
        // p1 does not notice: the last bytes of that connection are on their way.
        cluster.crash(3, true, &[2, 4, 5]);
        cluster.run(20, second);
        cluster.start(3, &[2, 4, 5]);
        let far = |k: u8| [1, 6, 7].contains(&k);
        let third = move |from: u8, to: u8, m: &Message| match (from, to) {
            (3, 1) if matches!(m.body, Body::Renewed { .. }) => Slow,
            (3, other) | (other, 3) if far(other) => Lost,
            _ => second(from, to, m),
        };
        cluster.run(300, third);
        let fourth = move |from: u8, to: u8, m: &Message| {
            let split = far(from) && [2, 4].contains(&to) || far(to) && [2, 4].contains(&from);
            if split { Lost } else { third(from, to, m) }
        };
        cluster.wait(|c| c.vote(3).is_some(), fourth);
        assert!(
            cluster.now() - sent > Duration::from_millis(1485),
            "p3 recovers within a lease of that round"
        );
        // Now p5 hears of the view and of that round, and p1 of both acknowledgements.
        let others = |k: u8| [2, 3, 4].contains(&k);
        cluster.run(20, move |from, to, m| match (from, to) {
            (3, 1) if of_round(m) => Arrives,
            _ if others(from) != others(to) => Lost,
            _ => Arrives,
        });
        let id = peer(3).id;
        cluster.feed(1, Event::LinkDown { id, incarnation: Incarnation(1003) });
        cluster.run(6000, move |from, to, _| if others(from) == others(to) { Arrives } else { Lost });
        two_lead_only_without(&cluster, leaves_out);
    }
}

/// p4 leads by grants of p2 and p3, whose own views do not name it. They are restarted, and p1, whose disk was lost, asks them:
/// with their grant they have stored the view that names p4, so p4 has to agree as well.
#[test]
fn who_has_granted_names_whom_it_granted_after_a_restart() {
    for leaves_out in [None, Some(Mutation::ViewOfGrantForgotten)] {
        let (three, four) = ([1, 2, 3], [1, 2, 3, 4]);
        let disk = |k| (k != 4).then(|| record(k, &three));
        let mut cluster = Cluster::new(&four, leaves_out, |_| given(&four, 4000), disk);
        // p1 ranks highest, then p4, so that each contests at once.
        [(1, 200), (4, 150), (2, 100), (3, 90)]
            .into_iter()
            .for_each(|(k, priority)| cluster.rank(k, priority));
        cluster.start_all(&four);
        let to_p4_only =
            |_: u8, to: u8, m: &Message| if tells_of(m, "p4") && to != 4 { Lost } else { Arrives };
        cluster.wait(|c| c.names(4, "p4"), to_p4_only);
        cluster.lose_mail();
        cluster.crash(1, true, &[2, 3, 4]);
        cluster.run(500, |from, _, _| if from == 4 { Lost } else { Arrives });
        cluster.start(1, &[2, 3]);
        let before = cluster.led.len();
        cluster.wait(
            |c| c.led.len() > before,
            |from, to, m| match (from, to) {
                (4, _) if !contests(m) => Lost,
                (1, 4) | (4, 1) => Lost,
                _ => Arrives,
            },
        );
        assert_eq!(cluster.led[before].0, 4, "p4 is elected");
        let cut = |from: u8, to: u8, _: &Message| if from == 4 || to == 4 { Lost } else { Arrives };
        cluster.run(50, cut);
        cluster.crash(2, false, &[1, 3, 4]);
        cluster.crash(3, false, &[1, 4]);
        cluster.run(100, cut);
        cluster.start(2, &[1]);
        cluster.start(3, &[1, 2]);
        cluster.run(4000, cut);
        two_lead_only_without(&cluster, leaves_out);
    }
}

/// p1's lease is longer than the others'. Its sounding takes so long that p2, who has agreed to it, has lost its disk since, and
/// recovered without that lease: it asks again. Were it to claim, p3 could grant and lose its disk as well, recover from voters
/// that know nothing of p1's lease, and elect another in the epoch that p1 then leads.
#[test]
fn a_sounding_that_took_a_lease_is_repeated() {
    for leaves_out in [None, Some(Mutation::OldSoundingCounts)] {
        let five = [1, 2, 3, 4, 5];
        let settings = |k| given(&five, if k == 1 { 4000 } else { 1500 });
        let mut cluster = Cluster::new(&five, leaves_out, settings, |k| Some(record(k, &five)));
        [(1, 200), (4, 150)].into_iter().for_each(|(k, priority)| cluster.rank(k, priority));
        cluster.start_all(&five);
        cluster.run(5000, |_, _, m| if contests(m) { Lost } else { Arrives });
        let sounding = |from: u8, to: u8, m: &Message| match (from, to) {
            (1, 2) => Arrives,
            (1, 3) if contests(m) => Slow,
            _ if contests(m) => Lost,
            _ => Arrives,
        };
        cluster.wait(|c| c.vote(2).is_some_and(|vote| vote.lease_longest_ms == 4000), sounding);
        // A pause that is shorter than p1's failure timeout.
        cluster.pause(1, true);
        let (id, incarnation) = cluster.life(2);
        cluster.crash(2, true, &[3, 4, 5]);
        cluster.run(20, sounding);
        cluster.start(2, &[3, 4, 5]);
        cluster.wait(|c| c.vote(2).is_some(), sounding);
        cluster
            .run(30, move |from, to, m| if (from, to) == (1, 3) { Arrives } else { sounding(from, to, m) });
        cluster.pause(1, false);
        cluster.feed(1, Event::LinkDown { id, incarnation });
        cluster.connect(1, 2);
        let claiming = |from: u8, to: u8, m: &Message| match (from, to) {
            (1, 3) => Arrives,
            (3, 1) if matches!(m.body, Body::Vote { question: Question::Claim, .. }) => Slow,
            (1, 2) if contests(m) => Slow,
            _ if contests(m) => Lost,
            _ => Arrives,
        };
        cluster
            .run(10, move |from, to, m| if (from, to) == (3, 1) { Arrives } else { claiming(from, to, m) });
        cluster.run(10, claiming);
        let claimed = cluster.machine(3).epoch() == Epoch(5);
        assert_eq!(claimed, leaves_out.is_some(), "{leaves_out:?}");
        if !claimed {
            continue;
        }
        cluster.pause(1, true);
        cluster.crash(3, true, &[2, 4, 5]);
        cluster.run(20, claiming);
        cluster.start(3, &[2, 4, 5]);
        cluster.wait(|c| c.vote(3).is_some(), claiming);
        let apart = |from: u8, to: u8, m: &Message| match (from, to) {
            (1, 2) if contests(m) => Slow,
            (1, 3..) => Lost,
            (3.., 1) if !matches!(m.body, Body::Vote { .. }) => Lost,
            (3.., 2) | (2, 3..) => Lost,
            _ => Arrives,
        };
        cluster.wait(|c| c.led.iter().any(|(k, _)| *k > 1), apart);
        let last = move |from: u8, to: u8, m: &Message| {
            if (from, to) == (1, 2) { Arrives } else { apart(from, to, m) }
        };
        cluster.run(20, last);
        cluster.pause(1, false);
        cluster.run(50, last);
        assert!(!cluster.together.is_empty(), "the instrument is too weak: {:?}", cluster.led);
    }
}

/// p3 is dead for good, and p4 takes its place. The leader crashes when it has written the view with p4 and nobody else has
/// it: it can only be elected by p4, which goes by the leader's view then.
#[test]
fn an_addition_that_only_its_writer_has_stored_goes_on() {
    for leaves_out in [None, Some(Mutation::OwnViewJudges)] {
        let (mut cluster, writer) = p4_takes_the_place_of_p3(leaves_out);
        cluster.lose_mail();
        let others: Vec<u8> = [1, 2, 4].into_iter().filter(|k| *k != writer).collect();
        cluster.crash(writer, false, &others);
        cluster.run(200, all);
        cluster.start(writer, &others);
        cluster.run(60_000, all);
        assert_eq!(cluster.leads(), leaves_out.is_none(), "{leaves_out:?}");
    }
}

/// The same without a crash: p4 is cut off in that moment, for two seconds.
#[test]
fn an_addition_that_a_cut_has_swallowed_goes_on() {
    for leaves_out in [None, Some(Mutation::OwnViewJudges)] {
        let (mut cluster, _) = p4_takes_the_place_of_p3(leaves_out);
        cluster.lose_mail();
        cluster.run(2000, |from, to, _| if from == 4 || to == 4 { Lost } else { Arrives });
        cluster.run(60_000, all);
        assert_eq!(cluster.leads(), leaves_out.is_none(), "{leaves_out:?}");
    }
}

/// Somebody leads and has just written the view with p4, which nobody has heard of yet.
fn p4_takes_the_place_of_p3(leaves_out: Option<Mutation>) -> (Cluster, u8) {
    let of = [1, 2, 4];
    let disk = |k| (k != 4).then(|| record(k, &[1, 2, 3]));
    let mut cluster = Cluster::new(&of, leaves_out, |_| given(&of, 1500), disk);
    cluster.start_all(&of);
    let writer = move |c: &Cluster| of.into_iter().find(|k| c.names(*k, "p4"));
    cluster.wait(|c| writer(c).is_some(), |_, _, m| if tells_of(m, "p4") { Slow } else { Arrives });
    let writer = writer(&cluster).unwrap();
    (cluster, writer)
}

/// p3 is dead. p4 was to be added and is dead by now, too; p5 is there.
#[test]
fn a_dead_newcomer_keeps_no_live_one_out() {
    let target = [1, 2, 3, 4, 5];
    let disk = |k| (k < 4).then(|| record(k, &[1, 2, 3]));
    let mut cluster = Cluster::new(&[1, 2, 4, 5], None, |_| given(&target, 1500), disk);
    cluster.start_all(&[1, 2, 4]);
    let slow = |from: u8, _: u8, m: &Message| {
        if from != 4 && matches!(m.body, Body::Renewed { .. }) { Slow } else { Arrives }
    };
    cluster.wait(|c| c.vote(4).is_some_and(|vote| vote.view.stamp.epoch == Epoch(5)), slow);
    cluster.run(300, slow);
    cluster.crash(4, false, &[1, 2]);
    cluster.run(10, all);
    cluster.start(5, &[1, 2]);
    cluster.run(60_000, all);
    assert!(cluster.names(1, "p5"), "{:?}", cluster.vote(1));
}

/// p1 leads and writes the view with p5, which p2 alone stores, and dies for good. p5 stores the one before.
fn p2_alone_has_the_latest_view(leaves_out: Option<Mutation>, p2_priority: u16) -> Cluster {
    let of = [1, 2, 3, 5];
    let disk = |k| (k != 5).then(|| record(k, &[1, 2, 3]));
    let mut cluster = Cluster::new(&of, leaves_out, |_| given(&of, 1500), disk);
    cluster.rank(1, 200);
    cluster.rank(2, p2_priority);
    cluster.start_all(&of);
    cluster.wait(|c| c.names(2, "p5"), |_, to, m| if tells_of(m, "p5") && to != 2 { Lost } else { Arrives });
    cluster.lose_mail();
    cluster.crash(1, false, &[2, 3, 5]);
    assert!(!cluster.names(3, "p5") && !cluster.names(5, "p5"));
    cluster
}

/// Only p3 can be elected: p2 never leads, and p5 is no voter by its own view. It has to ask p5, whom only p2's view names.
#[test]
fn a_contestant_takes_the_later_view_of_a_witness() {
    for leaves_out in [None, Some(Mutation::LaterViewNotTaken)] {
        let mut cluster = p2_alone_has_the_latest_view(leaves_out, 0);
        cluster.run(60_000, all);
        assert_eq!(cluster.leads(), leaves_out.is_none(), "{leaves_out:?}");
    }
}

/// The same, where only p3 is connected with both others.
#[test]
fn the_hub_takes_the_later_view() {
    for leaves_out in [None, Some(Mutation::LaterViewNotTaken)] {
        let mut cluster = p2_alone_has_the_latest_view(leaves_out, 100);
        cluster.run(60_000, |from, to, _| if from + to == 7 { Lost } else { Arrives });
        assert_eq!(cluster.leads(), leaves_out.is_none(), "{leaves_out:?}");
    }
}

/// p2's lease is shorter than a round trip, so its vote never counts: the others are a majority without it.
#[test]
fn a_voter_with_a_very_short_lease_keeps_nobody_from_being_elected() {
    let five = [1, 2, 3, 4, 5];
    let settings = |k| match k {
        2 => Settings { heartbeat: Duration::from_millis(50), ..given(&five, 200) },
        _ => given(&five, 1500),
    };
    let mut cluster = Cluster::new(&five, None, settings, |k| Some(record(k, &five)));
    [(1, 200), (2, 50)].into_iter().for_each(|(k, priority)| cluster.rank(k, priority));
    cluster.start_all(&five);
    cluster.run_slowly(20_000, 110);
    assert!(cluster.leads(), "{:?}", cluster.led);
}

/// Ten rounds of heartbeats are on their way at any time.
#[test]
fn heartbeats_may_be_shorter_than_a_round_trip() {
    let three = [1, 2, 3];
    let settings = |_| Settings { heartbeat: Duration::from_millis(20), ..given(&three, 1500) };
    let mut cluster = Cluster::new(&three, None, settings, |k| Some(record(k, &three)));
    cluster.rank(1, 200);
    cluster.start_all(&three);
    cluster.run_slowly(20_000, 110);
    assert_eq!(cluster.led.len(), 1, "{:?}", cluster.led);
}
