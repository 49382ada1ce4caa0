//! The lease: rules 5 and 6. A round of heartbeats that a majority acknowledges extends it, counted from its sending.

use super::{Machine, Moment};
use crate::election::machine::{Mutation, Phase};
use crate::election::{Body, CrashEvidence, Epoch, Now, ProcessId, Reason, Timer, ViewStamp, VoterView};
use std::collections::{BTreeMap, VecDeque};

/// The most rounds that are kept. A lease has no more, unless it is hundreds of heartbeats long.
const ROUNDS_MAX: usize = 256;

/// What a leader keeps of its term.
#[derive(Clone, Hash, Debug)]
pub(super) struct Term {
    /// Until when it leads, unless a majority renews that.
    pub(super) lease_until: Moment,
    /// The rounds that can still extend the lease, newest last: at most [`ROUNDS_MAX`].
    rounds: VecDeque<Round>,
    /// The view before the one in use, while that is not committed (rule 9).
    pub(super) before: Option<VoterView>,
    /// Whether this term's own view was ever committed: only then may it be changed (rule 9).
    pub(super) committed: bool,
    /// What each member was given as `--voters`, and which view it stores.
    pub(super) flags: BTreeMap<String, (u64, ViewStamp)>,
    /// When it last sounded for a new term.
    pub(super) sounded: Option<Moment>,
    /// Who was asked to take over, and has not said whether it can (rule 11).
    pub(super) preparing: Option<ProcessId>,
}

/// One round of heartbeats.
#[derive(Clone, Hash, Debug)]
struct Round {
    sequence: u32,
    sent: Moment,
    /// Who has promised, and which view it stores.
    promised: BTreeMap<String, ViewStamp>,
}

impl Term {
    pub(super) fn new(lease_until: Moment) -> Term {
        Term {
            lease_until,
            rounds: VecDeque::new(),
            before: None,
            committed: false,
            flags: BTreeMap::new(),
            sounded: None,
            preparing: None,
        }
    }

    /// Forgets what a member that is gone was given.
    pub(super) fn forget(&mut self, name: &str) {
        self.flags.remove(name);
    }
}

impl Machine {
    /// A leader's heartbeat: it asks for another lease, this process's own promise included.
    pub(in crate::election::machine) fn begin_round(&mut self, now: Now) -> Option<Body> {
        let (sequence, myself, name) = (self.sequence, self.myself(), self.me.name.clone());
        let epoch = self.epoch;
        let votes = self.votes();
        let late = self.mutant(Mutation::CommittedByLateRound);
        let m = self.majority.as_mut()?;
        let (view, lease_ms) = (m.view.as_ref()?.stamp, m.lease_ms());
        let fingerprint = m.fingerprint;
        let term = m.term.as_mut()?;
        let mut promised = BTreeMap::new();
        if votes {
            promised.insert(name.clone(), view);
        }
        let over = |round: &Round| round.sent.plus(m.lease_counted) <= now.at && !late;
        while term.rounds.front().is_some_and(over) || term.rounds.len() >= ROUNDS_MAX {
            term.rounds.pop_front();
        }
        term.rounds.push_back(Round { sequence, sent: now.at, promised });
        term.flags.insert(name, (fingerprint, view));
        if votes {
            self.promise(now, myself, epoch, lease_ms);
        }
        Some(Body::Renew { sequence, membership: self.roster.version, lease_ms, view })
    }

    /// After a round has been sent: alone it is acknowledged already.
    pub(in crate::election::machine) fn round_sent(&mut self, now: Now) {
        self.extend(now, self.sequence);
    }

    /// Whether a member is no voter of this process's view, and uses a later one.
    fn outside(&self, now: Now, id: ProcessId, uses: ViewStamp) -> bool {
        let view = self.majority.as_ref().and_then(|m| m.view.as_ref());
        view.is_some_and(|view| {
            uses > view.stamp && !self.voter(now, id).is_some_and(|name| view.voters.contains(name))
        })
    }

    /// A follower's side: it promises, and the leader hears of that once it is durable (rule 5). Who has no record, or is
    /// no voter, follows without promising.
    pub(super) fn renew(
        &mut self,
        now: Now,
        from: ProcessId,
        epoch: Epoch,
        sequence: u32,
        lease_ms: u32,
        uses: ViewStamp,
    ) {
        if self.outside(now, from, uses) {
            // It leads by a later view, which was lost on its way here.
            self.send(from, Body::Ask);
        }
        self.announced(now, from, epoch, None);
        let epoch = if self.mutant(Mutation::StaleLeaderFollowed) { self.epoch } else { epoch };
        if !(self.phase == Phase::Following && self.leads(from) && self.epoch == epoch) {
            return;
        }
        let Some(process) = self.process(from) else { return };
        let promised = self.votes();
        if promised {
            self.promise(now, process, epoch, lease_ms);
        }
        let Some(m) = &mut self.majority else { return };
        if promised {
            m.cautious_until = None;
        }
        m.leases_ms.insert(from, lease_ms);
        let view = m.view.as_ref().map(|view| view.stamp).unwrap_or_default();
        let (target, lease_ms) = (m.fingerprint, m.lease_ms());
        let membership = self.roster.held();
        self.send(from, Body::Renewed { sequence, membership, promised, view, target, lease_ms });
    }

