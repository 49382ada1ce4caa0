//! What voters have said in `--safety majority`, taken down from outside, and that claims, leases and views keep to it. A
//! clause of the rules that is missing shows here at once; two leaders come of it only with bad luck on top.

use super::checker::Rule;
use super::clock::{MS, Ns, ns};
use super::process::{Life, Process as Place};
use crate::election::{
    Ballot, Body, Epoch, Message, Moment, Process, ProcessId, Question, Record, Role, Verdict, View,
    ViewStamp,
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
}

/// What was said so far. Everything is bounded by what happens in one run.
#[derive(Debug, Default)]
pub(super) struct Votes {
    /// Whether evidence of a crash frees a promise (`--crash-evidence release`): then promises are not looked at.
    freed_by_evidence: bool,
    /// The latest promise of each life of each place: a later life may have forgotten it, and is cautious instead.
    promises: BTreeMap<(usize, u32), Promise>,
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
    /// For how long each process wants to be promised.
    leases: BTreeMap<ProcessId, Ns>,
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
                let kept = self.keeps(from, from.starts, me, what);
                self.promise(from, me, ballot.epoch, false);
                kept
            }
            Body::Vote { question: Question::Claim, epoch, incarnation, verdict, .. } => {
                let to = Process { id: to, incarnation: *incarnation };
                let what = || format!("p-{} grants epoch {epoch}", from.place);
                let kept = match verdict {
                    Verdict::Yes => self.keeps(from, 0, to, what),
                    Verdict::Conditional => None,
                    Verdict::No(_) => return None,
                };
                if *verdict == Verdict::Yes {
                    self.forget_former_lives(from);
                }
                self.promise(from, to, *epoch, *verdict == Verdict::Conditional);
                let first = *self.granted.entry((from.place, from.disks, *epoch)).or_insert(to);
                let twice = || (Rule::GrantedTwice, format!("{}, which another was granted", what()));
                let led = self.led.get(epoch) == Some(&to);
                kept.or_else(|| (first != to && !led).then(twice))
            }
            Body::Withdraw { epoch, .. } => {
                self.free(from.place, |_, p| p.to == me && p.epoch <= *epoch);
                None
            }
            Body::Renew { .. } => {
                self.promise(from, me, message.epoch, false);
                None
            }
            Body::Renewed { promised: true, .. } => {
                if let Some(leader) = self.hears.get(&from.place).copied().filter(|leader| leader.id == to) {
                    self.forget_former_lives(from);
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
            self.free(claimant.place, |_, promise| promise.to == me);
        }
    }

    /// The promises of a place, of this life and those since.
    fn since(&self, place: usize, life: u32) -> impl Iterator<Item = &Promise> {
        self.promises.range((place, life)..=(place, u32::MAX)).map(|(_, promise)| promise)
    }

    /// A voter says yes, or claims: it must not have promised itself to another, in this life or one since.
    fn keeps(&self, voter: &Place, life: u32, to: Process, what: impl Fn() -> String) -> Option<Broken> {
        let stands = |promise: &&Promise| promise.to != to && voter.fed < promise.until;
        let promise = self.since(voter.place, life).find(stands).filter(|_| !self.freed_by_evidence)?;
        let text = || format!("{}, and has promised another not to, for epoch {}", what(), promise.epoch);
        Some((Rule::PromiseBroken, text()))
    }

    /// Who promises without condition has waited for what former lives promised, or heard of what came of it.
    fn forget_former_lives(&mut self, voter: &Place) {
        self.promises.retain(|(place, life), _| *place != voter.place || *life == voter.starts);
    }

    /// A promise of one lease, of whom it is given to, from the beginning of the voter's turn; never for less long than before.
    fn promise(&mut self, voter: &Place, to: Process, epoch: Epoch, conditional: bool) {
        let own = ns(voter.settings.failure_timeout);
        let lease = if to == myself(voter) { Some(&own) } else { self.leases.get(&to.id) };
        let until = voter.fed + lease.copied().unwrap_or_default();
        let life = (voter.place, voter.starts);
        let known = self.promises.get(&life).filter(|known| known.to == to).map(|known| known.until);
        let until = known.map_or(until, |known| known.max(until));
        self.promises.insert(life, Promise { to, epoch, until, conditional });
    }

    fn free(&mut self, voter: usize, which: impl Fn(u32, &Promise) -> bool) {
        self.promises.retain(|(place, life), promise| *place != voter || !which(*life, promise));
    }

    /// A voter takes in a message, which may free its promise.
    pub(super) fn heard(&mut self, voter: &Place, from: Process, message: &Message) {
        self.hears.insert(voter.place, from);
        match message.body {
            Body::Contest { ballot: Ballot { lease_ms, .. }, .. } | Body::Renew { lease_ms, .. } => {
                self.leases.insert(from.id, Ns::from(lease_ms) * MS);
            }
            Body::Withdraw { epoch, incarnation } if incarnation == from.incarnation => {
                self.free(voter.place, |_, promise| promise.to == from && promise.epoch <= epoch);
            }
            // Of a former life's promise the farewell of that epoch or a later one leaves nothing (rule 7).
            Body::Resign { .. } => {
                let by = voter.starts;
                self.free(voter.place, |life, promise| {
                    promise.epoch <= message.epoch && (promise.to == from || life != by)
                });
            }
            _ => {}
        }
    }

    /// Another life of a process is connected: the former one is dead (rule 10).
    pub(super) fn linked(&mut self, voter: usize, with: Process) {
        self.free(voter, |_, promise| promise.to.id == with.id && promise.to != with);
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
                self.free(place, |_, promise| promise.to == me);
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
                let holds = |p: &&Promise| p.to == me && voter.clock.global(now, p.until) >= ends;
                let mut held = self.since(voter.place, 0).filter(holds).map(|promise| promise.conditional);
                match held.next() {
                    Some(first) if first && held.all(|conditional| conditional) => conditional += 1,
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
