//! What a process with a secret says to a stranger: nothing.

use crate::client::Claim;
use crate::rows::{BOTH, in_each};
use crate::siege::Siege;
use crate::wire::{Confirm, Fields, Message, bye, confirm, frame};
use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

/// All that a process says to these first bytes before it hangs up.
fn answer(claim: &Claim, siege: &Siege, bytes: &[u8]) -> Vec<u8> {
    let mut stream = claim.connect(siege.address(0)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut said = Vec::new();
    stream.write_all(bytes).unwrap();
    match stream.read_to_end(&mut said) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error}"),
    }
    said
}

#[test]
fn without_the_secret_a_client_gets_not_one_byte_of_membership() {
    in_each(BOTH, |level, n| {
        let siege = Siege::sealed(level, n);
        let claim = siege.stranger(1);
        let victim = &siege.victims[0];
        let question = Confirm {
            id: victim.id,
            incarnation: victim.incarnation,
            token: 1,
            reached: (victim.address, victim.address),
        };
        for clear in [
            claim.hello(),
            siege.impostor(0).hello(),
            confirm(&question),
            Message::LeaderQuery.frame(&claim.cluster, &claim.peer, siege.before.epoch),
            frame(40, &Fields::default()),
            bye(),
        ] {
            assert_eq!(answer(&claim, &siege, &clear), b"", "an answer to {clear:?}");
        }
        // What looks like TLS may have an alert: two bytes in a record of its own.
        let hello = [&[0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3][..], &[7; 194]].concat();
        for sealed in [&hello[..], &hello[..100], &[0x16, 3, 1, 0xff, 0xff, 1]] {
            let said = answer(&claim, &siege, sealed);
            assert!(said.is_empty() || said.len() == 7 && said[0] == 0x15, "{said:?}");
        }
        siege.undisturbed();
        siege.lift();
    });
}
