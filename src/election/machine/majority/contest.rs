//! The contestant: rules 1 to 3. It sounds the voters, then claims, and leads once a majority has granted.

use super::{Machine, Term};
use crate::election::machine::{Mutation, Phase};
use crate::election::{
    Ballot, Body, Epoch, Incarnation, Moment, Note, Now, Outcome, Process, ProcessId, Question, Rank, Reason,
    Refusal, Timer, Verdict, VoterView, counted,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often a claim is sent to who has not granted it: each time after another answer timeout.
const SENDINGS_MAX: u32 = 3;

/// What this process has asked the voters, and what they said.
#[derive(Clone, Hash, Debug)]
pub(super) struct Contest {
    question: Question,
    ballot: Ballot,
    /// Before the first sending: a claim's lease counts from here, also when it is repeated (rule 3).
    begun: Moment,
    sendings: u32,
    votes: BTreeMap<String, Vote>,
    /// For whom it is sounded: the incumbent that wants to hand over to this process, by its epoch (rule 11).
    prepares: Option<(ProcessId, Epoch)>,
}

/// What one voter said.
#[derive(Clone, Hash, Debug)]
pub(super) struct Vote {
    pub(super) voter: ProcessId,
    pub(super) verdict: Verdict,
    pub(super) view: VoterView,
    /// The voter's own lease, in milliseconds.
    pub(super) lease_ms: u32,
    /// When it came: what it says of a promise counts from here.
    pub(super) at: Moment,
}

impl Machine {
    /// Rule 1: there is no leader. The best-ranked live voter contests at once, the others later: an answer timeout for each
    /// that outranks them. Were it one timeout for all, those who wait for one that is dead, and has not been missed yet,
    /// would claim the same epoch together, again and again. Nobody contests who has promised not to, may not, or has no
    /// record yet.
    pub(in crate::election::machine) fn stand(&mut self, now: Now) {
        let better = self.better_voters(now);
        match better.iter().max() {
            Some(best) if self.may_contest(now) => {
                let turns = u32::try_from(better.len()).unwrap_or(u32::MAX);
                self.enter(Phase::Waiting(best.id));
                self.arm(Timer::Announcement, self.settings.answer_timeout.saturating_mul(turns));
            }
            _ => self.sound(now),
        }
    }

    /// The live voters that may lead and outrank this process.
    fn better_voters(&self, now: Now) -> Vec<Rank> {
        let Some(view) = self.majority.as_ref().and_then(|m| m.view.as_ref()) else { return Vec::new() };
        let votes = |id| self.voter(now, id).is_some_and(|name| view.voters.contains(name));
        let live = self.roster.iter().filter(|m| m.can_lead() && m.rank().outranks(self.rank()));
        live.filter(|m| votes(m.peer.id)).map(|m| m.rank()).collect()
    }

    /// Whether it could contest now: it is an eligible voter, and has not promised itself to another.
    fn may_contest(&self, now: Now) -> bool {
        let free = self.promised_to_another(now, self.myself()).is_none();
        self.rank().eligible() && self.votes() && (free || self.mutant(Mutation::OwnGrantExempt))
    }

    /// Whether it sounds or claims now, for itself.
    pub(super) fn standing(&self) -> bool {
        self.phase == Phase::Electing && self.majority.as_ref().is_some_and(|m| m.contest.is_some())
    }

    /// Whether it has claimed this epoch and waits for grants.
    pub(super) fn claims(&self, epoch: Epoch) -> bool {
        let contest = self.majority.as_ref().and_then(|m| m.contest.as_ref());
        contest.is_some_and(|c| c.question == Question::Claim && c.ballot.epoch == epoch)
    }

    /// Rule 2: asks all voters whether they would grant. Nothing changes by that, here or there.
    pub(in crate::election::machine) fn sound(&mut self, now: Now) {
        self.lose_leader(Reason::Silence);
        if !self.may_contest(now) {
            // Its own promise: it asks when that ends. Otherwise somebody else has to lead.
            let promise = self.promised_to_another(now, self.myself()).filter(|_| self.votes());
            self.defer();
            if let Some(promise) = promise {
                self.disarm(Timer::Coordinator);
                self.arm(Timer::Retry, promise.until.since(now.at));
            }
            return;
        }
        self.enter(Phase::Electing);
        if self.mutant(Mutation::NoSounding) {
            return self.stake(now);
        }
        self.ask_voters(now, Question::Sounding, None);
    }

    /// Asks the voters, and this process first.
    pub(super) fn ask_voters(&mut self, now: Now, question: Question, prepares: Option<(ProcessId, Epoch)>) {
        let Some(view) = self.majority.as_ref().and_then(|m| m.view.clone()) else { return };
        let Some(lease_ms) = self.majority.as_ref().map(super::Majority::lease_ms) else { return };
        let epoch = self.seen.max(self.epoch).next();
        let ballot = Ballot { epoch, incarnation: self.me.incarnation, asked_at: now.at, lease_ms };
        let freed = prepares.map(|(_, epoch)| epoch);
        let own = self.verdict(now, self.me.id, ballot, &view, freed);
        if question == Question::Claim {
            // Its own grant obeys the rules like any other (rule 3).
            let granted = matches!(own, Verdict::Yes | Verdict::Conditional);
            if !granted && !self.mutant(Mutation::OwnGrantExempt) {
                return self.contest_lost(now);
            }
            self.round = Some(epoch);
            self.grant(now, self.me.id, ballot);
        }
        let exempt = question == Question::Claim && self.mutant(Mutation::OwnGrantExempt);
        let verdict = if exempt { Verdict::Yes } else { own };
        let vote = Vote { voter: self.me.id, verdict, view: view.clone(), lease_ms, at: now.at };
        let votes = BTreeMap::from([(self.me.name.clone(), vote)]);
        if let Some(m) = &mut self.majority {
            m.contest = Some(Contest { question, ballot, begun: now.at, sendings: 1, votes, prepares });
        }
        self.send_voters(&Body::Contest { question, ballot, freed, view });
        self.arm(Timer::Answer, self.settings.answer_timeout);
        self.count(now);
    }

    /// Rule 3: a majority would grant, so it claims: its own grant is durable before the claim leaves.
    pub(super) fn stake(&mut self, now: Now) {
        let epoch = self.seen.max(self.epoch).next();
        assert!(
            self.round.is_none_or(|round| round < epoch),
            "invariant 6: one election per process and epoch"
        );
        self.ask_voters(now, Question::Claim, None);
    }

    /// A voter answers what was asked for that epoch, by that life, at that moment.
    pub(super) fn voted(
        &mut self,
        now: Now,
        question: Question,
        (epoch, incarnation, asked_at): (Epoch, Incarnation, Moment),
        vote: Vote,
    ) {
        let Vote { voter: from, verdict, .. } = vote;
        let Some(name) = self.voter(now, from).map(str::to_owned) else { return };
        let Some(contest) = self.majority.as_mut().and_then(|m| m.contest.as_mut()) else { return };
        let Ballot { epoch: asked, incarnation: asking, .. } = contest.ballot;
        if (question, epoch, incarnation, asked_at)
            != (contest.question, asked, asking, contest.ballot.asked_at)
        {
            return;
        }
        let prepares = contest.prepares;
        let told = vote.view.clone();
        contest.votes.insert(name, vote);
        if let Verdict::No(refusal) = verdict
            && let Some(voter) = self.roster.get(from).map(|m| m.peer.clone())
        {
            self.note(Note::Refused { voter, question, refusal });
        }
        if verdict == Verdict::No(Refusal::Stale) && question == Question::Sounding && self.seen >= epoch {
            // It has told of a higher epoch: sounded anew above that. The epochs seen rise each time, so this ends.
            return self.ask_voters(now, question, prepares);
        }
        let agrees = question == Question::Sounding && !matches!(verdict, Verdict::No(_));
        if agrees && self.standing() && !self.cautious(now) && !self.mutant(Mutation::LaterViewNotTaken) {
            // Who votes by the later view has to be asked, too, and goes by it. Nobody is promised anything by who stands.
            // Stamps only rise, so this ends.
            if self.take_over_view(&told) {
                return self.ask_voters(now, question, None);
            }
        }
        self.count(now);
    }

    /// Whether a majority, or with conditional grants everybody, has said yes. A majority is counted in the highest view among
    /// those that did; everybody is whoever votes by any of these views, since the highest may not be committed, and a voter
    /// that it leaves out may lead by grants that those who were restarted have forgotten (rules 7 and 9). If so it goes on;
    /// if a majority cannot come any more it gives up. Who agrees to a sounding is counted for as long as its own lease: after
    /// that it may have lost its record, and have recovered without this process's lease (rule 2).
    fn count(&mut self, now: Now) {
        let Some(contest) = self.majority.as_ref().and_then(|m| m.contest.as_ref()) else { return };
        let conditional_counts = self.mutant(Mutation::ConditionalCounts);
        let by_version = self.mutant(Mutation::ViewsByVersion);
        let in_one_view = self.mutant(Mutation::EverybodyOfOneView);
        let said_no = |vote: &Vote| matches!(vote.verdict, Verdict::No(_));
        let stands_until = |vote: &Vote| contest.begun.plus(counted(super::lease_of(vote.lease_ms)));
        let for_ever = contest.question == Question::Claim || self.mutant(Mutation::OldSoundingCounts);
        let said_yes = |vote: &Vote| !said_no(vote) && (for_ever || now.at < stands_until(vote));
        let Some(own) = self.majority.as_ref().and_then(|m| m.view.as_ref()) else { return };
        let views = || contest.votes.values().filter(|v| !said_no(v)).map(|v| &v.view).chain([own]);
        let highest = views().max_by_key(|view| {
            let stamp = view.stamp;
            (if by_version { Epoch::ZERO } else { stamp.epoch }, stamp.version)
        });
        let Some(view) = highest else { return };
        let view = if self.mutant(Mutation::CountedInOwnView) { own } else { view };
        let of_the_view = || contest.votes.iter().filter(|(name, _)| view.voters.contains(*name));
        let willing = of_the_view().filter(|(_, v)| said_yes(v)).count();
        let unconditional = |vote: &Vote| conditional_counts || vote.verdict == Verdict::Yes;
        let yes = of_the_view().filter(|(_, v)| said_yes(v) && unconditional(v)).count();
        let refused = of_the_view().filter(|(_, v)| said_no(v)).count();
        let is_willing = |name: &String| contest.votes.get(name).is_some_and(said_yes);
        let everybody =
            views().filter(|v| !in_one_view || *v == view).all(|v| v.voters.iter().all(is_willing));
        let inside = view.voters.contains(&self.me.name);
        let won = inside && (yes >= view.majority() || everybody && willing == view.voters.len());
        if won {
            let (view, begun) = (view.clone(), contest.begun);
            let until = contest.votes.values().filter(|vote| said_yes(vote)).map(stands_until).min();
            return match (contest.question, contest.prepares) {
                (Question::Claim, _) => self.win(now, view, begun),
                (Question::Sounding, Some((incumbent, epoch))) => {
                    self.ready_to_take_over(incumbent, epoch, until.unwrap_or_default());
                }
                (Question::Sounding, None) => self.sounded(now),
            };
        }
        // Who has promised itself may yet say yes, as soon as that promise is freed or over.
        let promised: Vec<Duration> = of_the_view()
            .filter_map(|(_, vote)| match vote.verdict {
                Verdict::No(Refusal::Promised { for_ms }) => {
                    Some(super::lease_of(for_ms).saturating_sub(now.at.since(vote.at)))
                }
                _ => None,
            })
            .collect();
        let hopeless = !inside || view.voters.len() - (refused - promised.len()) < view.majority();
        if hopeless {
            return self.contest_lost(now);
        }
        let sounding = contest.question == Question::Sounding && self.standing();
        if sounding && willing + promised.len() >= view.majority() {
            let mut waits = promised;
            waits.sort_unstable();
            // So many of them have to end before a majority can be had.
            let needed = view.majority().saturating_sub(willing).min(waits.len());
            if let Some(wait) = needed.checked_sub(1).and_then(|last| waits.get(last)) {
                self.arm(Timer::Retry, *wait);
            }
        }
    }

    /// A sounding got its majority. An incumbent that sounds for a new term stops before it claims.
    fn sounded(&mut self, now: Now) {
        if let Some(m) = &mut self.majority {
            m.contest = None;
        }
        if self.phase.leading() {
            self.lose_leader(Reason::Superseded);
            self.enter(Phase::Electing);
        }
        self.disarm(Timer::Retry);
        self.stake(now);
    }

    /// A majority has granted: it leads, unless the claim's lease is over already, and commits the view again under its
    /// own epoch first (rules 3, 5, 9).
    fn win(&mut self, now: Now, view: VoterView, begun: Moment) {
        let Some(m) = &mut self.majority else { return };
        let Some(contest) = m.contest.take() else { return };
        let from_now = self.mutant(Mutation::LeaseFromWinning);
        let no_drift = self.mutant(Mutation::NoDrift);
        let Some(m) = &mut self.majority else { return };
        let counted = if no_drift { m.lease } else { m.lease_counted };
        let lease_until = (if from_now { now.at } else { begun }).plus(counted);
        if now.at >= lease_until {
            m.contest = Some(contest);
            return self.contest_lost(now);
        }
        let epoch = contest.ballot.epoch;
        m.term = Some(Term::new(lease_until));
        self.announce(now, epoch);
        self.commit_again(view);
        self.arm(Timer::Lease, lease_until.since(now.at));
        self.beat(now);
    }

    /// Nobody has said anything for the answer timeout.
    pub(in crate::election::machine) fn voters_silent(&mut self, now: Now) {
        let retry = self.armed.contains(&Timer::Retry) && self.standing();
        let restarts = self.mutant(Mutation::RepeatedClaimRestartsLease);
        let Some(contest) = self.majority.as_mut().and_then(|m| m.contest.as_mut()) else { return };
        match contest.question {
            // It asks again when the promises that stand in its way end; whoever frees his before that says so.
            Question::Sounding if retry => {}
            Question::Claim if contest.sendings < SENDINGS_MAX => {
                contest.sendings += 1;
                if restarts {
                    contest.begun = now.at;
                }
                let ballot = contest.ballot;
                let granted = contest.votes.values().filter(|vote| !matches!(vote.verdict, Verdict::No(_)));
                let granted: Vec<ProcessId> = granted.map(|vote| vote.voter).collect();
                let view = self.majority.as_ref().and_then(|m| m.view.clone()).unwrap_or_default();
                let mut others = self.voter_ids(&view);
                others.retain(|id| !granted.contains(id));
                let question = Question::Claim;
                self.send_each(others, &Body::Contest { question, ballot, freed: None, view });
                self.arm(Timer::Answer, self.settings.answer_timeout);
            }
            _ => self.contest_lost(now),
        }
    }

    /// The sounding or claim has failed. Unless promises stood in its way, it yields: for two coordinator timeouts it
    /// outranks nobody, so that others get their turn (rule 4). It asks again after one of them: were its own next attempt
    /// at the end of its yielding, processes that failed together would refuse each other together again, for ever.
    pub(super) fn contest_lost(&mut self, now: Now) {
        let prepares = self.majority.as_ref().and_then(|m| m.contest.as_ref()).and_then(|c| c.prepares);
        self.drop_contest();
        if let Some((incumbent, _)) = prepares {
            return self.send(incumbent, Body::Prepared { majority: false });
        }
        if self.phase.leading() {
            // An incumbent that sounded for a new term goes on in its own.
            return;
        }
        let wait = self.settings.coordinator_timeout;
        if let Some(m) = &mut self.majority {
            m.yields_until = now.at.plus(wait.saturating_mul(2));
        }
        self.fruitless = true;
        self.note(Note::Contested { outcome: Outcome::Unfinished });
        self.enter(Phase::Deferring);
        self.arm(Timer::Retry, wait);
    }

    /// Ends what it has asked. A claim is withdrawn, so that its grants do not block others for a lease (rule 3).
    pub(in crate::election::machine) fn drop_contest(&mut self) {
        let Some(contest) = self.majority.as_mut().and_then(|m| m.contest.take()) else { return };
        self.disarm(Timer::Answer);
        if contest.question != Question::Claim {
            return;
        }
        let myself: Process = self.myself();
        let Ballot { epoch, incarnation, .. } = contest.ballot;
        if let Some(m) = &mut self.majority {
            m.promise = m.promise.take().filter(|promise| promise.to != myself || promise.epoch > epoch);
        }
        if !self.mutant(Mutation::NoWithdrawal) {
            self.send_voters(&Body::Withdraw { epoch, incarnation });
        }
    }

    /// It is time to ask again.
    pub(in crate::election::machine) fn retry(&mut self, now: Now) {
        if self.phase == Phase::Electing || self.phase == Phase::Deferring {
            self.drop_contest();
            self.stand(now);
        }
    }

    /// A voter is connected that was not before. Who has just failed for want of voters need not wait until it has yielded
    /// long enough.
    pub(in crate::election::machine) fn voter_connected(&mut self, id: ProcessId) {
        let Some(view) = self.majority.as_ref().and_then(|m| m.view.as_ref()) else { return };
        let voter = self.roster.get(id).is_some_and(|member| view.voters.contains(&member.peer.name));
        if voter && self.phase == Phase::Deferring && self.armed.contains(&Timer::Retry) {
            self.arm(Timer::Retry, self.settings.heartbeat);
        }
    }

    /// An incumbent hears that a voter has a higher epoch than its own, in which nobody leads: that voter cannot follow it.
    /// It sounds for a new term, once a coordinator timeout at most; only with a majority's yes does its own term end.
    pub(in crate::election::machine) fn sound_for_new_term(&mut self, now: Now) {
        let wait = self.settings.coordinator_timeout;
        let Some(m) = &mut self.majority else { return };
        let Some(term) = &mut m.term else { return };
        if m.contest.is_none() && term.sounded.is_none_or(|at| now.at.since(at) >= wait) {
            term.sounded = Some(now.at);
            self.ask_voters(now, Question::Sounding, None);
        }
    }
}
