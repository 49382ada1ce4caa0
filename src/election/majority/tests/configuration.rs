//! The configuration: clauses 18 to 21 and 26.

use super::*;

fn next_lease((lease_ms, bound_ms): (u32, u32), target: u32) -> Option<(u32, u32)> {
    VoterConfig { lease_ms, bound_ms, ..VoterConfig::default() }.next_lease(target)
}

#[test]
fn the_lease_changes_by_way_of_the_shorter_lease_with_the_longer_bound() {
    for (present, target, next) in [
        ((1500, 1500), 1500, None),
        ((1500, 1500), 4000, Some((1500, 4000))),
        ((1500, 4000), 4000, Some((4000, 4000))),
        ((4000, 4000), 1500, Some((1500, 4000))),
        ((1500, 4000), 1500, Some((1500, 1500))),
        // Half-way, and then another target: further up, in between, below.
        ((1500, 4000), 9000, Some((1500, 9000))),
        ((1500, 4000), 2000, Some((2000, 2000))),
        ((1500, 4000), 500, Some((500, 4000))),
        ((500, 4000), 500, Some((500, 500))),
    ] {
        assert_eq!(next_lease(present, target), next, "{present:?} to {target}");
    }
}

/// Every way from pair to pair ends, and no step raises the lease over the bound before or lowers the bound
/// unasked.
#[test]
fn every_change_of_the_lease_ends_and_each_step_is_careful() {
    for (from, half, to) in [(2, 9, 2), (2, 9, 4), (9, 2, 9), (9, 2, 5), (5, 5, 1), (1, 7, 3), (7, 1, 7)] {
        let mut present = (from, from);
        for target in [half, to] {
            // The first change may be interrupted after its first step.
            for step in 0..4 {
                let Some(next) = next_lease(present, target) else { break };
                assert!(
                    next.0 <= present.1,
                    "{present:?} to {next:?}: asks for more than a majority waits for"
                );
                assert!(next.1 >= present.0, "{present:?} to {next:?}: waits for less than may be asked for");
                present = next;
                if target == half && step == 0 {
                    break;
                }
            }
        }
        assert_eq!(present, (to, to));
    }
}

const FIVE: [u8; 5] = [1, 2, 3, 4, 5];

impl Voter {
    /// A follower acknowledges the latest round, and stores the leader's configuration.
    fn stores(&mut self, from: u8, flags: Flags) -> Vec<Action> {
        let version = self.config().version;
        self.acknowledged(from, self.round, version, flags)
    }

    fn pair(&self) -> (u32, u32) {
        (self.config().lease_ms, self.config().bound_ms)
    }
}

#[test]
fn configurations_are_ordered_by_the_epoch_of_their_writer_first() {
    for (leaves_out, stored) in [(None, version(5, 0)), (Some(Mutation::ConfigByCounter), version(4, 2))] {
        let mut voter = Voter::settled(leaves_out);
        voter.tells_config(2, VoterConfig { version: version(4, 2), ..config(4, &[1, 2, 3]) });
        voter.tells_config(3, config(5, &[1, 2, 3]));
        voter.tells_config(3, config(5, &[1, 2, 3]));
        voter.tells_config(2, VoterConfig { version: version(4, 1), ..config(4, &[1, 2, 3]) });
        assert_eq!(voter.config().version, stored, "{leaves_out:?}");
    }
}

#[test]
fn a_leader_and_a_candidate_for_votes_store_no_configuration_of_others() {
    let mut voter = Voter::settled(None);
    voter.start_campaign();
    voter.answered_with(3, denied(Denial::OlderConfig), Some(config(5, &[1, 2, 3])));
    assert_eq!(voter.config().version, version(5, 0), "a candidate for pre-votes does");
    let mut voter = Voter::settled(None);
    voter.ask_for_votes();
    voter.hear(3, 4, Body::Configuration { config: config(6, &[3]) });
    assert_eq!(voter.config().version, version(4, 0));
    voter.answered(2, GRANTED);
    assert!(voter.leads());
    voter.hear(3, 5, Body::Configuration { config: config(6, &[3]) });
    assert_eq!(voter.config().version, version(5, 0));
}

