//! The candidate: clauses 13 to 15, 24, 25 and 27. It asks for pre-votes, then for votes, and leads once a
//! majority has voted.

use super::Majority;
use super::campaign::Campaign;
use super::leader_state::LeaderState;
use crate::election::clauses::Clauses;
use crate::election::core::{Core, Heard, Phase};
use crate::election::{
    Ballot, Body, Denial, ElectionOutcome, Member, Notification, Now, ProcessId, Reason, Stage, Timer,
    VoteOutcome, VoteRequest, VoterConfig,
};
use std::time::Duration;

/// How often a candidate sends a request for votes to a voter that has not granted it. Each time it waits for
/// another answer timeout, since a vote waits for a disk.
const VOTE_SENDINGS_MAX: u32 = 3;
/// How often a candidate sends a request for pre-votes to a voter that has not answered, within one answer
/// timeout. Where every voter of a bare majority has to answer, one lost packet must not cost a round.
const PRE_VOTE_SENDINGS_MAX: u32 = 2;
/// The next attempt of a candidate that has failed comes up to so much later, so that rivals do not stay in
/// step.
const JITTER_MS_MAX: u64 = 30;

impl Core<Majority> {
    /// There is no leader. This process answers a request that has come already. Then the best live voter
    /// asks for pre-votes at once, each other voter a share of the answer timeout later. A voter with a
    /// promise to another process waits for its end first (clause 25).
    pub(super) fn start_campaign(&mut self, now: Now) {
        self.lose_leader(Reason::Silence);
        self.enter(Phase::Deferring);
        self.answer_postponed(now);
        if self.phase != Phase::Deferring {
            return;
        }
        if !self.may_campaign() {
            if self.none_may_campaign() {
                self.note(Notification::NoCandidate);
            }
            return self.defer();
        }
        let wait = self.held_for(now).unwrap_or_default() + self.share_of_wait(now);
        if wait.is_zero() {
            self.pre_vote(now);
        } else {
            self.arm(Timer::Retry, wait);
        }
    }

    /// Whether no live process may lead, this one included. A process that recovers, or has no vote, may lead
    /// once it has one.
    fn none_may_campaign(&self) -> bool {
        let Some(config) = self.protocol.config() else { return false };
        let may = |m: &Member| m.can_lead() && config.voters.contains(&m.peer.name);
        !self.rank().eligible() && !self.members.iter().any(may)
    }

    /// The share of the answer timeout that this process leaves to the live voters that may lead and outrank
    /// it.
    fn share_of_wait(&self, now: Now) -> Duration {
        let Some(config) = self.protocol.config() else { return Duration::ZERO };
        let votes = |id| self.voter(now, id).is_some_and(|name| config.voters.contains(name));
        let live = self.members.iter().filter(|m| m.can_lead() && m.rank().outranks(self.rank()));
        let better = live.filter(|m| votes(m.peer.id)).count();
        self.answer_timeout() * better as u32 / config.voters.len() as u32
    }

    /// Asks all voters whether they would vote for it (clause 24). It waits instead where its own promise or
    /// a better contender is in the way.
    pub(super) fn pre_vote(&mut self, now: Now) {
        if self.protocol.campaign.is_some() || !self.may_campaign() {
            return;
        }
        if let Some(wait) = self.held_for(now).or(self.yields_for(now)) {
            self.enter(Phase::Deferring);
            return self.arm(Timer::Retry, wait + Duration::from_millis(1));
        }
        self.lose_leader(Reason::Silence);
        if !self.clauses.pre_votes_come_first() {
            return self.request_votes(now);
        }
        self.enter(Phase::Electing);
        self.campaign(now, Stage::PreVote, None);
    }

    /// For how long a better contender, which has asked within an answer timeout, keeps this process from
    /// campaigning.
    fn yields_for(&self, now: Now) -> Option<Duration> {
        let better = self.protocol.contenders.better(self.rank(), now.at, self.answer_timeout());
        let better = better.filter(|_| !self.phase.leading() && self.clauses.rank_counts());
        better.map(|ago| self.answer_timeout() - ago)
    }

    /// Asks all voters for their votes, if it may.
    pub(super) fn request_votes(&mut self, now: Now) {
        if !self.may_campaign() {
            return self.start_campaign(now);
        }
        self.enter(Phase::Electing);
        self.campaign(now, Stage::Vote, None);
    }

    /// Asks the voters, and this process first: its own vote obeys the same clauses, and is durable before
    /// the request leaves (clause 13).
    pub(super) fn campaign(&mut self, now: Now, stage: Stage, incumbent: Option<ProcessId>) {
        let Some(config) = self.protocol.config().cloned() else { return };
        let ballot = self.ballot(now, stage);
        let (contender, transfer) = (self.protocol.contender, incumbent.map(|_| self.epoch));
        let request = VoteRequest { ballot, contender, transfer, config };
        if stage == Stage::Vote {
            assert!(ballot.epoch > self.epoch, "invariant 6: at most one election per process and epoch");
            if self.denial(now, self.myself(), &request).is_some() {
                return self.campaign_failed();
            }
            self.vote(now, self.myself(), &request);
        }
        let mut campaign = Campaign::new(request, now.at, incumbent);
        campaign.hear(self.me.name.clone(), self.me.id, VoteOutcome::Granted, now.at);
        self.protocol.campaign = Some(campaign);
        self.ask_missing();
        self.judge_campaign(now);
    }

