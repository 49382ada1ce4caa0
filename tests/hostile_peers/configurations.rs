//! F2 and F3: voters, leases and leaders that no voter has agreed to. All of it is about `majority`.

use crate::client::{Claim, Link};
use crate::impostors::{flags, serve};
use crate::rows::in_each;
use crate::siege::{Attacker, LEASE, Level, Siege, Stop};
use crate::wait::within;
use crate::wire::{Ballot, Config, Frame, Known, Message, Outcome, Peer};
use serde_json::json;
use std::time::Duration;

const MAJORITY: &[Level] = &[Level::Majority];
const LASTING: Duration = Duration::from_millis(1000);
/// The longest lease that `--lease` accepts, in milliseconds.
const HOUR_MS: u32 = 3_600_000;

/// A configuration that no other comes after, with voters of the attacker's choice.
fn last_word(epoch: u64, voters: &[&str], lease_ms: u32) -> Config {
    let voters = voters.iter().map(|name| (*name).to_owned()).collect();
    Config { version: (epoch, u32::MAX), voters, lease_ms, bound_ms: lease_ms }
}

fn ballot(claim: &Claim, vote: bool, epoch: u64, lease_ms: u32) -> Ballot {
    Ballot { vote, epoch, incarnation: claim.peer.incarnation, asked_at: (1, 0), lease_ms }
}

/// An attacker for each process: it says all of this, listens a little, and says it again.
fn repeat(siege: &Siege, claim: &Claim, words: &[(u64, Message)]) -> Vec<Attacker<'static>> {
    let attackers = (0..siege.real.n()).map(|place| {
        let (to, claim, words) = (siege.address(place), claim.clone(), words.to_vec());
        Box::new(move |stop: &Stop| {
            let Ok(mut link) = claim.link(to) else { return };
            while !stop.is_over() && link.is_open() {
                words.iter().for_each(|(epoch, word)| _ = link.say(*epoch, word));
                link.hear();
            }
        }) as Attacker
    });
    attackers.collect()
}

/// No process has asked for any of this: configurations by themselves, in votes and in answers to a recovery.
// red before: F2
#[test]
fn a_configuration_of_a_process_that_does_not_lead_is_not_stored() {
    in_each(MAJORITY, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let (epoch, claim) = (siege.before.epoch, siege.stranger(1));
        let honest: Vec<&str> = siege.victims.iter().map(|peer| peer.name.as_str()).collect();
        let configs = [
            last_word(epoch, &[&claim.peer.name], 1000),
            last_word(epoch, &honest, HOUR_MS),
            last_word(epoch + 1, &honest[..1], 1),
        ];
        let flags = flags(&siege);
        let words = configs.into_iter().flat_map(|config| {
            let (later, ballot) = (Some(config.clone()), ballot(&claim, false, epoch + 1, 1000));
            let state = Known::Founded(config.clone());
            [
                (epoch, Message::Configuration(config)),
                (epoch, Message::Vote { ballot, outcome: Outcome::NoRecord, config: later }),
                (epoch, Message::Recovered { round: 1, incarnation: 1, state, flags }),
            ]
        });
        let words: Vec<(u64, Message)> = words.collect();
        let attackers = repeat(&siege, &claim, &words);
        siege.attack(LASTING, attackers);
        siege.undisturbed();
        siege.lift();
    });
}

/// A stranger asks for votes while the leader's promises are free, since that leader has just resigned. It
/// names itself the only voter, and asks for an hour.
// red before: F2
#[test]
fn a_candidate_that_no_configuration_names_gets_no_vote() {
    in_each(MAJORITY, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let (epoch, claim) = (siege.before.epoch, siege.stranger(1));
        let request = |vote, epoch| {
            let config = last_word(epoch, &[&claim.peer.name], HOUR_MS);
            let ballot = ballot(&claim, vote, epoch, HOUR_MS);
            (epoch, Message::VoteRequest { ballot, contender: true, transfer: None, config })
        };
        let words: Vec<(u64, Message)> =
            (1..9).flat_map(|ahead| [request(false, epoch + ahead), request(true, epoch + ahead)]).collect();
        let attackers = repeat(&siege, &claim, &words);
        siege.during(attackers, |siege| {
            let leader = siege.before.leader;
            siege.stop(leader);
            siege.start(leader);
            std::thread::sleep(LASTING);
        });
        siege.lift();
    });
}

