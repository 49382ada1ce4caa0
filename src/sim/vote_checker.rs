//! What voters have said in `--safety majority`, taken down from outside, and that requests, leases and
//! configurations keep to it. A clause that is missing shows here at once; two leaders come of it only with
//! bad luck on top.

use super::clock::{MS, Ns, ns};
use super::node::{Node as Place, NodeInstance};
use super::rule::Rule;
use crate::election::{
    Ballot, Body, ConfigVersion, Epoch, Instance, Message, ProcessId, Record, Role, Stage, Status,
    VoteOutcome, VoterConfig,
};
use std::collections::{BTreeMap, BTreeSet};

/// A broken rule, and how.
pub(super) type Broken = (Rule, String);

/// "I vote for no other process until then", as a voter has told it, or a candidate itself.
#[derive(Clone, Copy, Debug)]
struct Promise {
    to: Instance,
    epoch: Epoch,
    /// The configuration of the round; the lowest for a vote.
    named: ConfigVersion,
    /// On the voter's slow clock.
    until: Ns,
    /// The promise may be forgotten: a later incarnation has started since. Restarts wait for it all the
    /// same.
    start: u32,
}

/// What was said so far. Everything is bounded by what happens in one run.
#[derive(Debug, Default)]
pub(super) struct VoteChecker {
    /// Whether evidence of a crash frees a promise (`--crash-evidence release`): then promises are not looked
    /// at.
    freed_by_evidence: bool,
    /// The latest promise of each place to each process.
    promises: BTreeMap<usize, Vec<Promise>>,
    /// For which process each disk has voted in each epoch.
    voted: BTreeMap<(usize, u32, Epoch), Instance>,
    /// How often each process has asked for pre-votes, or was named in a resignation, more often than it has
    /// asked for votes.
    may_request: BTreeMap<ProcessId, u32>,
    /// The last epoch in which each life has asked for votes.
    requested: BTreeMap<NodeInstance, Epoch>,
    /// All configurations, and which places have ever stored each, or a later one.
    configs: BTreeMap<ConfigVersion, VoterConfig>,
    stored: BTreeMap<ConfigVersion, BTreeSet<usize>>,
    /// The sender of the message that each place takes in, or has last taken in, and the lease that it asks
    /// for.
    hears: BTreeMap<usize, (Instance, Ns)>,
    /// Which process has told which leader that it is ready to take over.
    ready: BTreeSet<(ProcessId, ProcessId)>,
}

fn myself(place: &Place) -> Instance {
    Instance { id: place.id(), incarnation: place.instance().incarnation() }
}

/// Whether a promise in an epoch, for a vote or for a round that names a configuration, still counts. Its
/// leader counts on rounds that name its last configuration, or the one before (clause 19). It leads no more
/// once a leader of a later epoch has written a configuration. A voter that was held up may promise more.
fn counts(configs: &BTreeMap<ConfigVersion, VoterConfig>, epoch: Epoch, named: ConfigVersion) -> bool {
    let Some((&last, _)) = configs.last_key_value() else { return true };
    let before = last.version.checked_sub(1).map(|version| ConfigVersion { version, ..last });
    epoch > last.epoch || epoch == last.epoch && before.is_none_or(|before| named >= before)
}

impl VoteChecker {
    pub(super) fn new(freed_by_evidence: bool) -> VoteChecker {
        VoteChecker { freed_by_evidence, ..VoteChecker::default() }
    }

    /// Whether a process has voted for another, or for itself.
    pub(super) fn any(&self) -> bool {
        !self.voted.is_empty()
    }

    /// A message leaves.
    pub(super) fn sent(&mut self, from: &Place, to: ProcessId, message: &Message) -> Option<Broken> {
        let me = myself(from);
        match &message.body {
            Body::VoteRequest { request } if request.ballot.stage == Stage::PreVote => {
                *self.may_request.entry(me.id).or_default() += 1;
                None
            }
            Body::VoteRequest { request } => self.requests_votes(from, &request.ballot),
            Body::Vote { ballot, outcome: VoteOutcome::Granted, .. } if ballot.stage == Stage::Vote => {
                self.votes(from, to, ballot)
            }
            Body::Renew { lease_ms, config, .. } => {
                self.promise(from, me, message.epoch, *config, Ns::from(*lease_ms) * MS);
                None
            }
            Body::Renewed { promised: true, config, .. } => {
                self.renews_promise(from, to, message.epoch, *config);
                None
            }
            Body::TransferReady { majority: true } => {
                self.ready.insert((me.id, to));
                None
            }
            Body::Resign { successor: Some(successor), leaving } => {
                *self.may_request.entry(*successor).or_default() += 1;
                let ready = *leaving || self.ready.contains(&(*successor, me.id));
                let what = || {
                    format!(
                        "p-{} resigns in favour of a process that is not known to get a majority",
                        from.place
                    )
                };
                (!ready).then(|| (Rule::Unprepared, what()))
            }
            _ => None,
        }
    }

