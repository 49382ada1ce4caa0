//! The leader's lease: clauses 16, 17 and 27.

use super::*;
use crate::election::ListWanted;
use crate::election::core::Phase;

/// Until when a leader leads, counted in milliseconds from the election.
fn lease_ms(voter: &Voter, elected: Duration) -> u64 {
    let until = voter.machine.valid_until().unwrap_or_default();
    until.since(Moment(elected)).as_millis() as u64
}

fn same() -> Flags {
    flags(&[1, 2, 3], 1500)
}

const OWN: ConfigVersion = ConfigVersion { epoch: Epoch(5), version: 0 };

#[test]
fn a_leader_counts_on_less_than_the_lease_by_the_clock_margin() {
    for (leaves_out, counted) in [(None, 1485), (Some(Mutation::NoMargin), 1500)] {
        let mut voter = Voter::leader(leaves_out);
        let elected = voter.now;
        assert_eq!(lease_ms(&voter, elected), counted, "{leaves_out:?}");
        voter.pass(250);
        voter.timer(Timer::Heartbeat);
        voter.acknowledged(2, voter.round, OWN, same());
        assert_eq!(lease_ms(&voter, elected), 250 + counted, "{leaves_out:?}");
    }
}

#[test]
fn a_round_that_a_majority_acknowledges_extends_the_lease_from_its_sending() {
    for (leaves_out, extended) in [(None, 1735), (Some(Mutation::LeaseFromAcknowledgement), 2135)] {
        let mut voter = Voter::leader(leaves_out);
        let elected = voter.now;
        voter.pass(250);
        voter.timer(Timer::Heartbeat);
        voter.pass(400);
        voter.acknowledged(2, voter.round, OWN, same());
        assert_eq!(lease_ms(&voter, elected), extended, "{leaves_out:?}");
    }
}

#[test]
fn fewer_than_a_majority_extend_no_lease() {
    for (leaves_out, extended) in [(None, 1485), (Some(Mutation::RenewedByOne), 1735)] {
        let record = record(1, config(4, &[1, 2, 3, 4, 5]));
        let mut voter =
            Voter::start(peer(1), given(&[1, 2, 3, 4, 5], 1500), Some(&record), &[2, 3, 4], leaves_out);
        voter.wait_for_grace();
        voter.start_campaign();
        for _ in 0..2 {
            [2, 3].into_iter().for_each(|from| drop(voter.answered(from, GRANTED)));
        }
        let elected = voter.now;
        voter.pass(250);
        voter.timer(Timer::Heartbeat);
        voter.acknowledged(2, voter.round, OWN, same());
        assert_eq!(lease_ms(&voter, elected), extended, "{leaves_out:?}");
        voter.acknowledged(3, voter.round, OWN, same());
        assert_eq!(lease_ms(&voter, elected), 1735);
    }
}

/// p2's acknowledgement of the second round says nothing of the first, which asked for a longer promise.
#[test]
fn an_acknowledgement_counts_for_no_earlier_round() {
    for (leaves_out, extended) in [(None, 298), (Some(Mutation::RoundCountsLonger), 1585)] {
        let mut voter = Voter::settled(leaves_out);
        voter.machine.ask_for_lease(Duration::from_millis(200));
        voter.ask_for_votes();
        voter.answered(2, GRANTED);
        let elected = voter.now;
        voter.machine.ask_for_lease(Duration::from_millis(1500));
        voter.timer(Timer::Heartbeat);
        voter.machine.ask_for_lease(Duration::from_millis(200));
        voter.pass(100);
        voter.timer(Timer::Heartbeat);
        voter.acknowledged(2, voter.round, OWN, same());
        assert_eq!(lease_ms(&voter, elected), extended, "{leaves_out:?}");
    }
}

#[test]
fn an_acknowledgement_without_a_promise_or_of_another_epoch_does_not_count() {
    let mut voter = Voter::leader(None);
    let elected = voter.now;
    voter.pass(250);
    voter.timer(Timer::Heartbeat);
    let membership = MembershipVersion::default();
    let renewed = |promised| Body::Renewed {
        sequence: voter.round,
        membership,
        promised,
        firm: true,
        config: OWN,
        flags: same(),
    };
    let (unpromised, promised) = (renewed(false), renewed(true));
    voter.hear(2, 5, unpromised);
    voter.hear(2, 4, promised);
    assert_eq!(lease_ms(&voter, elected), 1485);
}

/// The lease of the election goes on. The promise of p2 by this round may be over. The configuration that it
/// acknowledged may be gone with its disk.
#[test]
fn a_round_commits_nothing_after_its_own_lease() {
    for (leaves_out, after_ms, committed) in
        [(None, 197, true), (None, 198, false), (Some(Mutation::LateRoundCommits), 198, true)]
    {
        let mut voter = Voter::settled(leaves_out);
        voter.ask_for_votes();
        voter.machine.ask_for_lease(Duration::from_millis(200));
        voter.answered(2, GRANTED);
        voter.pass(after_ms);
        assert!(voter.leads());
        voter.acknowledged(2, voter.round, OWN, same());
        assert_eq!(voter.committed(), committed, "{leaves_out:?}: {after_ms}");
    }
}

impl Voter {
    /// Whether its present configuration is committed.
    fn committed(&self) -> bool {
        let leading = self.machine.protocol.leading.as_ref();
        leading.is_some_and(|leading| leading.committed)
    }
}

