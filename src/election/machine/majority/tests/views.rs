//! The voter view: which one is stored, and when a leader changes it.

use super::*;

#[test]
fn views_are_ordered_by_their_leaders_epoch_first() {
    for (leaves_out, stored) in [(None, 5), (Some(Mutation::ViewsByVersion), 4)] {
        let mut voter = settled(leaves_out);
        for (epoch, version) in [(4, 1), (5, 0)] {
            let stamp = ViewStamp { epoch: Epoch(epoch), version };
            voter.hear(2, epoch, Body::Voters { view: VoterView { stamp, voters: voters() } });
        }
        let vote = voter.machine.record().vote.unwrap();
        assert_eq!(vote.view.stamp.epoch, Epoch(stored), "{leaves_out:?}");
    }
}

/// p1 leads epoch 5, elected by p2 in the view of three, and was given these voters.
fn leader_given(leaves_out: Option<Mutation>, target: &BTreeSet<String>) -> Voter {
    let record = settled(None).machine.record();
    let mut voter = Voter::with(leaves_out, target.clone(), Some(&record));
    voter.pass(1500);
    voter.sound();
    voter.yes(2, Question::Sounding, 5, &view(4, voters()));
    voter.yes(2, Question::Claim, 5, &view(4, voters()));
    assert!(voter.machine.phase.leading());
    voter
}

/// p1 leads epoch 5 with p2, both given these voters, or only p1; p4 and p5 have stored its view, and so has p2.
fn leader_that_changes_the_view(leaves_out: Option<Mutation>, agrees: bool) -> Voter {
    let five = first(5);
    let mut voter = leader_given(leaves_out, &five);
    [4, 5].into_iter().for_each(|k| drop(voter.feed(Event::LinkUp(peer(k)))));
    let target = if agrees { fingerprint(&five) } else { fingerprint(&voters()) };
    for from in [4, 5, 2] {
        voter.stores(from, 0, target);
    }
    voter
}

impl Voter {
    /// A follower acknowledges the first round of heartbeats, and stores the view of this version.
    fn stores(&mut self, from: u8, version: u32, target: u64) {
        self.acknowledges(from, ViewStamp { epoch: Epoch(5), version }, target);
    }

    fn acknowledges(&mut self, from: u8, view: ViewStamp, target: u64) {
        let membership = MembershipVersion::default();
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
        [4, 5].into_iter().for_each(|k| voter.stores(k, 1, fingerprint(&first(5))));
        assert_eq!(voter.view().voters.contains("p5"), leaves_out.is_some(), "{leaves_out:?}");
    }
}

fn leader_that_leaves_p2_out(leaves_out: Option<Mutation>) -> (Voter, BTreeSet<String>) {
    let two = ["p1", "p3"].map(str::to_owned).into();
    (leader_given(leaves_out, &two), two)
}

/// p1 leads p2 and p3, and it and p3 were told to leave p2 out; but p3 has no record and recovers: with p2 gone nobody could
/// renew the lease, and p3 would wait for p2's answer for ever.
#[test]
fn nobody_is_removed_while_too_few_of_the_others_can_renew_the_lease() {
    for leaves_out in [None, Some(Mutation::ChangedWithoutSupport)] {
        let (mut voter, two) = leader_that_leaves_p2_out(leaves_out);
        let target = fingerprint(&two);
        voter.acknowledges(3, ViewStamp::default(), target);
        voter.stores(2, 0, fingerprint(&voters()));
        assert_eq!(voter.view().voters == two, leaves_out.is_some(), "{leaves_out:?}");
        voter.stores(3, 0, target);
        assert_eq!(voter.view().voters, two);
    }
}

/// The same; p3 has stored the view, but it is not connected any more, or only another life of it.
#[test]
fn only_connected_voters_count_for_a_removal() {
    let (mut voter, two) = leader_that_leaves_p2_out(None);
    let target = fingerprint(&two);
    voter.stores(3, 0, target);
    voter.feed(Event::LinkDown { id: peer(3).id, incarnation: peer(3).incarnation });
    voter.stores(2, 0, target);
    assert_eq!(voter.view().voters, voters());
    voter.feed(Event::LinkUp(Peer { incarnation: Incarnation(9), ..peer(3) }));
    voter.stores(2, 0, target);
    assert_eq!(voter.view().voters, voters());
    voter.stores(3, 0, target);
    assert_eq!(voter.view().voters, two);
}

/// p1 stores a view without p2 that may not be committed; p3, restarted, still has the one with p2. p2 may lead by a grant that
/// p3 has forgotten.
#[test]
fn with_conditional_grants_everybody_of_every_view_is_needed() {
    for (leaves_out, claims) in [(None, false), (Some(Mutation::EverybodyOfOneView), true)] {
        let mut voter = settled(leaves_out);
        let without = ["p1", "p3"].map(str::to_owned).into();
        voter.hear(3, 5, Body::Voters { view: view(5, without) });
        voter.feed(Event::Timer(Timer::Margin));
        let sounded = asked(&voter.feed(Event::Timer(Timer::Announcement)));
        let &[(Question::Sounding, epoch)] = sounded.as_slice() else { panic!("{sounded:?}") };
        let vote = voter.vote(Question::Sounding, epoch, Verdict::Conditional, &view(4, voters()));
        let sent = voter.hear(3, 4, vote);
        assert_eq!(!asked(&sent).is_empty(), claims, "{leaves_out:?}");
    }
}

/// p4 is a voter of its own, later view only. A cautious p1 may have promised somebody that the later view does not name.
#[test]
fn a_cautious_voter_goes_by_its_own_view_too() {
    let claim = || {
        let mut claim = contest(Question::Claim, 6, 4, 1500);
        if let Body::Contest { view: claimants, .. } = &mut claim {
            *claimants = view(5, first(4));
        }
        claim
    };
    let refused = Verdict::No(Refusal::NoVoter);
    for (leaves_out, verdict) in [(None, refused), (Some(Mutation::CautiousByAnyView), Verdict::Conditional)]
    {
        let mut voter = Voter::new(leaves_out);
        voter.feed(Event::LinkUp(peer(4)));
        assert_eq!(voter.verdict(4, 6, claim()), Some(verdict), "{leaves_out:?}");
        assert_eq!(voter.view(), view(4, voters()), "{leaves_out:?}: a conditional grant stores nothing");
    }
    let mut voter = settled(None);
    voter.feed(Event::LinkUp(peer(4)));
    assert_eq!(voter.verdict(4, 6, claim()), Some(Verdict::Yes));
    assert_eq!(voter.view(), view(5, first(4)));
}