/// Without a timer it would never hear that it is a voter again.
#[test]
fn a_candidate_that_is_told_that_it_is_no_voter_asks_for_a_later_configuration() {
    let mut voter = Voter::settled(None);
    voter.start_campaign();
    voter.answered_with(2, denied(Denial::Unlisted), Some(config(5, &[2, 3, 4])));
    assert_eq!(voter.config().version, version(5, 0));
    let mut sent = Vec::new();
    while armed(&sent, Timer::Retry).is_none() {
        sent = voter.timer(Timer::Answer);
    }
    let sent = voter.timer(Timer::Retry);
    assert!(requests(&sent).is_empty() && armed(&sent, Timer::Coordinator).is_some(), "{sent:?}");
    assert!(!requests(&voter.timer(Timer::Coordinator)).is_empty());
    voter.answered_with(3, GRANTED, Some(config(6, &[1, 2, 3])));
    assert_eq!(voter.config().version, version(6, 0));
}

/// p1 was given five voters and leads; p4 is connected and stores what p1 has written.
fn growing(leaves_out: Option<Mutation>) -> Voter {
    let mut voter = Voter::leader_given(&FIVE, 1500, leaves_out);
    [4, 5].into_iter().for_each(|k| drop(voter.feed(Event::LinkUp(peer(k)))));
    voter
}

#[test]
fn a_new_leader_writes_its_configuration_again_before_it_changes_it() {
    for (leaves_out, first, version_then) in
        [(None, version(5, 0), version(5, 1)), (Some(Mutation::NoRestamp), version(4, 0), version(5, 1))]
    {
        let mut voter = growing(leaves_out);
        assert_eq!(voter.config().version, first, "{leaves_out:?}");
        voter.stores(4, flags(&FIVE, 1500));
        let early = voter.config().voters.len() == 4;
        assert!(!early, "p4 is no voter, so its acknowledgement commits nothing");
        voter.stores(2, flags(&FIVE, 1500));
        assert_eq!(voter.config().version, version_then);
    }
}

#[test]
fn the_configuration_is_durable_before_the_first_round_that_names_it() {
    let mut voter = Voter::settled(None);
    voter.ask_for_votes();
    let sent = voter.answered(2, GRANTED);
    let Some(Action::Persist(record)) = sent.first() else { panic!("{sent:?}") };
    assert_eq!(record.vote.as_ref().map(|vote| vote.config.version), Some(version(5, 0)));
    let named = bodies(&sent).find_map(|body| match body {
        Body::Renew { config, .. } => Some(*config),
        _ => None,
    });
    assert_eq!(named, Some(version(5, 0)));
}

/// Two rounds that name the configuration of three are under way when the first commits it. The second does
/// not commit the configuration of four, which it does not name.
#[test]
fn the_next_change_waits_until_the_last_is_committed() {
    for (leaves_out, voters) in [(None, 4), (Some(Mutation::ChangesOverlap), 5)] {
        let mut voter = growing(leaves_out);
        let first = voter.round;
        voter.timer(Timer::Heartbeat);
        for round in [first, first + 1] {
            for from in [4, 5, 2] {
                voter.acknowledged(from, round, version(5, 0), flags(&FIVE, 1500));
            }
        }
        assert_eq!(voter.config().voters.len(), voters, "{leaves_out:?}");
    }
}

