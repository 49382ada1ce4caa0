//! What the application's health does to a process: clause 30, and how a leader hands over.

use super::*;
use crate::election::core::Phase;
use crate::election::{ListWanted, Operation, Sign, WhenAllSick};

const SICK: Event = Event::Application(Sign::Probed { healthy: false });
const HEALTHY: Event = Event::Application(Sign::Probed { healthy: true });

fn proposed(actions: &[Action]) -> Option<ProcessId> {
    let proposal =
        |(to, message): (ProcessId, &Message)| (message.body == Body::ProposeTransfer).then_some(to);
    actions.iter().filter_map(send).find_map(proposal)
}

fn resigns_to(actions: &[Action]) -> Option<Option<ProcessId>> {
    bodies(actions).find_map(|body| match body {
        Body::Resign { successor, leaving: false } => Some(*successor),
        _ => None,
    })
}

#[test]
fn the_log_says_that_no_live_member_may_lead() {
    let said = |actions: &[Action]| {
        actions.iter().filter(|a| matches!(a, Action::Notification(Notification::NoCandidate))).count()
    };
    let mut voter = Voter::settled(None);
    voter.feed(SICK);
    assert_eq!(said(&voter.start_campaign()), 0, "others may");
    let mut first = Voter::start(peer(1), given(&[1, 2, 3], 1500), None, &[], None);
    assert_eq!(said(&first.start_campaign()), 0, "it has met no other at a first start");
    for k in [2, 3] {
        let message = Message { epoch: Epoch(4), priority: Priority(0), body: Body::ProposeTransfer };
        voter.feed(Event::Received { from: peer(k).id, message });
    }
    assert_eq!(said(&voter.timer(Timer::Coordinator)), 1);
    voter.feed(Event::LinkUp(peer(4)));
    assert_eq!(said(&voter.timer(Timer::Coordinator)), 1, "p4 may, and no configuration names it");
    voter.feed(HEALTHY);
    assert_eq!(said(&voter.timer(Timer::Coordinator)), 0);
}

/// The leader of epoch 5 names p1, whose application has ended meanwhile. p1 says so to the others.
#[test]
fn a_successor_that_is_no_candidate_says_so_to_the_others() {
    for sick in [false, true] {
        let mut voter = Voter::settled(None);
        assert_eq!(voter.acknowledges(2, 5, 1500, version(4, 0)), Some(true));
        if sick {
            voter.feed(SICK);
        }
        let sent = voter.hear(2, 5, Body::Resign { successor: Some(peer(1).id), leaving: true });
        let told: Vec<_> = sent.iter().filter_map(send).collect();
        let nothing = Body::LeaderInfo { leader: None, entries: [].into() };
        let says = |(to, message): &&(ProcessId, &Message)| *to == peer(3).id && message.body == nothing;
        let priorities: Vec<_> = told.iter().filter(says).map(|(_, message)| message.priority).collect();
        assert_eq!(priorities, if sick { vec![Priority::NEVER] } else { vec![] });
        assert_eq!(requests(&sent).is_empty(), sick);
    }
}

/// p1 waits for p3, which p2 has named. p3 says that it knows no leader, in which epoch, and what it counts
/// for.
#[test]
fn a_process_does_not_wait_for_a_successor_that_is_no_candidate() {
    let rows = [(5, Priority::NEVER, false), (6, Priority::NEVER, false), (4, Priority::NEVER, true)];
    for (epoch, priority, waits) in rows.into_iter().chain([(5, Priority(100), true)]) {
        let mut voter = Voter::settled(None);
        assert_eq!(voter.acknowledges(2, 5, 1500, version(4, 0)), Some(true));
        voter.hear(2, 5, Body::Resign { successor: Some(peer(3).id), leaving: false });
        assert_eq!(voter.machine.phase, Phase::Waiting(peer(3).id));
        let body = Body::LeaderInfo { leader: None, entries: [].into() };
        let message = Message { epoch: Epoch(epoch), priority, body };
        voter.feed(Event::Received { from: peer(3).id, message });
        assert_eq!(voter.machine.phase == Phase::Waiting(peer(3).id), waits, "{epoch} {priority:?}");
    }
}

/// p3 counts for nothing here, and the leader has named it: it may have been uncordoned, so it is asked.
#[test]
fn a_successor_that_seems_to_be_no_candidate_is_asked() {
    for (known, asks) in [(Priority(100), false), (Priority::NEVER, true)] {
        let mut voter = Voter::settled(None);
        assert_eq!(voter.acknowledges(2, 5, 1500, version(4, 0)), Some(true));
        let told =
            Message { epoch: Epoch(5), priority: known, body: Body::LeaderQuery { list: ListWanted::Whole } };
        voter.feed(Event::Received { from: peer(3).id, message: told });
        let sent = voter.hear(2, 5, Body::Resign { successor: Some(peer(3).id), leaving: false });
        assert_eq!(voter.machine.phase, Phase::Waiting(peer(3).id));
        assert_eq!(bodies(&sent).any(|body| *body == Body::LeaderQuery { list: ListWanted::Whole }), asks);
    }
}