    /// What a request for votes that begins now asks for.
    pub(super) fn ballot(&self, now: Now, stage: Stage) -> Ballot {
        let (epoch, incarnation, lease_ms) =
            (self.seen.next(), self.me.incarnation, self.lease_requested_ms());
        Ballot { stage, epoch, incarnation, asked_at: now.at, lease_ms }
    }

    /// Sends the request to the voters that have not answered.
    fn ask_missing(&mut self) {
        let Some(campaign) = &self.protocol.campaign else { return };
        let (request, timeout) = (campaign.request.clone(), self.answer_timeout());
        let wait = if campaign.stage() == Stage::PreVote { timeout / PRE_VOTE_SENDINGS_MAX } else { timeout };
        self.send_each(self.ids(|member| campaign.misses(member)), &Body::VoteRequest { request });
        self.arm(Timer::Answer, wait);
    }

    /// A voter answers. The answer counts only for the request that it repeats, and only from a voter that
    /// was asked (clause 29).
    pub(super) fn on_vote(&mut self, by: Heard, ballot: Ballot, said: VoteOutcome, own: Option<VoterConfig>) {
        let Heard { now, from, .. } = by;
        let Some(name) = self.voter(now, from).map(str::to_owned) else { return };
        if self.takes_config_asked(&name, ballot, own.as_ref()) {
            return;
        }
        let Some(campaign) = self.protocol.campaign.as_ref().filter(|c| c.request.ballot == ballot) else {
            return;
        };
        let asked = campaign.request.config.voters.contains(&name);
        if !self.clauses.counts_as_voter(asked) {
            return;
        }
        let incumbent = campaign.incumbent;
        if let (VoteOutcome::Denied(denial), Some(member)) = (said, self.members.get(from)) {
            self.note(Notification::Denied { voter: member.peer.clone(), stage: ballot.stage, denial });
        }
        if ballot.stage == Stage::PreVote {
            // Epochs and versions only rise, so this ends (clause 24).
            let may_take = !self.phase.leading() && self.clauses.takes_later_config();
            let later = own.is_some_and(|own| may_take && self.adopt_config(&own));
            if later || said == VoteOutcome::Denied(Denial::Stale) && self.seen >= ballot.epoch {
                return self.campaign(now, Stage::PreVote, incumbent);
            }
        }
        if let Some(campaign) = &mut self.protocol.campaign {
            campaign.hear(name, from, said, now.at);
        }
        self.judge_campaign(now);
    }

    /// A majority of the configuration that the request names elects (clause 14).
    fn judge_campaign(&mut self, now: Now) {
        let Some(campaign) = &self.protocol.campaign else { return };
        let (stage, incumbent) = (campaign.stage(), campaign.incumbent);
        let (tally, majority) = (campaign.tally(now.at), campaign.request.config.majority());
        self.protocol.contender |= stage == Stage::PreVote && tally.may_win(majority);
        match (stage, incumbent) {
            _ if tally.granted < majority => {
                let wait = tally.wait(majority).filter(|_| stage == Stage::PreVote && incumbent.is_none());
                wait.into_iter().for_each(|wait| self.arm(Timer::Retry, wait));
            }
            (Stage::Vote, _) => self.win(now),
            (Stage::PreVote, Some(incumbent)) => {
                self.drop_campaign();
                self.send(incumbent, Body::TransferReady { majority: true });
            }
            // Two requests for votes could split the voters.
            (Stage::PreVote, None) if self.yields_for(now).is_some() => self.campaign_failed(),
            (Stage::PreVote, None) => {
                // A leader that requests votes for a higher epoch stops leading the old one (clause 27).
                self.lose_leader(Reason::Superseded);
                self.request_votes(now);
            }
        }
    }

    /// A majority has voted: it leads, unless the request's lease is over. It writes the configuration again
    /// under its own epoch first (clauses 14, 19).
    fn win(&mut self, now: Now) {
        let Some(campaign) = &self.protocol.campaign else { return };
        let Ballot { epoch, lease_ms, .. } = campaign.request.ballot;
        let from = self.clauses.elected_lease_begins(campaign.begun, now.at);
        let lease_until = from.plus(self.counted(lease_ms));
        if now.at >= lease_until {
            // Votes took longer than the lease that was asked for: the next request asks for more.
            self.adaptation.observe(now.at, now.at.since(from));
            return self.campaign_failed();
        }
        self.protocol.campaign = None;
        self.protocol.leading = Some(LeaderState::new(lease_until));
        self.become_leader(now, epoch);
        self.write_own_config();
        self.arm(Timer::Lease, lease_until.since(now.at));
        // A voter may be connected no more.
        self.check_connections(now);
        self.on_heartbeat_timer(now);
    }

