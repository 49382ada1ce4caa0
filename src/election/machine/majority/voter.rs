//! The voter: rules 4 and 7. What it grants, what it promises, and what frees a promise.

use super::{Machine, lease_of};
use crate::election::machine::{Mutation, Phase};
use crate::election::voters::lease_ms;
use crate::election::{
    Action, Ballot, Body, CrashEvidence, Epoch, Incarnation, Moment, Note, Now, Process, ProcessId, Question,
    Reason, Refusal, Timer, Verdict, VoterView,
};

/// "I grant nobody else until then." Volatile: a restart waits it out instead (rule 7).
#[derive(Clone, Copy, Hash, Debug)]
pub(super) struct Promise {
    /// To whom.
    pub(super) to: Process,
    /// For which epoch.
    pub(super) epoch: Epoch,
    /// Until when; never shortened.
    pub(super) until: Moment,
}

/// What a contestant asks.
#[derive(Clone, Hash, Debug)]
pub(super) struct Asked {
    pub(super) question: Question,
    pub(super) ballot: Ballot,
    /// The incumbent that hands over to the contestant, by its epoch.
    pub(super) freed: Option<Epoch>,
    /// The contestant's view.
    pub(super) view: VoterView,
}

/// What a contestant asked, while a promise to another stands in its way.
#[derive(Clone, Hash, Debug)]
pub(super) struct Pending {
    asked: Asked,
    /// When it asked. After a lease it has long asked again, or given up.
    at: Moment,
}

impl Machine {
    /// A contestant asks.
    pub(super) fn contested(&mut self, now: Now, from: ProcessId, asked: &Asked) {
        let Asked { question, ballot, freed, ref view } = *asked;
        if self.process(from).map(|p| p.incarnation) != Some(ballot.incarnation) {
            // From a former life of the sender.
            return;
        }
        if self.phase == Phase::Leaving {
            // Its farewell was heard, and somebody sees to the rest.
            return self.act(Action::Exit);
        }
        if let Some(m) = &mut self.majority {
            m.pending.remove(&from);
        }
        let freed = freed.filter(|_| question == Question::Sounding);
        let verdict = self.verdict(now, from, ballot, view, freed);
        if let Verdict::No(Refusal::Promised { .. }) = verdict
            && let Some(m) = &mut self.majority
        {
            m.pending.insert(from, Pending { asked: asked.clone(), at: now.at });
        }
        if self.mutant(Mutation::RefusalRaisesEpoch) && !self.phase.leading() && ballot.epoch > self.epoch {
            self.lose_leader(Reason::Superseded);
            self.set_epoch(ballot.epoch);
        }
        if matches!(verdict, Verdict::Yes | Verdict::Conditional) {
            if !self.mutant(Mutation::LeaseOfSoundingForgotten) {
                self.keep_lease(ballot.lease_ms);
            }
            if question == Question::Claim {
                if verdict == Verdict::Yes && !self.mutant(Mutation::ViewOfGrantForgotten) {
                    let _ = self.take_over_view(view);
                }
                self.grant(now, from, ballot);
            }
        }
        self.reply(from, question, ballot, verdict);
        if question == Question::Claim && self.gives_way(from, ballot.epoch) {
            return self.contest_lost(now);
        }
        if verdict == Verdict::No(Refusal::Outranked) && !self.standing() {
            // The Bully's answer: it contests itself.
            self.sound(now);
        }
    }

    fn reply(&mut self, to: ProcessId, question: Question, ballot: Ballot, verdict: Verdict) {
        let Some(view) = self.majority.as_ref().map(|m| m.view.clone().unwrap_or_else(|| m.flagged())) else {
            return;
        };
        let Ballot { epoch, incarnation, asked_at, .. } = ballot;
        let lease_ms = self.majority.as_ref().map(super::Majority::lease_ms).unwrap_or_default();
        self.send(to, Body::Vote { question, epoch, incarnation, asked_at, verdict, view, lease_ms });
    }