#[test]
fn each_change_of_the_complaints_is_a_line() {
    let mut voter = Voter::settled(None);
    let mut said = |sign| -> Option<Vec<&'static str>> {
        voter.feed(Event::Application(sign)).iter().find_map(|action| match action {
            Action::Notification(Notification::Application { complaints }) => Some(complaints.names()),
            _ => None,
        })
    };
    assert_eq!(said(Sign::Probed { healthy: true }), None);
    assert_eq!(said(Sign::LifelineOpened), None);
    assert_eq!(said(Sign::LifelineEnded), Some(vec!["lifeline"]));
    assert_eq!(said(Sign::Probed { healthy: false }), Some(vec!["probe", "lifeline"]));
    assert_eq!(said(Sign::Probed { healthy: false }), None);
    assert_eq!(said(Sign::LifelineOpened), Some(vec!["probe"]));
    assert_eq!(said(Sign::Probed { healthy: true }), Some(vec![]));
}

#[test]
fn a_process_whose_application_is_not_healthy_votes_and_does_not_stand() {
    for (leaves_out, stands) in [(None, false), (Some(Mutation::HealthIgnored), true)] {
        let mut voter = Voter::settled(leaves_out);
        voter.feed(SICK);
        assert!(voter.machine.status().candidacy.complaints.any());
        assert_eq!(!requests(&voter.start_campaign()).is_empty(), stands, "{leaves_out:?}");
        if stands {
            continue;
        }
        assert_eq!(voter.vote_for(2, 5), Some(GRANTED), "it votes all the same");
        assert!(voter.declines_transfer(2, 5));
        voter.feed(HEALTHY);
        assert!(!voter.machine.status().candidacy.complaints.any());
        assert!(voter.stands_after(2, 5), "it stands again");
    }
}

/// It is no candidate before the first good answer, and each message says so.
#[test]
fn a_process_with_a_probe_counts_for_nothing_before_it_is_healthy() {
    let settings = Settings { app_is_probed: true, ..given(&[1, 2, 3], 1500) };
    let record = record(1, config(4, &[1, 2, 3]));
    let mut voter = Voter::start(peer(1), settings, Some(&record), &[2, 3], None);
    assert_eq!(voter.machine.me.priority, Priority::NEVER);
    voter.wait_for_grace();
    assert!(requests(&voter.start_campaign()).is_empty());
    voter.feed(HEALTHY);
    assert_eq!(voter.machine.me.priority, peer(1).priority);
}

#[test]
fn a_leader_whose_application_turns_sick_hands_over_and_stands_aside() {
    let mut voter = Voter::leader(None);
    assert_eq!(proposed(&voter.feed(SICK)), Some(peer(3).id));
    assert!(voter.leads(), "it leads until another can");
    assert_eq!(voter.machine.me.priority, peer(1).priority, "a leader keeps its rank");
    let sent = voter.hear(3, 5, Body::TransferReady { majority: true });
    assert_eq!(resigns_to(&sent), Some(Some(peer(3).id)));
    assert_eq!(voter.machine.me.priority, Priority::NEVER);
    voter.hear(3, 6, Body::Coordinator { elected_at_ms: 0 });
    voter.timer(Timer::Aside);
    assert_eq!(voter.machine.me.priority, Priority::NEVER, "it is not healthy yet");
    voter.feed(HEALTHY);
    assert_eq!(voter.machine.me.priority, peer(1).priority);
}

#[test]
fn it_asks_again_with_each_heartbeat_and_an_operator_s_word_changes_nothing_of_it() {
    let mut voter = Voter::leader(None);
    voter.feed(SICK);
    voter.hear(3, 5, Body::TransferReady { majority: false });
    voter.hear(2, 5, Body::TransferReady { majority: false });
    assert!(voter.leads(), "neither could win");
    let uncordon = Operation::Uncordon;
    voter.feed(Event::Operation { number: 7, operation: uncordon, within: Duration::from_secs(1) });
    assert!(voter.machine.status().candidacy.complaints.any());
    voter.pass(250);
    assert_eq!(proposed(&voter.timer(Timer::Heartbeat)), Some(peer(3).id));
    voter.feed(HEALTHY);
    voter.hear(3, 5, Body::TransferReady { majority: false });
    voter.hear(2, 5, Body::TransferReady { majority: false });
    voter.pass(250);
    assert_eq!(proposed(&voter.timer(Timer::Heartbeat)), None, "it is healthy again");
}

/// p2 and p3 count for priority 0: their applications are not healthy either.
#[test]
fn where_all_are_sick_the_leader_stays_or_none_leads_as_the_operator_wants() {
    for (when_all_sick, stays) in [(WhenAllSick::Keep, true), (WhenAllSick::None, false)] {
        let mut voter = Voter::leader(None);
        voter.machine.settings.when_all_sick = when_all_sick;
        let members = [2, 3].map(|k| peer(k).id);
        for id in members {
            voter.machine.members.get_mut(id).unwrap().peer.priority = Priority::NEVER;
        }
        let sent = voter.feed(SICK);
        assert_eq!(
            (voter.leads(), resigns_to(&sent)),
            (stays, (!stays).then_some(None)),
            "{when_all_sick:?}"
        );
        if stays {
            voter.machine.members.get_mut(members[1]).unwrap().peer.priority = Priority::DEFAULT;
            voter.pass(250);
            assert_eq!(proposed(&voter.timer(Timer::Heartbeat)), Some(members[1]), "p3 is healthy again");
        } else {
            assert_eq!(voter.machine.me.priority, Priority::NEVER);
        }
    }
}

