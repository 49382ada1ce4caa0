//! The voter: clauses 1 to 9, and the promise to one incarnation of clause 17.

use super::*;

#[test]
fn a_promise_lasts_for_the_lease_of_its_vote() {
    for (leaves_out, second) in [
        (None, promised(500)),
        (Some(Mutation::PromiseShort), GRANTED),
        (Some(Mutation::PromiseIgnored), GRANTED),
    ] {
        let mut voter = Voter::settled(leaves_out);
        assert_eq!(voter.vote_for(2, 5), Some(GRANTED), "{leaves_out:?}");
        voter.pass(1000);
        assert_eq!(voter.vote_for(3, 6), Some(second), "{leaves_out:?}");
    }
    let mut voter = Voter::settled(None);
    voter.vote_for(2, 5);
    voter.pass(1499);
    assert_eq!(voter.vote_for(3, 6), Some(promised(1)));
    voter.pass(1);
    assert_eq!(voter.vote_for(3, 6), Some(GRANTED));
}

/// The epoch that is durable when a vote or an acknowledgement leaves; none: nothing was made durable before
/// it.
fn durable_before(sent: &[Action], answer: impl Fn(&Body) -> bool) -> Option<u64> {
    let leaves =
        sent.iter().position(|action| send(action).is_some_and(|(_, message)| answer(&message.body)));
    sent[..leaves.unwrap()].iter().find_map(|action| match action {
        Action::Persist(record) => Some(record.epoch.0),
        _ => None,
    })
}

#[test]
fn a_vote_is_durable_before_its_answer_leaves() {
    let vote = |body: &Body| matches!(body, Body::Vote { outcome: GRANTED, .. });
    for (leaves_out, durable) in [(None, Some(5)), (Some(Mutation::VoteNotDurable), None)] {
        let mut voter = Voter::settled(leaves_out);
        let sent = voter.hear(2, 4, Body::VoteRequest { request: request(2, Stage::Vote, 5) });
        assert_eq!(durable_before(&sent, vote), durable, "{leaves_out:?}");
    }
}

#[test]
fn a_candidates_own_vote_is_durable_before_its_request_leaves() {
    let request =
        |body: &Body| matches!(body, Body::VoteRequest { request } if request.ballot.stage == Stage::Vote);
    for (leaves_out, durable) in [(None, Some(5)), (Some(Mutation::VoteNotDurable), None)] {
        let sent = Voter::settled(leaves_out).ask_for_votes();
        assert_eq!(durable_before(&sent, request), durable, "{leaves_out:?}");
    }
}

#[test]
fn an_acknowledgement_leaves_after_the_epoch_of_its_round_is_durable() {
    let mut voter = Voter::settled(None);
    let renew = Body::Renew { sequence: 1, lease_ms: 1500, config: version(4, 0), learnt: Learnt::default() };
    let sent = voter.hear(2, 7, renew);
    assert_eq!(durable_before(&sent, |body| matches!(body, Body::Renewed { promised: true, .. })), Some(7));
}

#[test]
fn a_pre_vote_changes_nothing() {
    let mut voter = Voter::settled(None);
    assert_eq!(voter.pre_vote_for(2, 9), Some(GRANTED));
    assert_eq!(voter.machine.epoch, Epoch(4));
    assert_eq!(voter.vote_for(3, 5), Some(GRANTED), "no promise to p2");
    assert_eq!(voter.vote_for(2, 9), Some(promised(1500)));
    assert_eq!(voter.machine.epoch, Epoch(5), "a refusal changes nothing either");
}

