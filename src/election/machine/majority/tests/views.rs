//! Changes of the voter view, and a voter without its record.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::election::voters::fingerprint;

/// p1 leads epoch 5 with p2, both given these voters, or only p1; p4 and p5 have stored its view, and so has p2.
fn leader_that_changes_the_view(leaves_out: Option<Mutation>, agrees: bool) -> Voter {
    let five = first(5);
    let record = settled(None).machine.record();
    let mut voter = Voter::with(leaves_out, five.clone(), Some(&record));
    [4, 5].into_iter().for_each(|k| drop(voter.feed(Event::LinkUp(peer(k)))));
    voter.pass(1500);
    voter.sound();
    voter.yes(2, Question::Sounding, 5, &view(4, voters()));
    voter.yes(2, Question::Claim, 5, &view(4, voters()));
    assert!(voter.machine.phase.leading());
    let target = if agrees { fingerprint(&five) } else { fingerprint(&voters()) };
    for from in [4, 5, 2] {
        voter.stores(from, 0, target);
    }
    voter
}

impl Voter {
    /// A follower acknowledges the first round of heartbeats, and stores the view of this version.
    fn stores(&mut self, from: u8, version: u32, target: u64) {
        let (membership, view) = (MembershipVersion::default(), ViewStamp { epoch: Epoch(5), version });
        let promised = from == 2;
        self.hear(from, 5, Body::Renewed { sequence: 1, membership, promised, view, target, lease_ms: 1500 });
    }

    fn view(&self) -> VoterView {
        self.machine.record().vote.unwrap().view
    }
}

#[test]
fn the_view_changes_only_when_a_majority_was_given_the_same_voters() {
    for (leaves_out, agrees, changes) in
        [(None, true, true), (None, false, false), (Some(Mutation::NoAgreement), false, true)]
    {
        let view = leader_that_changes_the_view(leaves_out, agrees).view();
        assert_eq!(view.voters.contains("p4"), changes, "{leaves_out:?} {agrees}");
    }
}

#[test]
fn the_next_change_waits_until_the_last_is_committed() {
    for leaves_out in [None, Some(Mutation::ChangesOverlap)] {
        let mut voter = leader_that_changes_the_view(leaves_out, true);
        voter.stores(5, 1, fingerprint(&first(5)));
        assert_eq!(voter.view().voters.contains("p5"), leaves_out.is_some(), "{leaves_out:?}");
    }
}

/// Whether a voter without a record has recovered after these answers: from whom, to which life, how long after its start.
fn recovers(leaves_out: Option<Mutation>, voters: u8, answers: &[u8], life: u64, after_ms: u64) -> bool {
    let voters = first(voters);
    let mut voter = Voter::with(leaves_out, voters.clone(), None);
    voter.feed(Event::LinkUp(peer(4)));
    voter.pass(after_ms);
    voter.feed(Event::Timer(Timer::Recover));
    for from in answers {
        let recollection = Some(Recollection { view: view(4, voters.clone()), lease_longest_ms: 1500 });
        let (target, incarnation) = (fingerprint(&voters), Incarnation(life));
        voter.hear(*from, 4, Body::Recovered { round: 2, incarnation, recollection, target });
    }
    voter.machine.record().vote.is_some()
}

#[test]
fn a_voter_without_its_record_recovers_from_a_majority_of_others_a_lease_after_its_start() {
    assert!(recovers(None, 5, &[2, 3, 4], 1, 1500));
    assert!(!recovers(None, 5, &[2, 3], 1, 1500));
    assert!(recovers(Some(Mutation::RecoveryCountsItself), 5, &[2, 3], 1, 1500));
    assert!(!recovers(None, 5, &[2, 3, 4], 1, 1000));
    assert!(recovers(Some(Mutation::RecoveryEarly), 5, &[2, 3, 4], 1, 1000));
    assert!(recovers(None, 3, &[2, 3], 1, 1000), "all others have answered");
    assert!(!recovers(None, 5, &[2, 3, 4], 99, 1500), "an answer to a former life");
    assert!(recovers(Some(Mutation::RecoveryEchoIgnored), 5, &[2, 3, 4], 99, 1500));
    assert!(!recovers(None, 5, &[], 1, 1500));
    assert!(recovers(Some(Mutation::NoRecovery), 5, &[], 1, 1500));
}