    /// A candidate requests votes, after pre-votes or a resignation that names it, and votes for itself.
    fn requests_votes(&mut self, from: &Place, ballot: &Ballot) -> Option<Broken> {
        if self.requested.insert(from.instance(), ballot.epoch) == Some(ballot.epoch) {
            return None;
        }
        let me = myself(from);
        let what = || format!("p-{} requests votes of epoch {}", from.place, ballot.epoch);
        let left = self.may_request.get(&me.id).and_then(|left| left.checked_sub(1));
        let Some(left) = left else {
            return Some((Rule::NoPreVote, format!("{}, and has asked for no pre-vote", what())));
        };
        self.may_request.insert(me.id, left);
        let kept = self.keeps(from, me, what);
        self.promise(from, me, ballot.epoch, ConfigVersion::default(), Ns::from(ballot.lease_ms) * MS);
        let first = *self.voted.entry((from.place, from.disks, ballot.epoch)).or_insert(me);
        kept.or_else(|| (first != me).then(|| (Rule::VotedTwice, format!("{}, having voted in it", what()))))
    }

    /// A voter votes for a candidate, and for no second one in this epoch.
    fn votes(&mut self, from: &Place, to: ProcessId, ballot: &Ballot) -> Option<Broken> {
        let to = Instance { id: to, incarnation: ballot.incarnation };
        let epoch = ballot.epoch;
        let what = || format!("p-{} votes in epoch {epoch}", from.place);
        let kept = self.keeps(from, to, what);
        self.promise(from, to, epoch, ConfigVersion::default(), Ns::from(ballot.lease_ms) * MS);
        let first = *self.voted.entry((from.place, from.disks, epoch)).or_insert(to);
        kept.or_else(|| (first != to).then(|| (Rule::VotedTwice, format!("{} for a second process", what()))))
    }

    /// A voter promises a leader the lease that the leader has last asked for.
    fn renews_promise(&mut self, from: &Place, to: ProcessId, epoch: Epoch, named: ConfigVersion) {
        if !counts(&self.configs, epoch, named) {
            return;
        }
        let heard = self.hears.get(&from.place).copied().filter(|(by, _)| by.id == to);
        let Some((leader, lease)) = heard else { return };
        // What former incarnations have promised becomes part of the promise to this leader (clause 8), under
        // the configurations that it was promised for: clause 19 ends it with them.
        let promises = self.promises.entry(from.place).or_default();
        for former in promises.iter_mut().filter(|p| p.start != from.starts) {
            (former.to, former.epoch, former.start) = (leader, epoch, from.starts);
        }
        self.promise(from, leader, epoch, named, lease);
    }

    /// A voter votes: it must not have promised itself to another process, in this incarnation or a former
    /// one.
    fn keeps(&self, voter: &Place, to: Instance, what: impl Fn() -> String) -> Option<Broken> {
        let stands = |promise: &&Promise| promise.to != to && voter.fed_slow() < promise.until;
        let promise =
            self.promises.get(&voter.place)?.iter().find(stands).filter(|_| !self.freed_by_evidence)?;
        let text = || format!("{}, and has promised another not to, in epoch {}", what(), promise.epoch);
        Some((Rule::PromiseBroken, text()))
    }

    /// A promise for a lease, from the beginning of the voter's turn; never for less long than before. It
    /// takes the place of this incarnation's promise to another process: that one's lease is over, or its
    /// epoch is.
    fn promise(&mut self, voter: &Place, to: Instance, epoch: Epoch, named: ConfigVersion, lease: Ns) {
        let (start, counts) = (voter.starts, counts(&self.configs, epoch, named));
        let promises = self.promises.entry(voter.place).or_default();
        let same = |p: &&Promise| p.start == start && p.to == to && p.named == named;
        let before = promises.iter().filter(same).map(|p| p.until).max().unwrap_or_default();
        if counts {
            promises.retain(|p| p.start != start || p.to == to && p.named != named);
            let until = before.max(voter.fed_slow() + lease);
            promises.push(Promise { to, epoch, named, until, start });
        }
    }

    fn free(&mut self, voter: usize, which: impl Fn(&Promise) -> bool) {
        if let Some(promises) = self.promises.get_mut(&voter) {
            promises.retain(|promise| !which(promise));
        }
    }