#[test]
fn a_voter_votes_once_in_an_epoch_and_repeats_that_to_the_same_incarnation() {
    for (leaves_out, other) in [(None, denied(Denial::Stale)), (Some(Mutation::EpochVotedTwice), GRANTED)] {
        let mut voter = Voter::settled(leaves_out);
        assert_eq!(voter.vote_for(2, 5), Some(GRANTED));
        assert_eq!(voter.vote_for(2, 5), Some(GRANTED), "a repetition");
        voter.pass(1500);
        assert_eq!(voter.vote_for(3, 5), Some(other), "{leaves_out:?}");
    }
    let mut voter = Voter::settled(None);
    assert_eq!(voter.vote_for(2, 4), Some(denied(Denial::Stale)), "its own epoch is not above its own");
    let former = VoteRequest {
        ballot: Ballot { incarnation: Incarnation(99), ..request(2, Stage::Vote, 5).ballot },
        ..request(2, Stage::Vote, 5)
    };
    assert_eq!(voter.outcome_for(2, former), None, "a request of another incarnation than the connected one");
}

#[test]
fn a_vote_is_not_repeated_in_a_later_epoch() {
    let mut voter = Voter::settled(None);
    voter.vote_for(2, 5);
    voter.pass(1500);
    assert_eq!(voter.vote_for(3, 6), Some(GRANTED));
    voter.pass(1500);
    assert_eq!(voter.vote_for(2, 5), Some(denied(Denial::Stale)));
}

/// The round of the leader that was voted for asks for 200 ms: the vote's promise of 1500 ms goes on.
#[test]
fn a_shorter_promise_to_the_same_process_ends_no_longer_one() {
    for (leaves_out, second) in [(None, promised(1000)), (Some(Mutation::PromiseShortened), GRANTED)] {
        let mut voter = Voter::settled(leaves_out);
        voter.vote_for(2, 5);
        assert_eq!(voter.acknowledges(2, 5, 200, version(4, 0)), Some(true));
        voter.pass(500);
        assert_eq!(voter.vote_for(3, 6), Some(second), "{leaves_out:?}");
    }
}

#[test]
fn a_request_or_a_round_for_more_than_the_configurations_lease_is_refused() {
    for (leaves_out, vote, round) in
        [(None, None, Some(false)), (Some(Mutation::LongerLeaseGranted), Some(GRANTED), Some(true))]
    {
        let mut longer = request(2, Stage::Vote, 5);
        longer.ballot.lease_ms = 1501;
        assert_eq!(Voter::settled(leaves_out).outcome_for(2, longer), vote, "{leaves_out:?}");
        let mut voter = Voter::settled(leaves_out);
        assert_eq!(voter.acknowledges(2, 5, 1501, version(4, 0)), round, "{leaves_out:?}");
        assert_eq!(voter.acknowledges(2, 5, 1500, version(4, 0)), Some(true));
    }
}

/// A follower of epoch 5 hears a round of the leader of epoch 4, which was slower than the election.
#[test]
fn a_round_of_a_lower_epoch_is_not_acknowledged() {
    for (leaves_out, answer) in [(None, None), (Some(Mutation::StaleRoundAcknowledged), Some(true))] {
        let mut voter = Voter::settled(leaves_out);
        voter.vote_for(2, 5);
        assert_eq!(voter.acknowledges(3, 4, 1500, version(4, 0)), answer, "{leaves_out:?}");
    }
}

#[test]
fn an_acknowledgement_stores_the_epoch_of_its_round() {
    let mut voter = Voter::settled(None);
    assert_eq!(voter.acknowledges(2, 7, 1500, version(4, 0)), Some(true));
    assert_eq!(voter.machine.record().epoch, Epoch(7));
    voter.pass(1500);
    assert_eq!(voter.vote_for(3, 7), Some(denied(Denial::Stale)), "two leaders of epoch 7");
}

#[test]
fn a_request_that_names_an_older_configuration_gets_no_vote() {
    for (leaves_out, vote) in
        [(None, denied(Denial::OlderConfig)), (Some(Mutation::OlderConfigVotedFor), GRANTED)]
    {
        let mut voter = Voter::settled(leaves_out);
        voter.tells_config(2, config(6, &[1, 2, 3, 4, 5]));
        voter.resigns(2, 6);
        assert_eq!(voter.vote_for(3, 7), Some(vote), "{leaves_out:?}");
    }
}

