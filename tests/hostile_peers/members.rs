//! F8: a list of members that strangers have filled.

use crate::client::{Claim, Link};
use crate::rows::{BOTH, alone, clusters};
use crate::siege::{Attacker, Level, RECOVERY, Siege, Stop};
use crate::wait::within;
use std::net::SocketAddr;
use std::time::Duration;

/// Longer than a process waits at its start before it assumes that it is alone.
const LASTING: Duration = Duration::from_millis(1500);
const MEMBERS_MAX: u16 = 256;
/// So many strangers with four links each have all that a process allows.
const STRANGERS: u16 = 130;
/// How many threads share them.
const HANDS: usize = 8;

/// An honest process comes late, and there is no room for it. It does not lead beside the others, and joins
/// as soon as there is room.
// red before: F8
#[test]
fn a_process_that_finds_no_room_does_not_lead_itself() {
    alone(&clusters(BOTH), |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let late = siege.followers()[0];
        siege.stop(late);
        let leader = siege.address(siege.before.leader);
        let strangers = (0..MEMBERS_MAX).filter_map(|number| siege.stranger(number).link(leader).ok());
        let strangers: Vec<Link> = strangers.collect();
        siege.during(Vec::new(), |siege| {
            siege.start_with(late, &["--expect", "0"]);
            std::thread::sleep(LASTING);
            // In `majority` no process leads beside others, and voters may have chosen this one.
            let led = siege.real.sighting(late).yes;
            assert!(level == Level::Majority || led == 0, "the late process led beside the others");
        });
        drop(strangers);
        siege.agreed();
        let at = siege.before.leader;
        let name = siege.real.name(late);
        let joined = within(siege.recovery(), || siege.listed(at).contains(&name).then_some(()));
        assert!(joined.is_some(), "the late process is no member");
        siege.lift();
    });
}

/// The same where strangers have taken all links of all processes, of which a process closes those that come
/// after: nothing tells the late process that others are there.
// red before: F8
#[test]
#[ignore = "wants an optimised program: cargo test --profile checks"]
fn a_flood_that_leaves_no_link_makes_no_late_process_lead_itself() {
    alone(&[(Level::Classic, 3), (Level::Majority, 3)], |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let late = siege.followers()[0];
        siege.stop(late);
        let places = siege.real.running();
        let pairs = places.iter().flat_map(|place| (0..STRANGERS).map(|number| (*place, number)));
        let all: Vec<(Claim, SocketAddr)> =
            pairs.map(|(place, number)| (siege.stranger(number), siege.address(place))).collect();
        let attackers = all.chunks(all.len() / HANDS).map(|own| {
            Box::new(move |stop: &Stop| {
                // Each link that becomes free is taken again.
                let tries = own.iter().cycle().take_while(|_| !stop.is_over());
                let _links: Vec<Link> = tries.filter_map(|(claim, to)| claim.link(*to).ok()).collect();
            }) as Attacker
        });
        let attackers = attackers.collect();
        siege.flood(attackers, |siege| {
            // They may never take all: a limit for each address keeps links free.
            let full = || places.iter().all(|p| siege.stranger(900).link(siege.address(*p)).is_err());
            println!("{level:?}: no link is left: {:?}", within(RECOVERY, || full().then_some(())));
            siege.start_with(late, &["--expect", "0"]);
            std::thread::sleep(LASTING);
            // Where one link becomes free it may be elected: a flooded leader may not answer it in time. Both
            // lead for as long as the announcement takes then, and not for most of this time.
            let dual = siege.dual();
            assert!(dual <= LASTING / 3, "the late process led beside the others for {dual:?}");
        });
        siege.lift();
    });
}