/// A voter has lost its folder, and asks what it may have forgotten. A stranger answers first.
// red before: F2
#[test]
fn a_recovering_voter_believes_only_voters() {
    in_each(MAJORITY, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let (epoch, claim, flags) = (siege.before.epoch, siege.stranger(1), flags(&siege));
        let fresh = siege.followers()[0];
        let to = siege.address(fresh);
        let config = last_word(epoch, &[&claim.peer.name], 1);
        let answer: Attacker = Box::new(move |stop: &Stop| {
            let Ok(mut link) = claim.link(to) else { return };
            while !stop.is_over() && link.is_open() {
                let Some(Frame::Message { message: Some(Message::Recover { round, incarnation }), .. }) =
                    link.hear()
                else {
                    continue;
                };
                let state = Known::Founded(config.clone());
                link.say(epoch, &Message::Recovered { round, incarnation, state, flags });
            }
        });
        siege.kill(fresh);
        siege.empty(fresh);
        siege.during(vec![answer], |siege| {
            siege.start(fresh);
            std::thread::sleep(LASTING + LEASE);
        });
        let names = siege.voters(siege.before.leader);
        let stored = within(siege.recovery(), || (siege.voters(fresh) == names).then_some(()));
        assert!(stored.is_some(), "the voter has recovered {}", siege.voters(fresh));
        siege.lift();
    });
}

/// Flags, rounds and requests that name 49 days, from a stranger, and from an impostor of each voter.
// red before: F3
#[test]
fn a_lease_beyond_the_limit_of_the_flag_is_not_taken_from_the_wire() {
    in_each(MAJORITY, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let (leader, epoch, (voters, _)) = (siege.before.leader, siege.before.epoch, flags(&siege));
        let impostors = siege.followers().into_iter().map(|place| siege.impostor(place));
        let claims = impostors.chain([siege.stranger(1)]);
        let honest: Vec<&str> = siege.victims.iter().map(|peer| peer.name.as_str()).collect();
        let attackers = claims.map(|claim| {
            let config = Config { version: (epoch, 0), ..last_word(epoch, &honest, HOUR_MS) };
            let ballot = ballot(&claim, true, epoch + 1, u32::MAX);
            let words = [
                Message::Renew {
                    sequence: 1,
                    lease_ms: u32::MAX,
                    config: (epoch, 0),
                    learnt: (u32::MAX, u8::MAX),
                },
                Message::VoteRequest { ballot: ballot.clone(), contender: true, transfer: None, config },
                Message::Vote { ballot, outcome: Outcome::Promised(u32::MAX), config: None },
                Message::Recovered {
                    round: 1,
                    incarnation: 1,
                    state: Known::Nothing,
                    flags: (voters, u32::MAX),
                },
            ];
            let to = siege.address(leader);
            Box::new(move |stop: &Stop| {
                let Ok(mut link) = claim.link(to) else { return };
                words.iter().for_each(|word| _ = link.say(epoch, word));
                serve(&mut link, (voters, u32::MAX), stop);
            }) as Attacker
        });
        let attackers = attackers.collect();
        siege.attack(LASTING, attackers);
        siege.undisturbed();
        siege.lift();
    });
}

/// Says to one process that it leads in an epoch, asks for a promise, and resigns in favour of a voter.
fn usurp(link: &mut Link, epoch: u64, config: (u64, u32), successor: u128) {
    link.say(epoch, &Message::Coordinator { elected_at_ms: 1 });
    link.say(
        epoch,
        &Message::Renew { sequence: 1, lease_ms: LEASE.as_millis() as u32, config, learnt: (0, 0) },
    );
    link.say(epoch, &Message::Resign { successor: Some(successor), leaving: false });
}

/// A process that no voter has elected announces itself to all but the leader. Were a promise made to it, its
/// resignation would free the one to the leader, whose lease runs on.
fn usurper(siege: &mut Siege, claim: &Claim, followers: &[usize]) {
    let (_, members) = siege.real.answer(siege.before.leader, "/members");
    let members: serde_json::Value = serde_json::from_str(&members).unwrap();
    let version = (&members["voters"]["epoch"], &members["voters"]["version"]);
    let config = (version.0.as_u64().unwrap(), version.1.as_u64().unwrap() as u32);
    let (epoch, successor) = (siege.before.epoch, siege.victims[followers[0]].id);
    let attackers = followers.iter().map(|place| {
        let (claim, to) = (claim.clone(), siege.address(*place));
        Box::new(move |stop: &Stop| {
            let Ok(mut link) = claim.link(to) else { return };
            usurp(&mut link, epoch + 1, config, successor);
            // Where it has a voter's name, it votes for the successor.
            serve(&mut link, (0, 0), stop);
        }) as Attacker
    });
    let attackers = attackers.collect();
    siege.attack(LASTING, attackers);
}

// red before: F2 with F6
#[test]
fn a_leader_that_no_voter_has_elected_gets_no_promise() {
    in_each(MAJORITY, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let (claim, followers) = (siege.stranger(1), siege.followers());
        usurper(&mut siege, &claim, &followers);
        siege.undisturbed();
        siege.lift();
    });
}

/// The same under the name of a voter that is down. No rule can tell it from that voter: only a secret keeps
/// it out.
// red before: F2 with F6
#[test]
fn a_stranger_with_the_name_of_a_dead_voter_makes_no_second_leader() {
    in_each(MAJORITY, |level, n| {
        let mut siege = Siege::sealed(level, n);
        let mut followers = siege.followers();
        let dead = followers.pop().unwrap();
        siege.kill(dead);
        let stranger = siege.stranger(1);
        let name = siege.real.name(dead);
        let claim = Claim { peer: Peer { name, ..stranger.peer.clone() }, ..stranger };
        usurper(&mut siege, &claim, &followers);
        siege.start(dead);
        siege.lift();
    });
}