/// The leader of three has a lease of 1.5 s. It asks for 200 ms when it adds the fourth and the fifth. The
/// three that are new to the five or fewer have promised no more than that, and are a majority of them.
#[test]
fn a_lease_that_only_an_earlier_configuration_has_promised_ends_with_the_next() {
    for (leaves_out, leads) in [(None, false), (Some(Mutation::LeaseOutlivesConfig), true)] {
        let mut voter = growing(leaves_out);
        voter.machine.ask_for_lease(Duration::from_millis(200));
        voter.timer(Timer::Heartbeat);
        for _ in 0..2 {
            [4, 5, 2].into_iter().for_each(|k| drop(voter.stores(k, flags(&FIVE, 1500))));
        }
        assert_eq!(voter.config().voters.len(), 5, "{leaves_out:?}");
        voter.pass(250);
        voter.feed(Event::Turn);
        assert_eq!(voter.leads(), leads, "{leaves_out:?}");
    }
}

#[test]
fn the_voters_change_one_by_one() {
    for (leaves_out, added) in [(None, 1), (Some(Mutation::VotersChangedAtOnce), 2)] {
        let mut voter = growing(leaves_out);
        [4, 5, 2].into_iter().for_each(|k| drop(voter.stores(k, flags(&FIVE, 1500))));
        assert_eq!(voter.config().voters.len(), 3 + added, "{leaves_out:?}");
    }
}

#[test]
fn additions_come_before_removals_and_a_leader_never_removes_itself() {
    let mut voter = Voter::leader_given(&[1, 2, 4], 1500, None);
    voter.feed(Event::LinkUp(peer(4)));
    let same = flags(&[1, 2, 4], 1500);
    [4, 2].into_iter().for_each(|k| drop(voter.stores(k, same)));
    assert_eq!(voter.config().voters, names(&[1, 2, 3, 4]));
    [4, 2].into_iter().for_each(|k| drop(voter.stores(k, same)));
    assert_eq!(voter.config().voters, names(&[1, 2, 4]));
    [4, 2].into_iter().for_each(|k| drop(voter.stores(k, same)));
    assert_eq!(voter.config(), VoterConfig { version: version(5, 2), ..config(5, &[1, 2, 4]) });
}

#[test]
fn the_configuration_changes_only_when_a_majority_was_given_the_same() {
    let other = flags(&[1, 2, 3], 1500);
    for (leaves_out, of_p2, voters) in
        [(None, flags(&FIVE, 1500), 4), (None, other, 3), (Some(Mutation::NoAgreement), other, 4)]
    {
        let mut voter = growing(leaves_out);
        voter.stores(4, flags(&FIVE, 1500));
        voter.stores(2, of_p2);
        assert_eq!(voter.config().voters.len(), voters, "{leaves_out:?}");
    }
}

#[test]
fn the_lease_changes_only_when_a_majority_was_given_the_same() {
    for (of_p2, of_p3, pair) in
        [(1500, 1500, (1500, 1500)), (4000, 1500, (1500, 4000)), (3000, 1500, (1500, 1500))]
    {
        let mut voter = Voter::leader_given(&[1, 2, 3], 4000, None);
        voter.stores(3, flags(&[1, 2, 3], of_p3));
        voter.stores(2, flags(&[1, 2, 3], of_p2));
        assert_eq!(voter.pair(), pair, "{of_p2} {of_p3}");
    }
}

#[test]
fn a_lease_is_raised_in_two_steps() {
    for (leaves_out, first) in [(None, (1500, 4000)), (Some(Mutation::LeaseRaisedAtOnce), (4000, 4000))] {
        let mut voter = Voter::leader_given(&[1, 2, 3], 4000, leaves_out);
        voter.stores(2, flags(&[1, 2, 3], 4000));
        assert_eq!(voter.pair(), first, "{leaves_out:?}");
        voter.stores(2, flags(&[1, 2, 3], 4000));
        assert_eq!(voter.pair(), (4000, 4000));
    }
}