#[test]
fn a_leader_that_loses_its_lease_counts_for_nothing_if_it_is_not_healthy() {
    let mut voter = Voter::leader(None);
    for id in [2, 3].map(|k| peer(k).id) {
        voter.machine.members.get_mut(id).unwrap().peer.priority = Priority::NEVER;
    }
    voter.feed(SICK);
    assert!(voter.leads());
    voter.pass(1500);
    voter.timer(Timer::Lease);
    assert!(!voter.leads() && !voter.machine.phase.leading());
    assert_eq!(voter.machine.me.priority, Priority::NEVER);
    assert!(!matches!(voter.machine.phase, Phase::Leading(_)));
}

/// A hold is a promise to the application's clients too: it is waited for.
#[test]
fn holds_are_waited_for_when_the_application_turns_sick() {
    let mut voter = Voter::leader(None);
    voter.acknowledged(2, voter.round, version(5, 0), flags(&[1, 2, 3], 1500));
    let take = crate::election::HoldRequest::Take { lasts: Duration::from_millis(500) };
    voter.feed(Event::Hold(take));
    voter.feed(SICK);
    let sent = voter.hear(3, 5, Body::TransferReady { majority: true });
    assert_eq!(resigns_to(&sent), None);
    assert_eq!(voter.machine.status().role, crate::election::Role::Resigning);
}

#[test]
fn an_operator_s_word_comes_before_the_application_s() {
    let mut voter = Voter::leader(None);
    assert_eq!(proposed(&voter.feed(SICK)), Some(peer(3).id));
    let cordon = Event::Operation { number: 7, operation: Operation::Cordon, within: Duration::from_secs(9) };
    assert_eq!(proposed(&voter.feed(cordon)), Some(peer(3).id), "it is asked for the operator");
    let sent = voter.hear(3, 5, Body::TransferReady { majority: true });
    assert_eq!(resigns_to(&sent), Some(Some(peer(3).id)));
    let sent = voter.hear(3, 6, Body::Coordinator { elected_at_ms: 0 });
    let answer = |action: &Action| matches!(action, Action::Answer { number: 7, outcome: Ok(_) });
    assert_eq!(sent.iter().filter(|action| answer(action)).count(), 1);
    voter.feed(HEALTHY);
    assert!(voter.machine.status().candidacy.cordoned);
    assert_eq!(voter.machine.me.priority, Priority::NEVER);
}

/// The process resigns already, for its application, and waits for holds.
#[test]
fn a_leader_that_waits_for_holds_is_cordoned_once_it_has_resigned() {
    let mut voter = Voter::leader(None);
    voter.acknowledged(2, voter.round, version(5, 0), flags(&[1, 2, 3], 1500));
    voter.feed(Event::Hold(crate::election::HoldRequest::Take { lasts: Duration::from_millis(500) }));
    voter.feed(SICK);
    voter.hear(3, 5, Body::TransferReady { majority: true });
    assert_eq!(voter.machine.status().role, crate::election::Role::Resigning);
    let cordon = Event::Operation { number: 7, operation: Operation::Cordon, within: Duration::from_secs(9) };
    let sent = voter.feed(cordon);
    assert!(!sent.iter().any(|action| matches!(action, Action::Answer { .. })), "{sent:?}");
    voter.feed(Event::Hold(crate::election::HoldRequest::End { hold: 1 }));
    let sent = voter.hear(3, 5, Body::TransferReady { majority: true });
    assert_eq!(resigns_to(&sent), Some(Some(peer(3).id)));
    assert!(voter.machine.status().candidacy.cordoned);
}

/// All are sick, and the leader stays: it gives its leadership up for no voter's higher epoch either.
#[test]
fn a_leader_for_want_of_another_stands_for_no_higher_epoch() {
    for (healthy, stands) in [(false, false), (true, true)] {
        let mut voter = Voter::leader(None);
        if !healthy {
            for id in [2, 3].map(|k| peer(k).id) {
                voter.machine.members.get_mut(id).unwrap().peer.priority = Priority::NEVER;
            }
            voter.feed(SICK);
        }
        voter.pass(1000);
        let message = |epoch| Message {
            epoch: Epoch(epoch),
            priority: peer(2).priority,
            body: Body::LeaderQuery { list: ListWanted::Whole },
        };
        let from = peer(2).id;
        let mut sick = message(8);
        sick.priority = if healthy { peer(2).priority } else { Priority::NEVER };
        let sent = voter.feed(Event::Received { from, message: sick });
        assert_eq!(!requests(&sent).is_empty(), stands);
        assert!(voter.leads());
    }
}
