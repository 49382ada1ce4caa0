//! What voters have said in `--safety majority`, taken down from outside, and that claims, leases and views keep to it. A
//! clause of the rules that is missing shows here at once; two leaders come of it only with bad luck on top.

use super::checker::Rule;
use super::clock::{Ns, ns};
use super::process::{Life, Process as Place};
use crate::election::{
    Body, Epoch, Message, Moment, Process, ProcessId, Question, Record, Role, Verdict, View, ViewStamp,
};
use std::collections::{BTreeMap, BTreeSet};

/// A broken rule, and how.
pub(super) type Broken = (Rule, String);

/// "Nobody else until then", as a voter has told it, or a claimant itself.
#[derive(Clone, Copy, Debug)]
struct Promise {
    to: Process,
    epoch: Epoch,
    /// On the voter's clock.
    until: Ns,
    /// It counts only if all voters have promised (rule 7).
    conditional: bool,
    /// Which life made it: a later one may have forgotten it, and is cautious instead.
    by: u32,
}

/// What was said so far. Everything is bounded by what happens in one run.
#[derive(Debug, Default)]
pub(super) struct Votes {
    /// Whether evidence of a crash frees a promise (`--crash-evidence release`): then promises are not looked at.
    freed_by_evidence: bool,
    /// The latest promise of each place.
    promises: BTreeMap<usize, Promise>,
    /// To whom each disk has granted each epoch.
    granted: BTreeMap<(usize, u32, Epoch), Process>,
    /// Who has led each epoch: a late copy of its claim does no harm to who follows it already.
    led: BTreeMap<Epoch, Process>,
    /// Who has sounded and not claimed since, and the last epoch that each life has claimed.
    sounded: BTreeSet<Life>,
    claimed: BTreeMap<Life, Epoch>,
    /// All views, and which places have ever stored each, or a later one.
    views: BTreeMap<ViewStamp, BTreeSet<String>>,
    stored: BTreeMap<ViewStamp, BTreeSet<usize>>,
    /// Whose message each place takes in, or has last taken in.
    hears: BTreeMap<usize, Process>,
    /// Who has told whom that it is ready to take over.
    prepared: BTreeSet<(ProcessId, ProcessId)>,
}

fn myself(place: &Place) -> Process {
    Process { id: place.id(), incarnation: place.life().incarnation() }
}

impl Votes {
    pub(super) fn new(freed_by_evidence: bool) -> Votes {
        Votes { freed_by_evidence, ..Votes::default() }
    }

    /// A message leaves.
    pub(super) fn sent(&mut self, from: &Place, to: ProcessId, message: &Message) -> Option<Broken> {
        let (me, life) = (myself(from), from.life());
        match &message.body {
            Body::Contest { question: Question::Sounding, .. } => {
                self.sounded.insert(life);
                None
            }
            Body::Contest { question: Question::Claim, ballot, .. } => {
                if self.claimed.insert(life, ballot.epoch) == Some(ballot.epoch) {
                    return None;
                }
                let what = || format!("p-{} claims epoch {}", from.place, ballot.epoch);
                if !self.sounded.remove(&life) {
                    return Some((Rule::Unsounded, format!("{}, and has not sounded for it", what())));
                }
                // A restarted claimant is cautious: its own yes is conditional, and what it has forgotten binds it so.
                let own = self.promises.get(&from.place).is_some_and(|promise| promise.by == from.starts);
                let kept = if own { self.keeps(from, me, what) } else { None };
                self.promise(from, me, ballot.epoch, false);
                kept
            }
            Body::Vote { question: Question::Claim, epoch, incarnation, verdict, .. } => {
                let to = Process { id: to, incarnation: *incarnation };
                let what = || format!("p-{} grants epoch {epoch}", from.place);
                let kept = match verdict {
                    Verdict::Yes => self.keeps(from, to, what),
                    Verdict::Conditional => None,
                    Verdict::No(_) => return None,
                };
                self.promise(from, to, *epoch, *verdict == Verdict::Conditional);
                let first = *self.granted.entry((from.place, from.disks, *epoch)).or_insert(to);
                let twice = || (Rule::GrantedTwice, format!("{}, which another was granted", what()));
                let led = self.led.get(epoch) == Some(&to);
                kept.or_else(|| (first != to && !led).then(twice))
            }
            Body::Withdraw { epoch, .. } => {
                self.free(from.place, |p| p.to == me && p.epoch <= *epoch);
                None
            }
            Body::Renew { .. } => {
                self.promise(from, me, message.epoch, false);
                None
            }
            Body::Renewed { promised: true, .. } => {
                if let Some(leader) = self.hears.get(&from.place).copied().filter(|leader| leader.id == to) {
                    self.promise(from, leader, message.epoch, false);
                }
                None
            }
            Body::Prepared { majority: true } => {
                self.prepared.insert((me.id, to));
                None
            }
            Body::Resign { successor: Some(successor), leaving: false } => {
                let ready = self.prepared.iter().any(|pair| *pair == (*successor, me.id));
                let what =
                    || format!("p-{} hands over to one that is not known to get a majority", from.place);
                (!ready).then(|| (Rule::Unprepared, what()))
            }
            _ => None,
        }
    }

    /// A claim is given up. Its withdrawal shows that, unless the claimant knows no voter any more whom it could send that to.
    pub(super) fn gave_up(&mut self, claimant: &Place) {
        let me = myself(claimant);
        let Some(view) = &claimant.view else { return };
        let voters = view.voting.as_ref().and_then(|voting| voting.view.as_ref()).map(|view| &view.voters);
        let knows = |name: &String| voters.is_some_and(|voters| voters.contains(name));
        if !view.members.iter().any(|member| member.peer.id != me.id && knows(&member.peer.name)) {
            self.free(claimant.place, |promise| promise.to == me);
        }
    }

