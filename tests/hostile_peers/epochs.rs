//! F4: epochs that leave no room for elections.

use crate::rows::{BOTH, alone, clusters, in_each};
use crate::siege::{Attacker, EPOCHS_ABOVE_CLOCK, Siege, Stop, clock_ms};
use crate::wire::Message;
use std::time::Duration;

const LASTING: Duration = Duration::from_millis(1000);
/// How far one message could be above all epochs that its receiver had seen.
const JUMP: u64 = 1 << 32;
/// What no message may exceed at all.
const EPOCH_MAX: u64 = 1 << 62;

/// Several strangers raise the epoch at each process, as far as one message could; others try the end of all
/// numbers.
// red before: F4
#[test]
fn messages_use_up_no_epochs() {
    alone(&clusters(BOTH), |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let attackers = (0..3 * n).map(|number| {
            let (claim, to) = (siege.stranger(number as u16), siege.address(number % n));
            Box::new(move |stop: &Stop| {
                let Ok(mut link) = claim.link(to) else { return };
                for times in 0..EPOCH_MAX / JUMP {
                    let epoch = if number < n { EPOCH_MAX + 1 - times % 3 } else { times * JUMP };
                    if stop.is_over() || !link.say(epoch, &Message::LeaderQuery) {
                        return;
                    }
                    if times % 64 == 0 {
                        link.hear();
                    }
                }
            }) as Attacker
        });
        let attackers = attackers.collect();
        siege.flood(attackers, |_| std::thread::sleep(LASTING));
        siege.lift();
    });
}

/// A stranger says the highest epoch that is plausible, in each millisecond anew. Elections go on above it.
#[test]
fn an_election_takes_place_above_the_highest_plausible_epoch() {
    in_each(BOTH, |level, n| {
        let mut siege = Siege::begin(level, n, &[]);
        let attackers = (0..n).map(|place| {
            let (claim, to) = (siege.stranger(place as u16), siege.address(place));
            Box::new(move |stop: &Stop| {
                let Ok(mut link) = claim.link(to) else { return };
                while !stop.is_over() && link.is_open() {
                    link.say(clock_ms() + EPOCHS_ABOVE_CLOCK, &Message::LeaderQuery);
                    link.hear();
                    // A higher one is plausible a millisecond later.
                    std::thread::sleep(Duration::from_millis(1));
                }
            }) as Attacker
        });
        let attackers = attackers.collect();
        siege.during(attackers, |siege| {
            std::thread::sleep(LASTING);
            // The epochs go on rising, so all agree on the leader, and hardly ever on its epoch.
            let leader = siege.led(&siege.real.running(), None);
            siege.kill(leader);
            siege.led(&siege.real.running(), Some(leader));
            siege.start(leader);
        });
        siege.lift();
    });
}
