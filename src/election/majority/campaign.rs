//! What a candidate has asked the voters, and what they have said.

use super::tally::Tally;
use crate::election::{Member, Moment, ProcessId, Stage, VoteOutcome, VoteRequest};
use std::collections::BTreeMap;
use std::time::Duration;

/// One request and the answers to it.
#[derive(Clone, Hash, Debug)]
pub(super) struct Campaign {
    pub(super) request: VoteRequest,
    /// Before the first sending: the lease counts from here, in every repetition (clause 14).
    pub(super) begun: Moment,
    /// The leader that wants to transfer leadership to this process (clause 28).
    pub(super) incumbent: Option<ProcessId>,
    /// How often the request was sent to the voters that do not answer.
    pub(super) sendings: u32,
    /// The latest answer of each voter, by its name.
    answers: BTreeMap<String, VoterAnswer>,
}

/// What one voter said.
#[derive(Clone, Hash, Debug)]
struct VoterAnswer {
    voter: ProcessId,
    outcome: VoteOutcome,
    /// When what keeps the voter from voting is over, where it has said so.
    held_until: Option<Moment>,
}

impl Campaign {
    pub(super) fn new(request: VoteRequest, begun: Moment, incumbent: Option<ProcessId>) -> Campaign {
        Campaign { request, begun, incumbent, sendings: 1, answers: BTreeMap::new() }
    }

    /// Whether it asks for votes, or whether it would get them.
    pub(super) fn stage(&self) -> Stage {
        self.request.ballot.stage
    }

    /// A voter answers.
    pub(super) fn hear(&mut self, name: String, voter: ProcessId, outcome: VoteOutcome, now: Moment) {
        let held_until = match outcome {
            VoteOutcome::Denied(denial) => denial.wait().map(|rest| now.plus(rest)),
            VoteOutcome::Granted => None,
        };
        self.answers.insert(name, VoterAnswer { voter, outcome, held_until });
    }

    /// What the answers amount to now.
    pub(super) fn tally(&self, now: Moment) -> Tally {
        let rest = |answer: &VoterAnswer| answer.held_until.map_or(Duration::ZERO, |until| until.since(now));
        let answers = self.answers.iter().map(|(name, answer)| (name, answer.outcome, rest(answer)));
        Tally::of(&self.request.config, answers)
    }

    /// Forgets the answers of the voters that are held no longer: they are to be asked again.
    pub(super) fn ask_held_again(&mut self, now: Moment) {
        self.sendings = 1;
        self.answers.retain(|_, answer| answer.held_until.is_none_or(|until| now < until));
    }

    /// Forgets what is no vote: those voters are to be asked again.
    pub(super) fn ask_denied_again(&mut self) {
        self.answers.retain(|_, answer| answer.outcome == VoteOutcome::Granted);
    }

    /// Whether a member is a voter that has not answered.
    pub(super) fn misses(&self, member: &Member) -> bool {
        let answered = self.answers.values().any(|answer| answer.voter == member.peer.id);
        self.request.config.voters.contains(&member.peer.name) && !answered
    }
}