    /// A voter says yes, or claims: it must not have promised itself to another.
    fn keeps(&self, voter: &Place, to: Process, what: impl Fn() -> String) -> Option<Broken> {
        let promise = self.promises.get(&voter.place)?;
        let stands = promise.to != to && voter.fed < promise.until && !self.freed_by_evidence;
        let text = || format!("{}, and has promised another not to, for epoch {}", what(), promise.epoch);
        stands.then(|| (Rule::PromiseBroken, text()))
    }

    /// A promise of one lease from the beginning of the voter's turn; never for less long than before.
    fn promise(&mut self, voter: &Place, to: Process, epoch: Epoch, conditional: bool) {
        let until = voter.fed + ns(voter.settings.failure_timeout);
        let known = self.promises.get(&voter.place).filter(|known| known.to == to).map(|known| known.until);
        let until = known.map_or(until, |known| known.max(until));
        self.promises.insert(voter.place, Promise { to, epoch, until, conditional, by: voter.starts });
    }

    fn free(&mut self, voter: usize, which: impl Fn(&Promise) -> bool) {
        if self.promises.get(&voter).is_some_and(which) {
            self.promises.remove(&voter);
        }
    }

    /// A voter takes in a message, which may free its promise.
    pub(super) fn heard(&mut self, voter: &Place, from: Process, message: &Message) {
        self.hears.insert(voter.place, from);
        match message.body {
            Body::Withdraw { epoch, incarnation } if incarnation == from.incarnation => {
                self.free(voter.place, |promise| promise.to == from && promise.epoch <= epoch);
            }
            // Of a former life's promise the farewell of that epoch or a later one leaves nothing (rule 7).
            Body::Resign { .. } => {
                let by = voter.starts;
                self.free(voter.place, |promise| {
                    promise.epoch <= message.epoch && (promise.to == from || promise.by != by)
                });
            }
            _ => {}
        }
    }

    /// Another life of a process is connected: the former one is dead (rule 10).
    pub(super) fn linked(&mut self, voter: usize, with: Process) {
        self.free(voter, |promise| promise.to.id == with.id && promise.to != with);
    }

    /// A record becomes durable. A view is first written by the leader that makes it.
    pub(super) fn durable(&mut self, place: &Place, record: &Record) -> Option<Broken> {
        let view = &record.vote.as_ref()?.view;
        let stamp = view.stamp;
        self.stored.entry(stamp).or_default().insert(place.place);
        let broken = |how: &str| {
            let what = format!("p-{} writes view {}.{}, {how}", place.place, stamp.epoch, stamp.version);
            Some((Rule::ViewChange, what))
        };
        if let Some(known) = self.views.get(&stamp) {
            let first_start = stamp == ViewStamp::default();
            return if *known == view.voters || first_start { None } else { broken("which is another's") };
        }
        self.views.insert(stamp, view.voters.clone());
        let version = stamp.version.checked_sub(1)?;
        let before = ViewStamp { version, ..stamp };
        let Some(former) = self.views.get(&before) else {
            return broken("and no leader of that epoch has committed the one before");
        };
        if former.symmetric_difference(&view.voters).count() != 1 {
            return broken("in which more than one voter is new or gone");
        }
        let by: BTreeSet<usize> =
            self.stored.range(before..).flat_map(|(_, places)| places).copied().collect();
        let by = by.iter().filter(|place| former.contains(&format!("p-{place}"))).count();
        if 2 * by <= former.len() { broken("and the one before is not committed") } else { None }
    }

    /// A leader shows another view: all the time that it counts on is promised to it by a majority.
    pub(super) fn counts_on(
        &mut self,
        now: Ns,
        places: &[Place],
        place: usize,
        view: &View,
    ) -> Option<Broken> {
        let leader = &places[place];
        let before = leader.view.as_ref().filter(|before| before.role == Role::Leading);
        let me = myself(leader);
        if view.role != Role::Leading {
            if before.is_some() {
                // It has stopped: nothing is left to be kept.
                self.free(place, |promise| promise.to == me);
            }
            return None;
        }
        self.led.entry(view.epoch).or_insert(me);
        let until = view.valid_until?;
        if self.freed_by_evidence || before.is_some_and(|before| before.valid_until == Some(until)) {
            return None;
        }
        if leader.clock.local(now) >= local(until) {
            // Shown too late by a driver that was held up: it answers no.
            return None;
        }
        let ends = leader.clock.global(now, local(until));
        let covered = |view: &View| {
            let Some(voters) = view.voting.as_ref().and_then(|voting| voting.view.as_ref()) else {
                return false;
            };
            let (mut yes, mut conditional) = (0, 0);
            for voter in places.iter().filter(|p| voters.voters.contains(&p.name)) {
                let promise = self.promises.get(&voter.place).filter(|promise| promise.to == me);
                let holds = |promise: &Promise| voter.clock.global(now, promise.until) >= ends;
                match promise.filter(|promise| holds(promise)) {
                    Some(promise) if promise.conditional => conditional += 1,
                    None if voter.place != place => {}
                    _ => yes += 1,
                }
            }
            yes >= voters.majority() || yes + conditional == voters.voters.len()
        };
        // A lease may have been extended by the view that was changed in the same turn.
        let ok = covered(view) || before.is_some_and(covered);
        let what = || format!("p-{place} counts on leading epoch {} for longer than promised", view.epoch);
        (!ok).then(|| (Rule::NotPromised, what()))
    }
}

/// A moment of a process's clock, as the simulator has it.
fn local(moment: Moment) -> Ns {
    ns(moment.0)
}
