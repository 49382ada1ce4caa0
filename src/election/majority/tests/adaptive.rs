//! Adaptive leases: what a leader and a candidate ask for.

use super::*;
use crate::election::{HoldRequest, Sign};

/// p1 of three, with adaptive leases, leads; p2 and p3 are connected.
fn leader() -> Voter {
    let settings = Settings { lease_min: Some(Duration::from_millis(250)), ..given(&[1, 2, 3], 1500) };
    Voter::leader_with(settings, None)
}

/// The same, once its lease is over.
fn lapsed() -> Voter {
    let mut voter = leader();
    voter.learns(2100);
    // Long enough to be no delay, and no pause.
    voter.now += Duration::from_millis(1400);
    voter.feed(Event::Turn);
    assert!(!voter.leads());
    voter
}

impl Voter {
    /// The lease that its next round asks for.
    fn round_asks_for(&mut self) -> u32 {
        let sent = self.timer(Timer::Heartbeat);
        let lease = bodies(&sent).find_map(|body| match body {
            Body::Renew { lease_ms, .. } => Some(*lease_ms),
            _ => None,
        });
        lease.expect("it leads")
    }

    /// It leads for so long, and p2 acknowledges each round at once.
    fn learns(&mut self, ms: u64) {
        for _ in 0..ms / 50 {
            self.pass(50);
            self.timer(Timer::Heartbeat);
            self.acknowledged(2, self.round, version(5, 0), flags(&[1, 2, 3], 1500));
        }
    }
}

#[test]
fn rounds_ask_for_the_longest_lease_until_the_leader_has_learnt_for_two_seconds() {
    let mut voter = leader();
    voter.learns(2000);
    assert_eq!(voter.round_asks_for(), 1500);
    voter.learns(100);
    assert_eq!(voter.round_asks_for(), 250);
    let sent = voter.timer(Timer::Heartbeat);
    assert_eq!(armed(&sent, Timer::Heartbeat), Some(Duration::from_millis(70)));
}

/// The other follower alone could elect no leader, so a short lease would gain nothing.
#[test]
fn rounds_ask_for_the_longest_lease_where_the_connected_voters_could_elect_no_other() {
    let mut voter = leader();
    voter.learns(2100);
    assert_eq!(voter.round_asks_for(), 250);
    let Peer { id, incarnation, .. } = peer(3);
    voter.feed(Event::LinkDown { id, incarnation });
    assert_eq!(voter.round_asks_for(), 1500);
    voter.feed(Event::LinkUp(peer(3)));
    assert_eq!(voter.round_asks_for(), 250);
}

/// Otherwise the next term would end by the same delay.
#[test]
fn a_delay_that_costs_the_lease_is_learnt() {
    let mut voter = leader();
    voter.learns(2100);
    while voter.leads() {
        voter.timer(Timer::Heartbeat);
        voter.pass(50);
        voter.feed(Event::Turn);
    }
    let worst = voter.machine.status().worst_delay;
    assert!(worst >= Some(Duration::from_millis(200)), "{worst:?}");
}

/// Of two that answer, p4 having failed, one does. The lease needs both.
#[test]
fn answers_of_fewer_than_a_majority_do_not_count_as_answered() {
    let settings = Settings { lease_min: Some(Duration::from_millis(250)), ..given(&[1, 2, 3, 4, 5], 1500) };
    let record = record(1, config(4, &[1, 2, 3, 4, 5]));
    let mut voter = Voter::start(peer(1), settings, Some(&record), &[2, 3, 4], None);
    voter.wait_for_grace();
    voter.start_campaign();
    for from in [2, 3, 2, 3] {
        voter.answered(from, GRANTED);
    }
    assert!(voter.leads());
    let same = flags(&[1, 2, 3, 4, 5], 1500);
    let rounds = |voter: &mut Voter, count, of: &[u8]| {
        let mut lease_ms = 0;
        for _ in 0..count {
            voter.pass(50);
            lease_ms = voter.round_asks_for();
            of.iter().for_each(|from| drop(voter.acknowledged(*from, voter.round, version(5, 0), same)));
        }
        lease_ms
    };
    assert_eq!(rounds(&mut voter, 42, &[2, 3]), 250);
    assert!(rounds(&mut voter, 4, &[2]) > 300);
}

#[test]
fn a_request_for_votes_asks_for_a_lease_that_outlasts_it() {
    let mut voter = lapsed();
    voter.ask_for_votes();
    // An answer timeout and two heartbeats, with the margin between clocks.
    assert_eq!(voter.asked.as_ref().unwrap().ballot.lease_ms, 405);
}

#[test]
fn a_hold_that_is_asked_for_lengthens_the_lease() {
    let mut voter = leader();
    voter.learns(2100);
    voter.feed(Event::Hold(HoldRequest::Take { lasts: Duration::from_millis(600) }));
    assert_eq!(voter.round_asks_for(), 901);
    voter.acknowledged(2, voter.round, version(5, 0), flags(&[1, 2, 3], 1500));
    voter.learns(4950);
    assert_eq!(voter.round_asks_for(), 901);
    voter.learns(5000);
    assert_eq!(voter.round_asks_for(), 250);
}

/// The next round comes 20 ms after the last one, however often applications ask for more.
#[test]
fn an_application_that_acts_on_validities_lengthens_the_lease() {
    let mut voter = leader();
    voter.learns(2100);
    let mut watches = |valid_for| {
        voter.pass(5);
        let valid_for = Duration::from_millis(valid_for);
        let sent = voter.feed(Event::Application(Sign::Watches { valid_for }));
        armed(&sent, Timer::Heartbeat).map(|after| after.as_millis())
    };
    assert_eq!([200, 400, 401, 300].map(&mut watches), [Some(15), Some(10), Some(5), Some(0)]);
    assert_eq!(voter.round_asks_for(), 603);
    // It asks for enough already.
    let sent = voter.feed(Event::Application(Sign::Watches { valid_for: Duration::from_millis(400) }));
    assert_eq!(armed(&sent, Timer::Heartbeat), None);
    voter.feed(Event::Application(Sign::Watches { valid_for: Duration::MAX }));
    assert_eq!(voter.round_asks_for(), 1500);
}

/// It has asked while another led.
#[test]
fn a_new_leaders_first_lease_is_long_enough_for_its_application() {
    let mut voter = lapsed();
    let sent = voter.feed(Event::Application(Sign::Watches { valid_for: Duration::from_millis(400) }));
    assert_eq!(armed(&sent, Timer::Heartbeat), None);
    voter.ask_for_votes();
    voter.answered(2, GRANTED);
    assert!(voter.leads() && voter.round_asks_for() >= 600);
}

/// Answers of a follower stand as long as its leader may be silent.
#[test]
fn a_followers_answer_stands_for_the_lease_of_the_latest_round() {
    for (leaves_out, longest, short) in [(None, 1500, 450), (Some(Mutation::SilenceShort), 750, 225)] {
        let mut voter = Voter::settled(leaves_out);
        for (lease_ms, stands) in [(1500, longest), (450, short), (1, 200)] {
            voter.acknowledges(2, 4, lease_ms, version(4, 0));
            let until = voter.machine.status().valid_until.unwrap();
            assert_eq!(until.since(Moment(voter.now)), Duration::from_millis(stands), "{leaves_out:?}");
        }
    }
}