#[test]
fn a_leader_stops_when_its_lease_is_over() {
    let mut voter = Voter::leader(None);
    voter.pass(1484);
    assert!(voter.leads());
    voter.pass(1);
    assert!(!voter.leads());
}

/// A late round of the leader of epoch 5 comes after its resignation.
#[test]
fn a_resigned_epoch_is_followed_no_more() {
    for (leaves_out, follows) in [(None, false), (Some(Mutation::ResignedEpochFollowed), true)] {
        let mut voter = Voter::settled(leaves_out);
        assert_eq!(voter.acknowledges(2, 5, 1500, version(4, 0)), Some(true));
        voter.resigns(2, 5);
        let answer = voter.acknowledges(2, 5, 1500, version(4, 0));
        assert_eq!(answer == Some(true), follows, "{leaves_out:?}");
        assert_eq!(voter.vote_for(3, 6) == Some(GRANTED), !follows, "{leaves_out:?}");
    }
}

/// A leader that resigns frees its own promise too, and never leads in that epoch again, whatever arrives
/// late.
#[test]
fn late_acknowledgements_do_not_bring_a_resigned_leader_back() {
    let mut voter = Voter::leader(None);
    let round = voter.round;
    voter.feed(Event::Stop);
    voter.acknowledged(2, round, OWN, same());
    assert!(!voter.leads());
    assert_eq!(voter.machine.valid_until(), None);
}

/// A voter in a higher epoch cannot follow this leader: it has voted for a candidate that did not win.
#[test]
fn a_leader_stands_for_an_epoch_above_that_of_a_voter() {
    for (leaves_out, asked) in
        [(None, vec![(Stage::PreVote, 8)]), (Some(Mutation::HigherEpochIgnored), Vec::new())]
    {
        let mut voter = Voter::leader(leaves_out);
        let sent = voter.hear(3, 7, Body::LeaderInfo { leader: None, entries: [].into() });
        assert_eq!(requests(&sent), asked, "{leaves_out:?}");
        assert!(voter.leads(), "it leads the old epoch until it votes for itself");
    }
    let mut voter = Voter::leader(None);
    voter.hear(3, 7, Body::LeaderQuery { list: ListWanted::Whole });
    assert!(voter.machine.protocol.campaign.is_some(), "a question says the same");
    voter.answered(2, GRANTED);
    assert!(!voter.leads() && voter.machine.phase == Phase::Electing);
    voter.answered(2, GRANTED);
    assert!(voter.leads() && voter.machine.epoch == Epoch(8));
}

#[test]
fn a_leader_that_cannot_win_a_higher_epoch_goes_on_in_its_own() {
    let mut voter = Voter::leader(None);
    let tell = Body::LeaderInfo { leader: None, entries: [].into() };
    voter.hear(3, 7, tell.clone());
    [Timer::Answer, Timer::Answer].into_iter().for_each(|timer| drop(voter.timer(timer)));
    assert!(voter.leads() && voter.machine.epoch == Epoch(5));
    assert_eq!(requests(&voter.hear(3, 7, tell.clone())), [], "once a coordinator timeout at most");
    voter.pass(900);
    assert_eq!(requests(&voter.hear(3, 7, tell)), [(Stage::PreVote, 8)]);
}

#[test]
fn under_release_a_leader_stops_once_it_is_connected_with_fewer_than_a_majority() {
    for (crash_evidence, leads) in [(CrashEvidence::Release, false), (CrashEvidence::Suspect, true)] {
        let settings = Settings { crash_evidence, ..given(&[1, 2, 3], 1500) };
        let record = record(1, config(4, &[1, 2, 3]));
        let mut voter = Voter::start(peer(1), settings, Some(&record), &[2, 3], None);
        voter.wait_for_grace();
        voter.ask_for_votes();
        voter.answered(2, GRANTED);
        for k in [2, 3] {
            assert!(voter.leads());
            let Peer { id, incarnation, .. } = peer(k);
            voter.feed(Event::LinkDown { id, incarnation });
        }
        assert_eq!(voter.leads(), leads, "{crash_evidence:?}");
    }
}

/// Before anything is learnt, heartbeats are a fifth of the lease in use apart.
#[test]
fn the_heartbeat_follows_the_lease_in_use() {
    for (lease, heartbeat) in [(1500, 250), (200, 40)] {
        let mut voter = Voter::settled(None);
        voter.machine.ask_for_lease(Duration::from_millis(lease));
        voter.ask_for_votes();
        voter.answered(2, GRANTED);
        let sent = voter.timer(Timer::Heartbeat);
        assert_eq!(armed(&sent, Timer::Heartbeat), Some(Duration::from_millis(heartbeat)));
    }
}

#[test]
fn many_rounds_may_be_under_way() {
    let mut voter = Voter::leader(None);
    let (first, elected) = (voter.round, voter.now);
    for _ in 0..300 {
        voter.timer(Timer::Heartbeat);
    }
    voter.pass(1);
    voter.acknowledged(2, first, OWN, same());
    assert!(!voter.committed(), "the oldest are forgotten: the memory is bounded");
    voter.acknowledged(2, first + 100, OWN, same());
    assert!(voter.committed());
    assert_eq!(lease_ms(&voter, elected), 1485);
}