    /// What this voter says to a contestant, itself included; nothing changes (rules 2, 4, 7).
    ///
    /// Who may vote and be voted for is the later view's to say, this voter's or the contestant's: only so does a change
    /// go on that nobody but its writer had stored when it failed. A cautious voter goes by its own view too: the others
    /// that have to grant are those of that view, and among them is whoever leads by a grant that it has forgotten.
    pub(super) fn verdict(
        &self,
        now: Now,
        who: ProcessId,
        ballot: Ballot,
        view: &VoterView,
        freed: Option<Epoch>,
    ) -> Verdict {
        let (Some(m), Some(process)) = (&self.majority, self.process(who)) else {
            return Verdict::No(Refusal::NoVoter);
        };
        let Some(own) = &m.view else { return Verdict::No(Refusal::Recovering) };
        let Some(name) = self.voter(now, who) else { return Verdict::No(Refusal::NoVoter) };
        let cautious = self.cautious(now);
        let both = |view: &VoterView| view.voters.contains(&self.me.name) && view.voters.contains(name);
        let later = view.stamp > own.stamp && !self.mutant(Mutation::OwnViewJudges);
        let own_too = cautious && !self.mutant(Mutation::CautiousByAnyView);
        if !both(if later { view } else { own }) || own_too && !both(own) {
            return Verdict::No(Refusal::NoVoter);
        }
        let regrant = m.granted_to.is_some_and(|to| {
            to == process || to.id == process.id && self.mutant(Mutation::IncarnationIgnored)
        }) || self.mutant(Mutation::EpochGrantedTwice);
        if ballot.epoch < self.epoch || ballot.epoch == self.epoch && !regrant {
            return Verdict::No(Refusal::Stale);
        }
        if m.withdrawn.get(name).is_some_and(|(by, up_to)| *by == process && ballot.epoch <= *up_to) {
            return Verdict::No(Refusal::Withdrawn);
        }
        if let Some(promise) = self.promised_to_another(now, process)
            && freed != Some(promise.epoch)
            && !self.mutant(Mutation::PromiseIgnored)
        {
            return Verdict::No(Refusal::Promised { for_ms: lease_ms(promise.until.since(now.at)) });
        }
        if self.outranks(now, who) {
            return Verdict::No(Refusal::Outranked);
        }
        if cautious { Verdict::Conditional } else { Verdict::Yes }
    }

    /// The promise that stands in the way of a process.
    pub(super) fn promised_to_another(&self, now: Now, process: Process) -> Option<Promise> {
        let promise = self.majority.as_ref().and_then(|m| m.promise)?;
        (promise.to != process && now.at < promise.until).then_some(promise)
    }

    /// Whether this process would contest, and ranks higher: then it refuses the other, which is what "Bully" means.
    /// Who has just failed to get a majority outranks nobody, nor does who may not or cannot contest (rules 1 and 4).
    fn outranks(&self, now: Now, who: ProcessId) -> bool {
        let Some(m) = &self.majority else { return false };
        let favoured = m.favoured.is_some_and(|(id, until)| {
            id == who && now.at < until && !self.mutant(Mutation::SuccessorNotFavoured)
        });
        let yields = now.at < m.yields_until && !self.mutant(Mutation::NoYielding);
        // Who was paused asks first, and outranks nobody until it knows what happened since.
        let busy = match &self.phase {
            Phase::Leading(_) | Phase::Leaving => true,
            // An incumbent that sounds for a new term, because of one voter that is ahead: whoever is content with it does
            // not contest it.
            Phase::Following => self.leads(who),
            Phase::Asking(asking) => asking.after_pause,
            _ => false,
        };
        // Who is no voter by its own view, and so only by the contestant's, cannot contest.
        !favoured && !yields && !busy && self.votes() && self.outranked(who)
    }

    /// Whether another's claim of the epoch that this process claims itself ends this one's: of two such claims neither can
    /// have the other's grant, and were neither given up, both would fail and be repeated together, again and again. It is
    /// the higher-ranked one's that goes on (rule 3).
    fn gives_way(&self, to: ProcessId, epoch: Epoch) -> bool {
        self.claims(epoch) && !self.outranked(to) && !self.mutant(Mutation::NoneGivesWay)
    }

    /// Whether this process ranks above that one.
    fn outranked(&self, who: ProcessId) -> bool {
        self.roster.get(who).is_some_and(|member| self.rank().outranks(member.rank()))
    }

    /// Grants: durable before the reply leaves, and a promise for one lease from receipt. Its own claim of a lower epoch
    /// is void (rule 4).
    pub(super) fn grant(&mut self, now: Now, to: ProcessId, ballot: Ballot) {
        let Some(process) = self.process(to) else { return };
        assert!(!self.phase.leading(), "a leader has promised itself, for longer than it leads");
        if to != self.me.id {
            if !self.mutant(Mutation::OwnClaimSurvivesGrant) {
                self.drop_contest();
            }
            self.lose_leader(Reason::Silence);
        }
        if !self.mutant(Mutation::GrantNotDurable) {
            self.set_epoch(ballot.epoch);
        }
        if let Some(m) = &mut self.majority {
            m.granted_to = Some(process);
            m.prepared = None;
        }
        self.promise(now, process, ballot.epoch, ballot.lease_ms);
        if to != self.me.id && !self.standing() {
            self.wait_for(to);
        }
    }

    /// Promises one lease from now; never for less long than before.
    pub(super) fn promise(&mut self, now: Now, to: Process, epoch: Epoch, lease_ms: u32) {
        let short = self.mutant(Mutation::PromiseShort);
        let Some(m) = &mut self.majority else { return };
        let lease = lease_of(lease_ms);
        let until = now.at.plus(if short { lease / 2 } else { lease });
        let same = m.promise.filter(|promise| promise.to == to);
        let until = same.map_or(until, |promise| promise.until.max(until));
        m.promise = Some(Promise { to, epoch, until });
        self.keep_lease(lease_ms);
    }