#[test]
fn a_vote_stores_the_later_configuration_of_its_request() {
    for (leaves_out, stored) in [(None, 6), (Some(Mutation::ConfigOfVoteNotStored), 4)] {
        let mut voter = Voter::settled(leaves_out);
        let later = VoteRequest { config: config(6, &[1, 2, 3, 4]), ..request(2, Stage::Vote, 7) };
        assert_eq!(voter.outcome_for(2, later), Some(GRANTED));
        assert_eq!(voter.config().version, version(stored, 0), "{leaves_out:?}");
    }
}

#[test]
fn an_acknowledged_round_names_the_very_configuration_that_the_voter_stores() {
    for (leaves_out, acknowledged) in [(None, false), (Some(Mutation::OlderConfigAcknowledged), true)] {
        for (stored, named) in [(6, 4), (4, 6)] {
            let mut voter = Voter::settled(leaves_out);
            voter.tells_config(2, config(stored, &[1, 2, 3]));
            let answer = voter.acknowledges(2, 7, 1500, version(named, 0));
            assert_eq!(answer, Some(acknowledged), "{leaves_out:?}: {stored} {named}");
        }
    }
}

#[test]
fn a_restarted_voter_votes_for_no_process_for_one_bound() {
    let grace = denied(Denial::Grace { for_ms: 1500 });
    for (leaves_out, vote) in [(None, grace), (Some(Mutation::NoGrace), GRANTED)] {
        assert_eq!(Voter::new(leaves_out).vote_for(3, 5), Some(vote), "{leaves_out:?}");
    }
    let mut voter = Voter::new(None);
    voter.pass(1499);
    assert_eq!(voter.vote_for(3, 5), Some(denied(Denial::Grace { for_ms: 1 })));
    voter.pass(1);
    assert_eq!(voter.vote_for(3, 5), Some(GRANTED));
}

/// A former incarnation may have promised for as long as the bound, whatever rounds ask for now.
#[test]
fn a_restarted_voter_with_adaptive_leases_waits_for_one_bound_too() {
    let grace = denied(Denial::Grace { for_ms: 1250 });
    for (leaves_out, vote) in [(None, grace), (Some(Mutation::GraceOfRound), GRANTED)] {
        let settings = Settings { lease_min: Some(Duration::from_millis(250)), ..given(&[1, 2, 3], 1500) };
        let record = record(1, config(4, &[1, 2, 3]));
        let mut voter = Voter::start(peer(1), settings, Some(&record), &[2, 3], leaves_out);
        voter.pass(250);
        assert_eq!(voter.vote_for(3, 5), Some(vote), "{leaves_out:?}");
    }
}

#[test]
fn the_bound_and_not_the_lease_is_waited_for() {
    let lowered = VoterConfig { lease_ms: 500, bound_ms: 4000, ..config(4, &[1, 2, 3]) };
    let mut voter = Voter::start(peer(1), given(&[1, 2, 3], 1500), Some(&record(1, lowered)), &[3], None);
    voter.pass(3999);
    let mut short = request(3, Stage::Vote, 5);
    short.ballot.lease_ms = 500;
    short.config = voter.config();
    assert_eq!(voter.outcome_for(3, short.clone()), Some(denied(Denial::Grace { for_ms: 1 })));
    voter.pass(1);
    assert_eq!(voter.outcome_for(3, short), Some(GRANTED));
}

#[test]
fn a_restarted_voter_does_not_vote_for_itself_either() {
    for (leaves_out, stands) in [(None, false), (Some(Mutation::OwnVoteInGrace), true)] {
        let mut voter = Voter::new(leaves_out);
        voter.ask_for_votes_if_possible();
        assert_eq!(voter.machine.epoch == Epoch(5), stands, "{leaves_out:?}");
    }
}

impl Voter {
    /// Its own clock says that it is time to stand, and p2 would vote for it.
    fn ask_for_votes_if_possible(&mut self) {
        self.start_campaign();
        if self.asked.is_some() {
            self.answered(2, GRANTED);
        }
    }
}

