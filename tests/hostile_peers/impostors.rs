//! F1 and F7: a stranger under the identity, or at the address, of a live member.

use crate::client::{Claim, Link, Trap};
use crate::rows::{BOTH, in_each};
use crate::siege::{Attacker, LEASE, Level, Siege, Stop};
use crate::wire::{Confirm, Confirmed, Flags, Frame, Message, Outcome, Peer, confirm};
use rustix::process::Signal;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Longer than a lease, so that what only the attack keeps alive is seen.
const LASTING: Duration = Duration::from_millis(1500);

/// What stands for `--voters` in messages: FNV-1a over the sorted names, each followed by a zero.
pub fn flags(siege: &Siege) -> Flags {
    let mut names: Vec<&str> = siege.victims.iter().map(|peer| peer.name.as_str()).collect();
    names.sort_unstable();
    let bytes = names.iter().flat_map(|name| name.bytes().chain([0]));
    let voters = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (voters, LEASE.as_millis() as u32)
}

/// Says yes to all that a voter can be asked: it acknowledges each round, and votes for each candidate. A
/// leader that it serves needs no other voter, and neither does a candidate.
pub fn serve(link: &mut Link, flags: Flags, stop: &Stop) {
    while !stop.is_over() && link.is_open() {
        let Some(Frame::Message { epoch, message: Some(message) }) = link.hear() else { continue };
        let membership = (0, 0);
        match message {
            Message::Heartbeat { sequence, .. } => {
                link.say(epoch, &Message::HeartbeatAck { sequence, membership });
            }
            Message::Renew { sequence, config, .. } => {
                let promised = true;
                link.say(
                    epoch,
                    &Message::Renewed { sequence, membership, promised, firm: promised, config, flags },
                );
            }
            Message::VoteRequest { ballot, .. } => {
                let epoch = if ballot.vote { ballot.epoch } else { epoch };
                link.say(epoch, &Message::Vote { ballot, outcome: Outcome::Granted, config: None });
            }
            _ => {}
        }
    }
}

/// An impostor of each member at each other member. Those of followers say yes to everything. Those of the
/// leader resign in its name first, in favour of one follower.
fn second_links(siege: &Siege, claim: impl Fn(usize) -> Claim) -> Vec<Attacker<'static>> {
    let (leader, epoch, flags) = (siege.before.leader, siege.before.epoch, flags(siege));
    let favourite = siege.victims[siege.followers()[0]].id;
    let places = 0..siege.real.n();
    let pairs = places.clone().flat_map(|at| places.clone().map(move |poses| (at, poses)));
    let attackers = pairs.filter(|(at, poses)| at != poses).map(|(at, poses)| {
        let (claim, to) = (claim(poses), siege.address(at));
        Box::new(move |stop: &Stop| {
            let Ok(mut link) = claim.link(to) else { return };
            if poses == leader {
                link.say(epoch, &Message::Resign { successor: Some(favourite), leaving: false });
            }
            serve(&mut link, flags, stop);
        }) as Attacker
    });
    attackers.collect()
}

// red before: F1
#[test]
fn a_second_link_under_a_live_members_identity_and_address_counts_for_nothing() {
    in_each(BOTH, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let attackers = second_links(&siege, |place| siege.impostor(place));
        siege.attack(LASTING, attackers);
        siege.undisturbed();
        siege.lift();
    });
}

/// An impostor of a member at an address of the stranger's own. It confirms there what it is asked.
fn at_home(siege: &Siege, place: usize) -> Claim {
    let (stranger, impostor) = (siege.stranger(66), siege.impostor(place));
    Claim { peer: Peer { address: stranger.peer.address, ..impostor.peer }, ..stranger }
}

// red before: F1
#[test]
fn a_second_link_under_a_live_members_identity_and_another_address_counts_for_nothing() {
    in_each(BOTH, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let attackers = second_links(&siege, |place| at_home(&siege, place));
        siege.attack(LASTING, attackers);
        siege.undisturbed();
        siege.lift();
    });
}

/// The leader answers late, again and again, though well within its lease. An impostor of it has an address
/// of its own, and is there at once.
// red before: F1
#[test]
fn a_member_that_is_slow_to_confirm_keeps_its_identity() {
    in_each(BOTH, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let (leader, epoch) = (siege.before.leader, siege.before.epoch);
        let claim = at_home(&siege, leader);
        let attackers = siege.followers().into_iter().map(|place| {
            let (claim, to) = (claim.clone(), siege.address(place));
            Box::new(move |_: &Stop| {
                let Ok(mut link) = claim.link(to) else { return };
                link.say(epoch, &Message::Resign { successor: None, leaving: true });
            }) as Attacker
        });
        let attackers = attackers.collect();
        siege.during(attackers, |siege| {
            for _ in 0..3 {
                siege.real.signal(leader, Signal::STOP);
                std::thread::sleep(LEASE / 3);
                siege.real.signal(leader, Signal::CONT);
                std::thread::sleep(LEASE / 3);
            }
        });
        siege.undisturbed();
        siege.lift();
    });
}