#[test]
fn a_round_and_a_request_ask_for_the_lease_and_not_for_the_bound() {
    let record = record(1, VoterConfig { bound_ms: 4000, ..config(4, &[1, 2, 3]) });
    let mut voter = Voter::start(peer(1), given(&[1, 2, 3], 1500), Some(&record), &[2, 3], None);
    voter.pass(4000);
    voter.timer(Timer::Grace);
    voter.ask_for_votes();
    assert_eq!(voter.asked.as_ref().unwrap().ballot.lease_ms, 1500);
    let sent = voter.answered(2, GRANTED);
    let round = bodies(&sent).find_map(|body| match body {
        Body::Renew { lease_ms, .. } => Some(*lease_ms),
        _ => None,
    });
    assert_eq!(round, Some(1500));
}

/// p1 leads with a lease and a bound of four seconds, and a majority was started with 1.5 s.
fn lowering(leaves_out: Option<Mutation>) -> Voter {
    let record = record(1, VoterConfig { lease_ms: 4000, bound_ms: 4000, ..config(4, &[1, 2, 3]) });
    let mut voter = Voter::start(peer(1), given(&[1, 2, 3], 1500), Some(&record), &[2, 3], leaves_out);
    voter.pass(4000);
    voter.timer(Timer::Grace);
    voter.ask_for_votes();
    voter.answered(2, GRANTED);
    voter
}

#[test]
fn a_lease_is_lowered_in_two_steps() {
    let same = flags(&[1, 2, 3], 1500);
    for (leaves_out, first) in [(None, (1500, 4000)), (Some(Mutation::LeaseLoweredAtOnce), (1500, 1500))] {
        let mut voter = lowering(leaves_out);
        voter.stores(2, same);
        assert_eq!(voter.pair(), first, "{leaves_out:?}");
        voter.stores(2, same);
        assert_eq!(voter.pair(), (1500, 1500));
    }
}

/// p2 has promised four seconds, and stores the lower bound now. A restart would make it wait for 1.5 s only.
#[test]
fn a_leader_that_lowers_the_bound_counts_on_no_longer_lease() {
    for (leaves_out, leads) in [(None, false), (Some(Mutation::LeaseOutlivesConfig), true)] {
        let mut voter = lowering(leaves_out);
        let same = flags(&[1, 2, 3], 1500);
        voter.stores(2, same);
        assert_eq!(voter.pair(), (1500, 4000), "{leaves_out:?}");
        voter.stores(2, same);
        voter.pass(1485);
        voter.feed(Event::Turn);
        assert_eq!(voter.leads(), leads, "{leaves_out:?}");
    }
}

/// p1 and p3 were started with flags that leave p2 out, but p3 stores another configuration. With p2 gone no
/// voter would acknowledge a round.
#[test]
fn a_change_waits_until_a_majority_of_the_next_configuration_stores_the_present_one() {
    let two = flags(&[1, 3], 1500);
    for (leaves_out, early) in [(None, 3), (Some(Mutation::ChangedWithoutSupport), 2)] {
        let mut voter = Voter::leader_given(&[1, 3], 1500, leaves_out);
        let (membership, promised) = (MembershipVersion::default(), false);
        let config = ConfigVersion::default();
        voter.hear(
            3,
            5,
            Body::Renewed { sequence: voter.round, membership, promised, firm: true, config, flags: two },
        );
        voter.stores(2, flags(&[1, 2, 3], 1500));
        assert_eq!(voter.config().voters.len(), early, "{leaves_out:?}");
        voter.stores(3, two);
        assert_eq!(voter.config().voters, names(&[1, 3]));
    }
}

/// The same; p3 stores it, but is not connected any more, or only another incarnation of it.
#[test]
fn only_the_connected_incarnation_supports_a_change() {
    let two = flags(&[1, 3], 1500);
    let mut voter = Voter::leader_given(&[1, 3], 1500, None);
    voter.acknowledged(3, voter.round, version(5, 0), flags(&[1, 2, 3], 1500));
    voter.feed(Event::LinkDown { id: peer(3).id, incarnation: peer(3).incarnation });
    voter.stores(2, two);
    assert_eq!(voter.config().voters.len(), 3);
    voter.feed(Event::LinkUp(Peer { incarnation: Incarnation(9), ..peer(3) }));
    voter.stores(2, two);
    assert_eq!(voter.config().voters.len(), 3);
    voter.stores(3, two);
    assert_eq!(voter.config().voters, names(&[1, 3]));
}

