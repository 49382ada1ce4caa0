//! F9: addresses that a stranger would like to be dialled, and names that it would like to be told.

use crate::client::{Claim, NoLink, Trap};
use crate::rows::{BOTH, in_each};
use crate::siege::{Attacker, Level, RECOVERY, Siege, Stop};
use crate::wait::within;
use crate::wire::{Entry, Frame, Message, Peer};
use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

const LASTING: Duration = Duration::from_millis(1500);
/// An address that no discovery names, and that no connection comes from. It stands for a port of another
/// service, and for a cloud's metadata at 169.254.169.254: these tests send nothing out of 127.0.0.0/8.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 77);

/// Nothing has connected to these, and no process has kept one of these addresses for its next start.
fn untouched(siege: &Siege, traps: &[Trap]) {
    let sprung: Vec<usize> = traps.iter().map(Trap::sprung).collect();
    assert!(sprung.iter().all(|times| *times == 0), "dialled elsewhere: {sprung:?} times");
    for place in 0..siege.real.n() {
        for file in std::fs::read_dir(siege.state(place)).unwrap() {
            let file = file.unwrap();
            let text = String::from_utf8_lossy(&std::fs::read(file.path()).unwrap()).into_owned();
            assert!(!text.contains(&ELSEWHERE.to_string()), "{:?} has it: {text}", file.file_name());
        }
    }
}

// red before: F9
#[test]
fn no_process_dials_an_address_because_a_hello_advertises_it() {
    in_each(BOTH, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let traps = [Trap::at(ELSEWHERE)];
        let attackers = (0..n).map(|place| {
            let (claim, to) = (siege.stranger(place as u16), siege.address(place));
            let claim = Claim { peer: Peer { address: traps[0].address(), ..claim.peer.clone() }, ..claim };
            Box::new(move |stop: &Stop| {
                let Ok(mut link) = claim.link(to) else { return };
                while !stop.is_over() && link.is_open() {
                    link.hear();
                }
            }) as Attacker
        });
        let attackers = attackers.collect();
        siege.attack(LASTING, attackers);
        untouched(&siege, &traps);
        siege.undisturbed();
        siege.lift();
    });
}

/// A stranger tells of members, and of a leader, elsewhere: to a process that starts and asks, and as a
/// leader of the highest priority.
// red before: F9
#[test]
fn no_process_dials_an_address_because_a_list_has_it() {
    in_each(BOTH, |level, n| {
        let mut siege = Siege::begin(level, n, &["--preempt", "always"]);
        let traps = [Trap::at(ELSEWHERE), Trap::at(ELSEWHERE)];
        let stranger = siege.stranger(1);
        let claim = Claim { peer: Peer { priority: 1000, ..stranger.peer.clone() }, ..stranger };
        let elsewhere = |number: u16, address: SocketAddr| -> Peer {
            Peer { address, priority: 1000, ..siege.stranger(number).peer }
        };
        let member = elsewhere(2, traps[0].address());
        let leader = elsewhere(3, traps[1].address());
        let entries: Vec<Entry> = vec![(member.clone(), true), (leader.clone(), true)];
        let epoch = siege.before.epoch + 1;
        let version = (epoch, 1);
        let words = [
            Message::LeaderInfo { leader: None, entries: entries.clone() },
            Message::LeaderInfo { leader: Some((leader, 1)), entries: entries.clone() },
            Message::Coordinator { elected_at_ms: 1 },
            Message::Membership { version, entries },
            Message::Join { version: (epoch, 2), entry: (member, true) },
        ];
        let attackers = (0..n).map(|place| {
            let (claim, to, words) = (claim.clone(), siege.address(place), words.clone());
            Box::new(move |stop: &Stop| {
                let Ok(mut link) = claim.link(to) else { return };
                while !stop.is_over() && words.iter().all(|word| link.say(epoch, word)) {
                    link.hear();
                }
            }) as Attacker
        });
        let attackers = attackers.collect();
        let starting = siege.followers()[0];
        siege.during(attackers, |siege| {
            siege.kill(starting);
            siege.start_with(starting, &["--expect", "0"]);
            std::thread::sleep(LASTING);
        });
        untouched(&siege, &traps);
        siege.agreed();
        untouched(&siege, &traps);
        siege.lift();
    });
}