/// An impostor of the leader hangs up, and nothing listens at the address that it claimed. That is what crash
/// evidence is made of.
// red before: F1
#[test]
fn the_end_of_an_impostor_is_no_evidence_of_a_crash() {
    in_each(BOTH, |level, n| {
        let flags: &[&str] = if level == Level::Majority { &["--crash-evidence", "release"] } else { &[] };
        let mut siege = Siege::begin(level, n, flags);
        let leader = at_home(&siege, siege.before.leader);
        let nowhere = (leader.source, 9).into();
        let claim = Claim { peer: Peer { address: nowhere, ..leader.peer }, ..leader };
        let attackers = siege.followers().into_iter().map(|place| {
            let (claim, to) = (claim.clone(), siege.address(place));
            Box::new(move |_: &Stop| drop(claim.link(to))) as Attacker
        });
        let attackers = attackers.collect();
        siege.attack(LASTING, attackers);
        siege.undisturbed();
        siege.lift();
    });
}

/// A Hello alone: under a new id at the address of the leader or of a follower, from elsewhere and from the
/// processes' own address, and as the next incarnation of the leader.
// red before: F7
#[test]
fn a_hello_that_advertises_a_members_address_evicts_no_member() {
    in_each(BOTH, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let (leader, follower) = (siege.before.leader, siege.followers()[0]);
        let at = |place: usize, number| {
            let stranger = siege.stranger(number);
            Claim { peer: Peer { address: siege.victims[place].address, ..stranger.peer }, ..stranger }
        };
        let near = Claim { source: Ipv4Addr::LOCALHOST, ..at(leader, 3) };
        let next = siege.impostor(leader);
        let next = Claim { peer: Peer { incarnation: next.peer.incarnation ^ 1, ..next.peer }, ..next };
        let claims = [at(leader, 1), at(follower, 2), near, next];
        let all = (0..n).flat_map(|place| claims.iter().map(move |claim| (place, claim.clone())));
        let attackers = all.filter(|(place, claim)| siege.victims[*place].id != claim.peer.id);
        let attackers = attackers.map(|(place, claim)| {
            let to = siege.address(place);
            Box::new(move |stop: &Stop| {
                let Ok(mut link) = claim.link(to) else { return };
                while !stop.is_over() && link.is_open() {
                    link.hear();
                }
            }) as Attacker
        });
        let attackers = attackers.collect();
        siege.attack(LASTING, attackers);
        siege.undisturbed();
        siege.lift();
    });
}

/// A stranger lets the leader dial it, and passes what the leader says there on to the others: a Hello of the
/// leader's own making.
// red before: F1
#[test]
fn a_hello_that_is_passed_on_is_not_taken_for_its_senders() {
    in_each(BOTH, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let (stranger, epoch, flags) = (siege.stranger(1), siege.before.epoch, flags(&siege));
        let ear = Trap::at(stranger.source);
        let claim = Claim { peer: Peer { address: ear.address(), ..stranger.peer.clone() }, ..stranger };
        let leader = siege.address(siege.before.leader);
        let others: Vec<_> = siege.followers().into_iter().map(|place| siege.address(place)).collect();
        let poses = siege.impostor(siege.before.leader);
        let relay: Attacker = Box::new(move |stop: &Stop| {
            drop(claim.link(leader));
            let Some(hello) = ear.overhear() else { return };
            for to in &others {
                let Ok(mut link) = poses.link_with(*to, &hello) else { continue };
                link.say(epoch, &Message::Resign { successor: None, leaving: true });
                serve(&mut link, flags, stop);
            }
        });
        siege.attack(LASTING, vec![relay]);
        siege.undisturbed();
        siege.lift();
    });
}

/// Questions that only a process asks: whether a Hello with a guessed token is a member's own.
#[test]
fn a_guessed_token_is_not_confirmed() {
    in_each(BOTH, |level, n| {
        let siege = Siege::begin(level, n, &[]);
        let (asks, leader) = (siege.stranger(1), siege.victims[siege.before.leader].clone());
        for token in (0..4).chain([u64::MAX, fastrand::u64(..)]) {
            let reached = (siege.victims[0].address, siege.victims[1].address);
            let question = Confirm { id: leader.id, incarnation: leader.incarnation, token, reached };
            let answer = asks.ask(leader.address, &confirm(&question));
            assert!(matches!(answer, Some(Frame::Confirmed(Confirmed::Foreign))), "{token}: {answer:?}");
        }
    });
}
