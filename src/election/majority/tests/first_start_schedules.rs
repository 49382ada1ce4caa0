//! Whole clusters: first starts and slow networks.

use super::cluster::*;
use super::*;

/// No process has a record. p1 and p2 are founded, and p2 loses its disk before p3 has finished.
#[test]
fn a_disk_that_is_lost_while_others_found_is_recovered() {
    let voters = [1, 2, 3];
    for lost in [1, 2] {
        let mut cluster = Cluster::new(&voters, None, |_| given(&voters, 1500), |_| None);
        cluster.start_all(&voters);
        let founded = |c: &Cluster, k| c.vote(k).is_some_and(|vote| !vote.founding);
        // p3 does not hear that the others are founding.
        let deaf = |_: u8, to: u8, m: &Message| match &m.body {
            Body::Recovered { state, .. } if to == 3 && *state != RecoveredState::Empty => Lost,
            _ if to == 3 && !matches!(m.body, Body::Recovered { .. } | Body::Recover { .. }) => Lost,
            _ => Arrives,
        };
        cluster.wait(|c| founded(c, 1) && founded(c, 2) && c.leader().is_some(), deaf);
        assert!(cluster.vote(3).is_some_and(|vote| vote.founding), "p3 has begun: {:?}", cluster.vote(3));
        let others: Vec<u8> = voters.into_iter().filter(|k| *k != lost).collect();
        cluster.crash(lost, true, &others);
        cluster.start(lost, &others);
        cluster.wait(|c| voters.into_iter().all(|k| founded(c, k)) && c.leader().is_some(), all);
    }
}

#[test]
fn three_empty_voters_found_together_and_only_where_they_may() {
    use crate::election::Founding;
    let voters = [1, 2, 3];
    for (founding, leads) in [(Founding::Auto, true), (Founding::Yes, true), (Founding::No, false)] {
        let settings = |_| Settings { founding, ..given(&voters, 1500) };
        let mut cluster = Cluster::new(&voters, None, settings, |_| None);
        cluster.start_all(&voters);
        cluster.run(20_000, all);
        assert_eq!(cluster.leader().is_some(), leads, "{founding:?}");
        assert_eq!(cluster.vote(1).is_some(), leads, "{founding:?}");
    }
}

/// p3 says that it is empty, and hears nothing more: with p1 and p2 leading without it one lost disk would be
/// too many.
#[test]
fn a_first_start_waits_until_every_voter_has_begun() {
    for leaves_out in [None, Some(Mutation::FoundedAtOnce)] {
        let voters = [1, 2, 3];
        let mut cluster = Cluster::new(&voters, leaves_out, |_| given(&voters, 1500), |_| None);
        cluster.start_all(&voters);
        let first = |m: &Message| match &m.body {
            Body::Recover { .. } => true,
            Body::Recovered { state, .. } => *state == RecoveredState::Empty,
            _ => false,
        };
        cluster.run(5000, |from, to, m| match (from, to) {
            (_, 3) if matches!(m.body, Body::Recovered { .. }) => Lost,
            (_, 3) | (3, _) if !first(m) => Lost,
            _ => Arrives,
        });
        assert_eq!(cluster.vote(3), None);
        assert_eq!(cluster.leader().is_some(), leaves_out.is_some(), "{leaves_out:?}");
    }
}

/// Ten rounds of heartbeats are on their way at any time.
#[test]
fn heartbeats_may_be_shorter_than_a_round_trip() {
    let three = [1, 2, 3];
    let settings = |_| Settings { heartbeat: Duration::from_millis(20), ..given(&three, 1500) };
    let mut cluster = Cluster::new(&three, None, settings, |k| Some(record(k, config(4, &three))));
    cluster.rank(1, 200);
    cluster.start_all(&three);
    cluster.run_slowly(20_000, 110);
    assert_eq!(cluster.led.len(), 1, "{:?}", cluster.led);
}

/// An answer counts for a round that is remembered, and 16 are.
#[test]
fn a_first_start_may_have_round_trips_of_more_heartbeats_than_rounds_are_remembered() {
    let three = [1, 2, 3];
    let settings = |_| Settings { heartbeat: Duration::from_millis(10), ..given(&three, 1500) };
    let mut cluster = Cluster::new(&three, None, settings, |_| None);
    cluster.start_all(&three);
    cluster.run_slowly(20_000, 110);
    assert_eq!(cluster.led.len(), 1, "{:?}", cluster.led);
}

/// p3 is dead for good, and p4 takes its place. The leader crashes when no other process has the
/// configuration with p4.
#[test]
fn an_addition_that_only_its_writer_has_stored_goes_on() {
    let of = [1, 2, 4];
    let disk = |k| (k != 4).then(|| record(k, config(4, &[1, 2, 3])));
    let mut cluster = Cluster::new(&of, None, |_| given(&of, 1500), disk);
    cluster.start_all(&of);
    let tells =
        |m: &Message| matches!(&m.body, Body::Configuration { config } if config.voters.contains("p4"));
    let writer = move |c: &Cluster| of.into_iter().find(|k| c.names(*k, "p4"));
    cluster.wait(|c| writer(c).is_some(), |_, _, m| if tells(m) { Slow } else { Arrives });
    let writer = writer(&cluster).unwrap();
    let others: Vec<u8> = of.into_iter().filter(|k| *k != writer).collect();
    cluster.lose_mail();
    cluster.restart(writer, &others);
    cluster.wait(|c| of.into_iter().all(|k| c.names(k, "p4") && !c.names(k, "p3")), all);
}

/// p1 leads and writes the configuration with p5, which p2 alone stores, and dies for good. Only p3 can be
/// elected, and p5 has to vote for it: p2 never leads.
#[test]
fn a_candidate_asks_the_voters_of_the_later_configuration_that_it_takes() {
    for leaves_out in [None, Some(Mutation::LaterConfigNotTaken)] {
        let of = [1, 2, 3, 5];
        let disk = |k| (k != 5).then(|| record(k, config(4, &[1, 2, 3])));
        let mut cluster = Cluster::new(&of, leaves_out, |_| given(&of, 1500), disk);
        [(1, 200), (2, 0)].into_iter().for_each(|(k, priority)| cluster.rank(k, priority));
        cluster.start_all(&of);
        let tells = |to: u8, m: &Message| {
            to != 2 && matches!(&m.body, Body::Configuration { config } if config.voters.contains("p5"))
        };
        cluster.wait(|c| c.names(2, "p5"), |_, to, m| if tells(to, m) { Lost } else { Arrives });
        cluster.lose_mail();
        cluster.crash(1, false, &[2, 3, 5]);
        assert!(!cluster.names(3, "p5") && !cluster.names(5, "p5"));
        cluster.run(30_000, all);
        assert_eq!(cluster.leader().is_some(), leaves_out.is_none(), "{leaves_out:?}");
    }
}