    /// A voter takes in a message, which may free its promise (clause 9).
    pub(super) fn heard(&mut self, voter: &Place, from: Instance, message: &Message) {
        let lease_ms = match &message.body {
            Body::VoteRequest { request } => request.ballot.lease_ms,
            Body::Renew { lease_ms, .. } => *lease_ms,
            _ => 0,
        };
        self.hears.insert(voter.place, (from, Ns::from(lease_ms) * MS));
        if let Body::Resign { .. } = message.body {
            let instance = voter.starts;
            self.free(voter.place, |promise| {
                promise.start == instance && promise.epoch <= message.epoch && promise.to == from
            });
        }
    }

    /// A record becomes durable. A configuration is first written by the leader that makes it.
    pub(super) fn durable(&mut self, place: &Place, record: &Record) -> Option<Broken> {
        let config = &record.vote.as_ref().filter(|vote| !vote.founding)?.config;
        let version = config.version;
        self.stored.entry(version).or_default().insert(place.place);
        let broken = |how: &str| {
            let what = format!(
                "p-{} writes configuration {}.{}, {how}",
                place.place, version.epoch, version.version
            );
            Some((Rule::ConfigChange, what))
        };
        if let Some(known) = self.configs.get(&version) {
            let first_start = version == ConfigVersion::default();
            return if known == config || first_start { None } else { broken("which is another's") };
        }
        self.configs.insert(version, config.clone());
        for promises in self.promises.values_mut() {
            promises.retain(|promise| counts(&self.configs, promise.epoch, promise.named));
        }
        let before = ConfigVersion { version: version.version.checked_sub(1)?, ..version };
        let Some(former) = self.configs.get(&before) else {
            return broken("and no leader of that epoch has committed the one before");
        };
        let voters = former.voters.symmetric_difference(&config.voters).count();
        let lease = (former.lease_ms, former.bound_ms) != (config.lease_ms, config.bound_ms);
        if voters + usize::from(lease) != 1 {
            return broken("in which more than one thing is new");
        }
        let raised = config.lease_ms > former.lease_ms && config.lease_ms > former.bound_ms;
        let lowered = config.bound_ms < former.bound_ms && former.lease_ms > config.bound_ms;
        if raised || lowered {
            return broken("in which the lease is changed in one step");
        }
        let by: BTreeSet<usize> =
            self.stored.range(before..).flat_map(|(_, places)| places).copied().collect();
        let by = by.iter().filter(|place| former.voters.contains(&format!("p-{place}"))).count();
        if 2 * by <= former.voters.len() { broken("and the one before is not committed") } else { None }
    }

    /// A leader shows another status: all the time that it counts on is promised to it by a majority.
    pub(super) fn counts_on(
        &mut self,
        now: Ns,
        places: &[Place],
        place: usize,
        status: &Status,
    ) -> Option<Broken> {
        let leader = &places[place];
        let before = leader.status.as_ref().filter(|b| matches!(b.role, Role::Leading | Role::Resigning));
        let me = myself(leader);
        if status.role == Role::Resigning {
            return None;
        }
        if status.role != Role::Leading {
            if before.is_some() {
                // It has stopped: nothing is left to be kept.
                self.free(place, |promise| promise.to == me);
            }
            return None;
        }
        let until = status.valid_until?;
        if self.freed_by_evidence || before.is_some_and(|before| before.valid_until == Some(until)) {
            return None;
        }
        let (asked, turned) = leader.asked(now);
        if !status.leads(asked, turned) {
            // Shown too late by a driver that was held up, or after a suspend: it answers no.
            return None;
        }
        let ends = leader.clock.when_raw(now, ns(until.since(asked)));
        let covered = |status: &Status| {
            let Some(config) = status.voting.as_ref().and_then(|voting| voting.config.as_ref()) else {
                return false;
            };
            let holds = |voter: &&Place| {
                let to_me = self.promises.get(&voter.place).into_iter().flatten().filter(|p| p.to == me);
                let shown = ns(voter.time.slow_at(&voter.clock.reading(now)).0);
                let over = |p: &Promise| voter.clock.when_raw(now, p.until.saturating_sub(shown));
                voter.place == place || to_me.into_iter().any(|p| over(p) >= ends)
            };
            let held = places.iter().filter(|p| config.voters.contains(&p.name)).filter(holds).count();
            held >= config.majority()
        };
        // A lease may have been extended by the configuration that was changed in the same turn.
        let ok = covered(status) || before.is_some_and(covered);
        let what = || format!("p-{place} counts on leading epoch {} for longer than promised", status.epoch);
        (!ok).then(|| (Rule::NotPromised, what()))
    }
}