    /// Answers are missing. A candidate is hopeless when fewer than a majority answered "granted" or
    /// "outranked". It is no contender until a pre-vote has a better result (clause 25).
    pub(super) fn on_answer_timer(&mut self, now: Now) {
        let clauses = self.clauses;
        let m = &mut self.protocol;
        let Some(campaign) = &mut m.campaign else { return };
        let (tally, majority) = (campaign.tally(now.at), campaign.request.config.majority());
        let possible = campaign.request.config.voters.len() - tally.refused >= majority;
        campaign.sendings += 1;
        match campaign.stage() {
            Stage::PreVote if campaign.sendings <= PRE_VOTE_SENDINGS_MAX => {
                return self.ask_missing();
            }
            Stage::Vote if campaign.sendings <= VOTE_SENDINGS_MAX && possible => {
                campaign.begun = clauses.request_begins(campaign.begun, now.at);
                campaign.ask_denied_again();
                return self.ask_missing();
            }
            Stage::PreVote if campaign.incumbent.is_none() => {
                self.fail_silent_voters(now);
                // It asks the held voters again, once they are free. They may follow a leader that it does
                // not see.
                if let Some(wait) = tally.wait(majority) {
                    self.round_failed = true;
                    return self.arm(Timer::Retry, wait);
                }
                self.protocol.contender = clauses.is_contender(tally.may_win(majority));
            }
            Stage::PreVote | Stage::Vote => {}
        }
        self.campaign_failed();
    }

    /// A voter that has not answered counts as failed, as by rule 2 of the seed, once it has been silent for
    /// the failure timeout.
    fn fail_silent_voters(&mut self, now: Now) {
        let Some(campaign) = &self.protocol.campaign else { return };
        let timeout = self.settings.failure_timeout;
        let silent = |m: &Member| m.last_heard.is_some_and(|heard| now.at.since(heard) > timeout);
        for id in self.ids(|member| campaign.misses(member) && silent(member)) {
            self.fail(id, Reason::Silence);
        }
    }

    /// The campaign has failed. It asks again after an answer timeout and a little more.
    fn campaign_failed(&mut self) {
        let incumbent = self.protocol.campaign.as_ref().and_then(|campaign| campaign.incumbent);
        self.drop_campaign();
        if let Some(incumbent) = incumbent {
            return self.send(incumbent, Body::TransferReady { majority: false });
        }
        // A leader that began a pre-vote for a higher epoch goes on in its own.
        if self.phase.leading() {
            return;
        }
        // There is no randomness here. The incarnation is random and differs from process to process, and the
        // moment differs from attempt to attempt.
        let attempt = self.last_turn.at.0.as_nanos() as u64;
        let spread = (self.me.incarnation.0 ^ attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let jitter = Duration::from_millis(1 + spread % JITTER_MS_MAX);
        self.round_failed = true;
        self.note(Notification::ElectionEnds { outcome: ElectionOutcome::Unfinished });
        self.enter(Phase::Deferring);
        self.arm(Timer::Retry, self.answer_timeout() + jitter);
    }

    /// Forgets what it has asked. Its own promise to itself stays: voters may still have voted for it.
    pub(super) fn drop_campaign(&mut self) {
        if self.protocol.campaign.take().is_some() {
            self.disarm(Timer::Answer);
        }
    }

    /// It is time to ask again: all voters, or those that were held by a promise or a restart grace that is
    /// over.
    pub(super) fn on_retry_timer(&mut self, now: Now) {
        let may_campaign = self.may_campaign();
        match &mut self.protocol.campaign {
            // A request for votes arms no such timer.
            Some(campaign) => {
                campaign.ask_held_again(now.at);
                self.ask_missing();
            }
            None if self.phase != Phase::Deferring => {}
            None if may_campaign => self.pre_vote(now),
            // It has taken in a configuration that leaves it out, say. So it waits for a later one.
            None => self.start_campaign(now),
        }
    }

    /// A leader hears that a voter has a higher epoch than its own: that voter cannot follow it. The leader
    /// begins a pre-vote for an epoch above that, once a coordinator timeout at most. It leads on until it
    /// votes for itself (clause 27).
    pub(super) fn campaign_for_higher_epoch(&mut self, now: Now) {
        let busy = self.protocol.campaign.is_some() || self.holds.resigning.is_some();
        let ignored = busy || self.leads_for_want() || !self.clauses.heeds_higher_epoch();
        let pause = self.coordinator_timeout();
        let Some(leading) = &mut self.protocol.leading else { return };
        if !ignored && leading.campaigned_at.is_none_or(|at| now.at.since(at) >= pause) {
            leading.campaigned_at = Some(now.at);
            self.campaign(now, Stage::PreVote, None);
        }
    }
}