#[test]
fn a_follower_that_has_missed_the_configuration_is_told() {
    let mut voter = Voter::leader(None);
    let tells = |sent: &[Action]| bodies(sent).any(|body| matches!(body, Body::Configuration { .. }));
    assert!(tells(&voter.acknowledged(2, voter.round, version(4, 0), flags(&[1, 2, 3], 1500))));
    assert!(!tells(&voter.acknowledged(2, voter.round, version(5, 0), flags(&[1, 2, 3], 1500))));
    assert!(tells(&voter.feed(Event::LinkUp(peer(4)))), "a newcomer too");
}

#[test]
fn the_log_says_once_that_a_member_was_given_other_voters() {
    let mut voter = Voter::leader(None);
    let differ = |sent: Vec<Action>| {
        sent.iter()
            .filter(|action| matches!(action, Action::Notification(Notification::VotersDiffer { .. })))
            .count()
    };
    assert_eq!(differ(voter.stores(3, flags(&[1, 3], 1500))), 1);
    assert_eq!(differ(voter.stores(3, flags(&[1, 3], 1500))), 0);
    assert_eq!(differ(voter.stores(3, flags(&[1, 2, 3], 1500))), 0);
    assert_eq!(differ(voter.stores(3, flags(&[1, 3], 1500))), 1);
}

/// At its restart, while the configuration is another: its own log has both lists.
#[test]
fn the_log_says_which_voters_a_restarted_process_was_given() {
    let record = record(1, config(4, &[1, 2, 3]));
    for (voters, told) in [(&[1, 2, 3][..], false), (&[1, 2, 3, 4], true)] {
        let mut machine = Core::<Majority>::new(given(voters, 1500), "c".to_owned(), peer(1), Some(&record));
        let actions = machine.handle(Now::at(Moment(Duration::from_secs(9))), Event::Start);
        let notes = actions.iter().filter_map(|action| match action {
            Action::Notification(Notification::VotersChanged { config, given }) => Some((config, given)),
            _ => None,
        });
        for (config, given) in notes.clone() {
            assert_eq!((&config.voters, given), (&names(&[1, 2, 3]), &names(voters)));
        }
        assert_eq!(notes.count() == 1, told, "{voters:?}");
    }
}

/// p5 has acknowledged the configuration of three, and not yet that of four.
#[test]
fn a_process_that_does_not_store_the_present_configuration_is_not_added() {
    let mut voter = growing(None);
    [4, 5, 2, 4, 2].into_iter().for_each(|k| drop(voter.stores(k, flags(&FIVE, 1500))));
    assert_eq!(voter.config().voters, names(&[1, 2, 3, 4]));
    voter.stores(5, flags(&FIVE, 1500));
    assert_eq!(voter.config().voters, names(&FIVE));
}

/// p2 and p1 were started with the same voters, but different leases. No lease has a majority.
#[test]
fn the_voters_do_not_change_while_lease_and_bound_differ() {
    for (bound_ms, voters) in [(1500, 4), (4000, 3)] {
        let record = record(1, VoterConfig { bound_ms, ..config(4, &[1, 2, 3]) });
        let mut voter = Voter::start(peer(1), given(&[1, 2, 3, 4], 1500), Some(&record), &[2, 3, 4], None);
        voter.pass(u64::from(bound_ms));
        voter.timer(Timer::Grace);
        voter.ask_for_votes();
        voter.answered(2, GRANTED);
        [4, 2].into_iter().for_each(|k| drop(voter.stores(k, flags(&[1, 2, 3, 4], 2000))));
        assert_eq!(voter.config().voters.len(), voters, "{bound_ms}");
    }
}
