//! What the answers of voters to a candidate amount to.

use crate::election::{Denial, VoteOutcome, VoterConfig};
use std::time::Duration;

/// The answers to one request, counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Tally {
    /// The number of voters that would vote, or have voted.
    pub(super) granted: usize,
    /// The number that know of a better contender.
    pub(super) outranked: usize,
    /// The number that cannot vote for this request any more.
    pub(super) refused: usize,
    /// How long those are still held that may vote later; the shortest first.
    pub(super) held: Vec<Duration>,
}

impl Tally {
    /// Counts the answers of the configuration's voters: the name of each, the latest that it said, and how
    /// long it is still held.
    pub(super) fn of<'a>(
        config: &VoterConfig,
        answers: impl Iterator<Item = (&'a String, VoteOutcome, Duration)>,
    ) -> Tally {
        let mut tally = Tally::default();
        for (_, outcome, rest) in answers.filter(|(name, ..)| config.voters.contains(*name)) {
            match outcome {
                VoteOutcome::Granted => tally.granted += 1,
                VoteOutcome::Denied(Denial::Outranked) => tally.outranked += 1,
                VoteOutcome::Denied(Denial::Promised { .. } | Denial::Grace { .. }) => tally.held.push(rest),
                VoteOutcome::Denied(_) => tally.refused += 1,
            }
        }
        tally.held.sort_unstable();
        tally
    }

    /// Whether a majority would vote for the candidate but for a better contender: it may still win (clause
    /// 25).
    pub(super) fn may_win(&self, majority: usize) -> bool {
        self.granted + self.outranked >= majority
    }

    /// How long until enough voters are free for a majority; none: waiting for them is not enough.
    pub(super) fn wait(&self, majority: usize) -> Option<Duration> {
        let needed = majority.checked_sub(self.granted)?;
        self.held.get(needed.checked_sub(1)?).copied()
    }
}