/// A connection that has not named the election learns nothing: not from silence, and not from a wrong guess.
// red before: F9
#[test]
fn a_wrong_guess_is_not_told_the_right_name() {
    in_each(BOTH, |level, n| {
        let siege = Siege::begin(level, n, &[]);
        let claim = siege.stranger(1);
        let mut silent = claim.connect(siege.address(0)).unwrap();
        silent.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let heard = silent.read(&mut [0; 16]).map_err(|error| error.kind());
        assert!(matches!(heard, Ok(0) | Err(ErrorKind::WouldBlock)), "{heard:?}");
        for guess in ["web", "", "DEMO"] {
            let wrong = Claim { cluster: guess.to_owned(), ..claim.clone() };
            let Err(answer) = wrong.link(siege.address(0)) else { panic!("{guess:?} got in") };
            if let NoLink::Refused(_, text) = &answer {
                assert!(!text.contains(siege.real.cluster()), "told: {text}");
            }
        }
        let other_level = Claim { safety: u8::from(level == Level::Classic), ..claim };
        let answer = other_level.link(siege.address(0)).map(|_| ());
        assert!(matches!(&answer, Err(NoLink::Refused(..))), "{answer:?}");
    });
}

/// A process that dials a stranger names itself to it. It dials none but those that discovery names, or that
/// have come from where they say they are. This stranger is such a one, and says the wrong name.
#[test]
fn a_stranger_that_is_dialled_and_answers_as_another_cluster_is_left_alone() {
    in_each(BOTH, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let stranger = siege.stranger(1);
        let home = Trap::at(stranger.source);
        let claim = Claim { peer: Peer { address: home.address(), ..stranger.peer.clone() }, ..stranger };
        let other = Claim { cluster: "another".to_owned(), ..claim.clone() }.hello();
        let to = siege.address(siege.before.leader);
        let answer: Attacker = Box::new(move |stop: &Stop| {
            // Its link ends at once, so that the leader dials it.
            drop(claim.link(to));
            while !stop.is_over() {
                home.answer(&other);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        siege.attack(LASTING, vec![answer]);
        siege.undisturbed();
        siege.lift();
    });
}

/// Makes something else of a sound frame.
type Spoil = fn(Claim, Vec<u8>) -> Vec<u8>;

/// Frames that are none, on a link that stands: each ends that link, and nothing else.
#[test]
fn a_damaged_frame_ends_its_own_link_alone() {
    in_each(BOTH, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let query = |claim: &Claim| Message::LeaderQuery.frame(&claim.cluster, &claim.peer, 1);
        let bad: [Spoil; 7] = [
            |_, _| vec![0xff; 64],
            |_, _| vec![0; 64],
            |_, sound| sound.iter().map(|byte| byte ^ 1).collect(),
            |claim, _| claim.hello(),
            |claim, _| Message::LeaderQuery.frame("another", &claim.peer, 1),
            |claim, _| Message::LeaderQuery.frame(&claim.cluster, &Peer { id: 1, ..claim.peer }, 1),
            |claim, _| Message::LeaderQuery.frame(&claim.cluster, &Peer { priority: 1001, ..claim.peer }, 1),
        ];
        siege.during(Vec::new(), |siege| {
            for (number, bad) in bad.iter().enumerate() {
                let claim = siege.stranger(number as u16);
                let mut link = claim.link(siege.address(siege.before.leader)).unwrap();
                let sound = query(&claim);
                let bytes = bad(claim, sound.clone());
                assert!(link.send(&sound) && link.send(&bytes));
                let ended = within(RECOVERY, || {
                    let frame = link.hear();
                    (matches!(frame, Some(Frame::Bye)) || !link.is_open()).then_some(())
                });
                assert!(ended.is_some(), "a link is kept after {bytes:02x?}");
            }
        });
        siege.undisturbed();
        siege.lift();
    });
}