/// p1 has promised p3, which has not won: it stands for no election that its own vote would count in.
#[test]
fn a_candidates_own_promise_to_another_binds_its_own_vote() {
    for (leaves_out, epoch) in [(None, 5), (Some(Mutation::OwnVoteExempt), 6)] {
        let mut voter = Voter::settled(leaves_out);
        assert_eq!(voter.vote_for(3, 5), Some(GRANTED));
        voter.timer(Timer::Announcement);
        voter.timer(Timer::Retry);
        assert_eq!(voter.asked.is_some(), leaves_out.is_some(), "{leaves_out:?}");
        if voter.asked.is_some() {
            voter.answered(2, GRANTED);
        }
        assert_eq!(voter.machine.epoch, Epoch(epoch), "{leaves_out:?}");
    }
}

/// A leader's round, 500 ms after the restart, asks for 200 ms only. The 1000 ms that were left become part
/// of the promise.
#[test]
fn an_acknowledged_round_turns_the_rest_of_the_restart_grace_into_a_promise() {
    for (leaves_out, second) in [(None, promised(800)), (Some(Mutation::GraceEndedByRound), GRANTED)] {
        let mut voter = Voter::new(leaves_out);
        voter.pass(500);
        assert_eq!(voter.acknowledges(2, 5, 200, version(4, 0)), Some(true));
        voter.pass(200);
        assert_eq!(voter.vote_for(3, 6), Some(second), "{leaves_out:?}");
    }
}

#[test]
fn a_round_of_a_lower_epoch_does_not_end_the_restart_grace() {
    let grace = denied(Denial::Grace { for_ms: 1000 });
    for (leaves_out, vote) in [(None, grace), (Some(Mutation::GraceEndedByStaleRound), GRANTED)] {
        let mut voter = Voter::new(leaves_out);
        voter.pass(500);
        assert_eq!(voter.acknowledges(2, 3, 1500, version(4, 0)), None);
        assert_eq!(voter.vote_for(3, 5), Some(vote), "{leaves_out:?}");
    }
}

/// The voter answers a round without a promise, since the round names another configuration.
#[test]
fn a_round_that_is_not_acknowledged_does_not_end_the_restart_grace() {
    let mut voter = Voter::new(None);
    voter.pass(500);
    assert_eq!(voter.acknowledges(2, 5, 1500, version(3, 0)), Some(false));
    assert_eq!(voter.vote_for(3, 6), Some(denied(Denial::Grace { for_ms: 1000 })));
}

#[test]
fn a_resignation_frees_the_promise_to_its_sender_and_no_other() {
    for (leaves_out, second) in [(None, promised(1500)), (Some(Mutation::ResignFreesAny), GRANTED)] {
        let mut voter = Voter::settled(leaves_out);
        voter.vote_for(2, 5);
        voter.resigns(3, 5);
        assert_eq!(voter.vote_for(3, 6), Some(second), "{leaves_out:?}");
    }
    let mut voter = Voter::settled(None);
    voter.vote_for(2, 5);
    voter.resigns(2, 5);
    assert_eq!(voter.vote_for(3, 6), Some(GRANTED));
}

#[test]
fn a_resignation_does_not_end_the_restart_grace() {
    let grace = denied(Denial::Grace { for_ms: 1500 });
    for (leaves_out, vote) in [(None, grace), (Some(Mutation::ResignFreesAny), GRANTED)] {
        let mut voter = Voter::new(leaves_out);
        voter.resigns(2, 5);
        assert_eq!(voter.vote_for(3, 6), Some(vote), "{leaves_out:?}");
    }
    let mut voter = Voter::new(None);
    assert_eq!(voter.acknowledges(2, 5, 1500, version(4, 0)), Some(true));
    voter.resigns(2, 5);
    assert_eq!(voter.vote_for(3, 6), Some(GRANTED), "the grace was part of the promise by then");
}