    /// Keeps the longest lease that it may have to wait out, or tell a voter to that has lost its record. Who agrees to a
    /// sounding keeps it already: its sender may win by the grant of a voter that then forgets it, and nobody else would know
    /// for how long it leads (rules 2 and 8).
    fn keep_lease(&mut self, lease_ms: u32) {
        let Some(m) = &mut self.majority else { return };
        if lease_ms > m.lease_longest_ms {
            m.lease_longest_ms = lease_ms;
            self.dirty = true;
        }
    }

    /// A claimant gives up (rule 3). It may come before the claim itself.
    pub(super) fn withdrawn(&mut self, now: Now, from: ProcessId, up_to: Epoch, incarnation: Incarnation) {
        let Some(process) = self.process(from).filter(|p| p.incarnation == incarnation) else { return };
        let name = self.voter(now, from).map(str::to_owned);
        let any = self.mutant(Mutation::WithdrawalFreesAny);
        let forgets = self.mutant(Mutation::WithdrawalForgotten);
        let Some(m) = &mut self.majority else { return };
        let voter = name.filter(|name| m.view.as_ref().is_some_and(|view| view.voters.contains(name)));
        let Some(voter) = voter else { return };
        m.pending.remove(&from);
        if !forgets {
            let before = m.withdrawn.get(&voter).filter(|(by, _)| *by == process).map(|(_, epoch)| *epoch);
            m.withdrawn.insert(voter, (process, before.unwrap_or_default().max(up_to)));
        }
        self.free(now, |promise| promise.to == process && (promise.epoch <= up_to || any));
        if self.phase == Phase::Waiting(from) {
            self.contest(now);
        }
    }

    /// A farewell frees what was promised to its sender for its epoch or a lower one, and ends caution.
    pub(in crate::election::machine) fn farewell(
        &mut self,
        now: Now,
        from: ProcessId,
        epoch: Epoch,
        successor: Option<ProcessId>,
    ) {
        let Some(process) = self.process(from) else { return };
        let current = epoch >= self.epoch;
        let any = self.mutant(Mutation::FarewellFreesAny);
        let Some(m) = &mut self.majority else { return };
        m.favoured = successor.map(|id| (id, now.at.plus(self.settings.coordinator_timeout)));
        if current {
            m.cautious_until = None;
            if m.granted_to != Some(process) {
                m.granted_to = Some(process);
                self.dirty = true;
            }
        }
        self.free(now, |promise| promise.to == process && promise.epoch <= epoch || any);
    }

    /// Crash evidence about one life of a member frees the promise to it, where the operator has said that refused dials
    /// prove a death (`--crash-evidence release`).
    pub(in crate::election::machine) fn release(
        &mut self,
        now: Now,
        id: ProcessId,
        incarnation: Incarnation,
    ) {
        if self.settings.crash_evidence == CrashEvidence::Release {
            self.free(now, |promise| promise.to == Process { id, incarnation });
        }
    }

    /// Frees the promise if `which` holds of it, and answers anew whom it stood in the way of.
    fn free(&mut self, now: Now, which: impl Fn(&Promise) -> bool) {
        let Some(m) = &mut self.majority else { return };
        if !m.promise.as_ref().is_some_and(which) {
            return;
        }
        m.promise = None;
        let pending = std::mem::take(&mut m.pending);
        for (id, Pending { asked, at }) in pending {
            if now.at.since(at) < lease_of(asked.ballot.lease_ms) {
                self.contested(now, id, &asked);
            }
        }
    }

    /// Whether it may have forgotten a promise of a former life (rule 7).
    pub(super) fn cautious(&self, now: Now) -> bool {
        let until = self.majority.as_ref().and_then(|m| m.cautious_until);
        until.is_some_and(|until| now.at < until) && !self.mutant(Mutation::NoCaution)
    }

    /// Grants nobody for as long as it may ever have promised, counted from its start (rule 7).
    pub(super) fn be_cautious(&mut self, now: Now, started: Moment) {
        let Some(m) = &mut self.majority else { return };
        let until = started.plus(lease_of(m.lease_longest_ms.max(m.lease_ms())));
        if now.at >= until {
            return;
        }
        m.cautious_until = Some(until);
        let wait = until.since(now.at);
        self.note(Note::Cautious(wait));
        self.arm(Timer::Caution, wait);
    }

    /// It has waited out what it may have forgotten.
    pub(in crate::election::machine) fn caution_over(&mut self, now: Now) {
        let Some(m) = &mut self.majority else { return };
        m.cautious_until = m.cautious_until.filter(|until| now.at < *until);
    }
}