/// A stranger takes the name of a voter that is down, and is asked for a pre-vote in that name. It answers
/// with a configuration of its own. Here too only a secret keeps it out.
#[test]
fn a_stranger_with_the_name_of_a_dead_voter_changes_no_configuration() {
    in_each(MAJORITY, |level, n| {
        let mut siege = Siege::sealed(level, n);
        let mut others = siege.followers();
        let dead = others.pop().unwrap();
        siege.kill(dead);
        let (stranger, name, epoch) = (siege.stranger(1), siege.real.name(dead), siege.before.epoch);
        let claim = Claim { peer: Peer { name: name.clone(), ..stranger.peer.clone() }, ..stranger };
        let attackers = others.iter().map(|place| {
            let (claim, to) = (claim.clone(), siege.address(*place));
            let config = Some(last_word(epoch, &[&name], 1000));
            Box::new(move |stop: &Stop| {
                let Ok(mut link) = claim.link(to) else { return };
                while !stop.is_over() && link.is_open() {
                    if let Some(Frame::Message {
                        epoch,
                        message: Some(Message::VoteRequest { ballot, .. }),
                    }) = link.hear()
                    {
                        let (outcome, config) = (Outcome::NoRecord, config.clone());
                        link.say(epoch, &Message::Vote { ballot, outcome, config });
                    }
                }
            }) as Attacker
        });
        let attackers = attackers.collect();
        siege.during(attackers, |siege| {
            let leader = siege.before.leader;
            siege.kill(leader);
            std::thread::sleep(2 * LEASE);
            siege.start(leader);
        });
        siege.start(dead);
        siege.lift();
    });
}

/// Both other voters of three are down. A stranger takes their names, and holds each pre-vote of the last one
/// back for 49 days.
#[test]
fn a_denial_for_49_days_outlasts_no_attack() {
    in_each(MAJORITY, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let all: Vec<usize> = (0..n).collect();
        let (last, dead) = all.split_first().unwrap();
        dead.iter().for_each(|place| siege.kill(*place));
        let to = siege.address(*last);
        let attackers = dead.iter().map(|place| {
            let (name, stranger) = (siege.real.name(*place), siege.stranger(*place as u16));
            let claim = Claim { peer: Peer { name, ..stranger.peer.clone() }, ..stranger };
            Box::new(move |stop: &Stop| {
                let Ok(mut link) = claim.link(to) else { return };
                while !stop.is_over() && link.is_open() {
                    if let Some(Frame::Message {
                        epoch,
                        message: Some(Message::VoteRequest { ballot, .. }),
                    }) = link.hear()
                    {
                        let outcome = Outcome::Promised(u32::MAX);
                        link.say(epoch, &Message::Vote { ballot, outcome, config: None });
                    }
                }
            }) as Attacker
        });
        let attackers = attackers.collect();
        siege.attack(2 * LEASE, attackers);
        dead.iter().for_each(|place| siege.start(*place));
        siege.lift();
    });
}

/// A first start among strangers: one says that it has a record, one says nothing. They keep the others from
/// founding, and no longer than they are there.
// red before: F2
#[test]
fn a_first_start_among_strangers_is_over_soon_after_they_are_gone() {
    in_each(MAJORITY, |level, n| {
        let mut siege = Siege::planned(level, n, &[]);
        let attackers = (0..n).flat_map(|place| {
            let (to, liar, silent) = (siege.address(place), siege.stranger(1), siege.stranger(2));
            let config = last_word(7, &[&liar.peer.name], 1);
            let lie: Attacker = Box::new(move |stop: &Stop| {
                let Ok(mut link) = liar.link(to) else { return };
                while !stop.is_over() && link.is_open() {
                    if let Some(Frame::Message {
                        message: Some(Message::Recover { round, incarnation }),
                        ..
                    }) = link.hear()
                    {
                        let state = Known::Founded(config.clone());
                        link.say(7, &Message::Recovered { round, incarnation, state, flags: (0, 1) });
                    }
                }
            });
            let say_nothing: Attacker = Box::new(move |stop: &Stop| {
                let Ok(mut link) = silent.link(to) else { return };
                while !stop.is_over() && link.is_open() {
                    link.hear();
                }
            });
            [lie, say_nothing]
        });
        let attackers = attackers.collect();
        siege.during(attackers, |siege| {
            (0..n).for_each(|place| siege.start(place));
            std::thread::sleep(LASTING);
        });
        siege.settled();
        let names: Vec<String> = (0..n).map(|place| siege.real.name(place)).collect();
        let lease = LEASE.as_millis() as u64;
        let founded = json!({ "names": names, "lease_ms": lease, "bound_ms": lease });
        assert_eq!(siege.voters(0), founded);
        siege.lift();
    });
}
