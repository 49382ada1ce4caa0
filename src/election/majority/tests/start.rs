//! When a voter that starts begins its first election: `Protocol::needs_no_margin`.

use super::*;
use crate::election::{Entry, State};

/// A voter that starts, and how it comes to meet others.
#[derive(Clone, Copy)]
struct Start<'a> {
    me: u8,
    /// `--voters`.
    given: &'a [u8],
    /// The voters that its record has.
    recorded: Option<&'a [u8]>,
    met: &'a [u8],
    /// Which of them have said that they know no leader.
    answered: &'a [u8],
    /// The members that their answers name.
    named: &'a [u8],
}

impl Start<'_> {
    /// Whether it begins an election before the margin is over.
    fn begins(&self) -> bool {
        let record = self.recorded.map(|voters| record(self.me, config(4, voters)));
        let mut voter = Voter::start(peer(self.me), given(self.given, 1500), record.as_ref(), self.met, None);
        let mut done = voter.feed(Event::Discovered { addresses: BTreeSet::new(), complete: true });
        for from in self.answered {
            let named = self.named.iter().map(|k| Entry { peer: peer(*k), state: State::Alive });
            let answer = Body::LeaderInfo { leader: None, entries: named.collect() };
            done.extend(voter.hear(*from, 0, answer));
        }
        done.iter().any(|a| matches!(a, Action::Notification(Notification::ElectionBegins { .. })))
    }
}

#[test]
fn the_best_of_all_voters_waits_for_no_margin() {
    let all = Start { me: 3, given: &[1, 2, 3], recorded: None, met: &[1, 2], answered: &[1, 2], named: &[] };
    for (what, start, begins) in [
        ("all have met, and know no leader", Start { ..all }, true),
        ("the same, with a record", Start { recorded: Some(&[1, 2, 3]), ..all }, true),
        ("beside a process that is no voter", Start { met: &[1, 2, 4], answered: &[1, 2, 4], ..all }, true),
        ("another ranks higher", Start { me: 2, met: &[1, 3], answered: &[1, 3], ..all }, false),
        ("one is missing", Start { met: &[2], answered: &[2], ..all }, false),
        ("one is known by name alone", Start { met: &[2], answered: &[2], named: &[1], ..all }, false),
        ("one has not answered", Start { answered: &[2], ..all }, false),
        ("one of the record is missing", Start { recorded: Some(&[1, 2, 3, 4]), ..all }, false),
        ("the only voter", Start { given: &[3], met: &[4], answered: &[4], ..all }, false),
    ] {
        assert_eq!(start.begins(), begins, "{what}");
    }
}