/// p2 resigned epoch 5, and was elected again in epoch 6 before p1 heard of that.
#[test]
fn a_late_resignation_frees_no_later_promise_of_its_sender() {
    for (leaves_out, second) in [(None, promised(1500)), (Some(Mutation::LateResignFrees), GRANTED)] {
        let mut voter = Voter::settled(leaves_out);
        assert_eq!(voter.vote_for(2, 6), Some(GRANTED));
        voter.resigns(2, 5);
        assert_eq!(voter.vote_for(3, 7), Some(second), "{leaves_out:?}");
    }
}

#[test]
fn a_promise_to_one_incarnation_binds_its_successor_like_any_other_process() {
    for (leaves_out, vote) in [(None, promised(1500)), (Some(Mutation::IncarnationIgnored), GRANTED)] {
        let mut voter = Voter::settled(leaves_out);
        voter.vote_for(2, 5);
        voter.feed(Event::LinkUp(Peer { incarnation: Incarnation(22), ..peer(2) }));
        let mut restarted = request(2, Stage::Vote, 6);
        restarted.ballot.incarnation = Incarnation(22);
        assert_eq!(voter.outcome_for(2, restarted.clone()), Some(vote), "{leaves_out:?}");
        voter.pass(1500);
        restarted.ballot.epoch = Epoch(7);
        assert_eq!(voter.outcome_for(2, restarted), Some(GRANTED));
    }
}

/// A refused dial names an address. It does not say which incarnation was there: the next one may be on its
/// way.
#[test]
fn under_release_a_crash_frees_a_promise_and_a_refused_dial_does_not() {
    let Peer { id, incarnation, address, .. } = peer(2);
    for (crash_evidence, event, vote) in [
        (CrashEvidence::Release, Event::Refused(address), promised(1500)),
        (CrashEvidence::Release, Event::Crashed { id, incarnation: Incarnation(1) }, promised(1500)),
        (CrashEvidence::Release, Event::Crashed { id, incarnation }, GRANTED),
        (CrashEvidence::Suspect, Event::Crashed { id, incarnation }, promised(1500)),
    ] {
        let settings = Settings { crash_evidence, ..given(&[1, 2, 3], 1500) };
        let record = record(1, config(4, &[1, 2, 3]));
        let mut voter = Voter::start(peer(1), settings, Some(&record), &[2, 3], None);
        voter.pass(1500);
        assert_eq!(voter.vote_for(2, 5), Some(GRANTED));
        voter.feed(Event::LinkDown { id, incarnation });
        voter.feed(event.clone());
        assert_eq!(voter.vote_for(3, 6), Some(vote), "{event:?}");
    }
}

/// A message whose epoch is far ahead of all that was seen is damaged: it must not use up the numbers for
/// good.
#[test]
fn an_implausible_epoch_within_a_message_is_ignored() {
    let far = Epoch::ALWAYS_PLAUSIBLE + 5;
    let mut voter = Voter::settled(None);
    assert_eq!(voter.vote_for(2, far), None);
    voter.hear(2, 4, Body::Configuration { config: config(far, &[2, 3]) });
    assert_eq!(voter.config(), config(4, &[1, 2, 3]));
    let (incarnation, state) = (Incarnation(1), RecoveredState::Founded(config(far, &[1, 2, 3])));
    voter.hear(2, 4, Body::Recovered { round: 1, incarnation, state, flags: flags(&[1], 1500) });
    voter.start_campaign();
    let ballot = voter.asked.as_ref().unwrap().ballot;
    let own = Some(config(far, &[1, 2, 3]));
    voter.hear(2, 4, Body::Vote { ballot, outcome: GRANTED, config: own });
    assert_eq!(voter.config(), config(4, &[1, 2, 3]));
    let named = VoteRequest { config: config(far, &[1, 2, 3]), ..request(2, Stage::Vote, 5) };
    assert_eq!(voter.outcome_for(2, named), None);
    assert_eq!(voter.vote_for(2, 5), Some(GRANTED));
}