    /// The leader's side of the acknowledgement.
    #[allow(clippy::too_many_arguments)] // The fields of one message.
    pub(super) fn renewed(
        &mut self,
        now: Now,
        from: ProcessId,
        epoch: Epoch,
        sequence: u32,
        promised: Option<ViewStamp>,
        stores: ViewStamp,
        target: u64,
    ) {
        if !self.phase.leading() || epoch != self.epoch {
            return;
        }
        let Some(peer_name) = self.voter(now, from).map(str::to_owned) else { return };
        let late = self.mutant(Mutation::LeaseFromAcknowledgement);
        let Some(m) = &mut self.majority else { return };
        let Some(term) = &mut m.term else { return };
        term.flags.insert(peer_name.clone(), (target, stores));
        if let (Some(stamp), Some(round)) =
            (promised, term.rounds.iter_mut().find(|r| r.sequence == sequence))
        {
            round.promised.insert(peer_name, stamp);
            if late {
                round.sent = now.at;
            }
            self.extend(now, sequence);
        }
        self.view_stored(from, stores);
    }

    /// Extends the lease if a majority has promised in this round: of the view in use, and of the one before it while
    /// that change is not committed. By then a view that all of them store is committed (rules 5 and 9).
    fn extend(&mut self, now: Now, sequence: u32) {
        let no_drift = self.mutant(Mutation::NoDrift);
        let by_one = self.mutant(Mutation::RenewedByOne);
        let at_once = self.mutant(Mutation::ChangedAtOnce);
        let late = self.mutant(Mutation::CommittedByLateRound);
        let Some(m) = &mut self.majority else { return };
        let counted = if no_drift { m.lease } else { m.lease_counted };
        let (Some(view), Some(term)) = (&m.view, &mut m.term) else { return };
        let Some(round) = term.rounds.iter().find(|r| r.sequence == sequence) else { return };
        let names = || round.promised.keys().map(String::as_str);
        let before = term.before.as_ref().filter(|_| !at_once);
        let majority = view.has_majority(names()) && before.is_none_or(|before| before.has_majority(names()));
        if !majority && !by_one {
            return;
        }
        let stored =
            || round.promised.iter().filter(|(_, s)| **s == view.stamp).map(|(name, _)| name.as_str());
        let committed =
            view.has_majority(stored()) && before.is_none_or(|before| before.has_majority(stored()));
        let until = round.sent.plus(counted);
        if now.at >= until && !late {
            // Who acknowledged it may have lost its record since, and have recovered without the view that it then stored.
            return;
        }
        if until > term.lease_until {
            term.lease_until = until;
            self.arm(Timer::Lease, until.since(now.at));
        }
        if committed {
            self.committed();
        }
    }

    /// Rule 6: the lease is over, so it does not lead any more, at once; late acknowledgements renew nothing. Checked
    /// before anything else in every turn.
    pub(in crate::election::machine) fn check_lease(&mut self, now: Now) {
        let term = self.majority.as_ref().and_then(|m| m.term.as_ref());
        let over = term.is_some_and(|term| now.at >= term.lease_until);
        if over && self.phase.leading() && !self.mutant(Mutation::LapsedLeaseRenewed) {
            self.lapse(now);
        }
    }

    fn lapse(&mut self, now: Now) {
        self.drop_contest();
        self.lose_leader(Reason::Lapse);
        self.contest(now);
    }

    /// A leader that has lost its connections to a majority stops at once where refused dials free its lease: the
    /// others may have been refused by something on the path, and elect another (design, "Failure detection" 2).
    pub(in crate::election::machine) fn check_connections(&mut self, now: Now) {
        if !self.phase.leading() || self.settings.crash_evidence != CrashEvidence::Release {
            return;
        }
        let Some(view) = self.majority.as_ref().and_then(|m| m.view.as_ref()) else { return };
        let linked = self.roster.iter().filter(|m| m.linked).map(|m| m.peer.name.as_str());
        if !view.has_majority(linked.chain([self.me.name.as_str()])) {
            self.lapse(now);
        }
    }
}
