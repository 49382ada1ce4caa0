//! A voter without its record: whose answers are enough.

use super::*;

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
    assert!(
        !recovers(None, 3, &[2, 3], 1, 1000),
        "all others have answered, by a view that may not be committed"
    );
    assert!(!recovers(None, 5, &[2, 3, 4], 99, 1500), "an answer to a former life");
    assert!(recovers(Some(Mutation::RecoveryEchoIgnored), 5, &[2, 3, 4], 99, 1500));
    assert!(!recovers(None, 5, &[], 1, 1500));
    assert!(recovers(Some(Mutation::NoRecovery), 5, &[], 1, 1500));
}
