//! The voter view: rule 9. A new leader commits it again under its own epoch, then changes one voter at a time.

use super::Machine;
use crate::election::machine::Mutation;
use crate::election::{Body, Epoch, Note, ProcessId, State, ViewStamp, VoterView};
use std::collections::BTreeSet;

impl Machine {
    /// A new leader stamps the view that it was elected in with its own epoch. Until a majority stores that, nothing else
    /// changes: a view that an earlier leader did not commit could come back otherwise.
    pub(super) fn commit_again(&mut self, elected_in: VoterView) {
        let epoch = self.epoch;
        let as_it_is = self.mutant(Mutation::NoRestamp);
        let Some(m) = &mut self.majority else { return };
        let Some(term) = &mut m.term else { return };
        if as_it_is {
            term.committed = true;
            m.view = Some(elected_in);
            return;
        }
        let view = VoterView { stamp: ViewStamp { epoch, version: 0 }, voters: elected_in.voters.clone() };
        term.before = Some(elected_in);
        self.use_view(view);
        self.tell_view();
    }

    /// Stores the view of a claimant that is granted, or of a voter that agrees to a sounding, if that is the later one, and
    /// says whether it is. Whoever has this voter's grant is named by the view that it would bring to another contestant,
    /// also after a restart.
    pub(super) fn take_over_view(&mut self, view: &VoterView) -> bool {
        let own = self.majority.as_ref().and_then(|m| m.view.as_ref());
        let later = own.is_some_and(|own| view.stamp > own.stamp);
        if later {
            self.use_view(view.clone());
        }
        later
    }

    /// Stores a view, and uses it from now on.
    fn use_view(&mut self, view: VoterView) {
        let Some(m) = &mut self.majority else { return };
        let changed = m.view.as_ref().is_none_or(|known| known.voters != view.voters);
        m.view = Some(view.clone());
        self.dirty = true;
        if changed {
            self.note(Note::VotersChanged(view));
        }
    }

    /// A leader's view for everybody that it is connected with: those who are to become voters have to store it too.
    fn tell_view(&mut self) {
        let Some(view) = self.majority.as_ref().and_then(|m| m.view.clone()) else { return };
        let linked = self.ids(|m| m.linked || view.voters.contains(&m.peer.name));
        self.send_each(linked, &Body::Voters { view });
    }

    /// A member is connected: it needs the leader's view, and what a former life of it stored, it may have lost.
    pub(in crate::election::machine) fn tell_view_to_newcomer(&mut self, id: ProcessId) {
        let name = self.roster.get(id).map(|member| &member.peer.name);
        if let Some(term) = self.majority.as_mut().and_then(|m| m.term.as_mut())
            && let Some(name) = name
        {
            term.forget(name);
        }
        self.tell_view_to(id);
    }

    /// The leader's view, for one member.
    pub(in crate::election::machine) fn tell_view_to(&mut self, id: ProcessId) {
        if let Some(view) = self.majority.as_ref().and_then(|m| m.view.clone()) {
            self.send(id, Body::Voters { view });
        }
    }

    /// A leader's view. It is stored unless this process has a later one; who has no record yet recovers first.
    pub(super) fn learn_view(&mut self, from: ProcessId, epoch: Epoch, view: VoterView) {
        let by_version = self.mutant(Mutation::ViewsByVersion);
        let Some(m) = &self.majority else { return };
        let Some(own) = &m.view else { return };
        let newer = if by_version {
            view.stamp.version > own.stamp.version
                || view.stamp.version == own.stamp.version && view.stamp > own.stamp
        } else {
            view.stamp > own.stamp
        };
        if newer
            && epoch >= self.epoch
            && epoch >= view.stamp.epoch
            && !self.phase.leading()
            && self.resigned != Some((from, epoch))
        {
            self.use_view(view);
        }
    }

    /// A follower has said which view it stores: another one is sent anew.
    pub(super) fn view_stored(&mut self, by: ProcessId, stores: ViewStamp) {
        if !self.phase.leading() {
            return;
        }
        let Some(view) = self.majority.as_ref().and_then(|m| m.view.as_ref()) else { return };
        if view.stamp != stores {
            return self.tell_view_to(by);
        }
        self.change_view();
    }

    /// A majority of the view in use, and of the one before it, stores the view: it is committed.
    pub(super) fn committed(&mut self) {
        if let Some(term) = self.majority.as_mut().and_then(|m| m.term.as_mut()) {
            term.before = None;
            term.committed = true;
        }
        self.change_view();
    }

    /// Adds or removes one voter, when the view is committed and a majority of the voters was given the same `--voters`
    /// as this leader. Whom it adds is connected and stores the view already; it removes only when everybody is added. Of the voters that
    /// this makes, a majority is connected and stores the view: who has no record and recovers cannot renew the lease, and
    /// may need the one that would be removed for its recovery.
    fn change_view(&mut self) {
        let unsupported = self.mutant(Mutation::ChangedWithoutSupport);
        let overlap = self.mutant(Mutation::ChangesOverlap);
        let alone = self.mutant(Mutation::NoAgreement);
        let at_once = self.mutant(Mutation::ChangedAtOnce);
        let Some(m) = &mut self.majority else { return };
        let (Some(view), Some(term)) = (&m.view, &mut m.term) else { return };
        if !term.committed || term.before.is_some() && !overlap || m.target == view.voters {
            return;
        }
        let agree = term.flags.iter().filter(|(_, (target, _))| *target == m.fingerprint);
        if !view.has_majority(agree.map(|(name, _)| name.as_str())) && !alone {
            return;
        }
        let mut voters = view.voters.clone();
        let stores = |name: &&String| term.flags.get(*name).is_some_and(|(_, stamp)| *stamp == view.stamp);
        let connected = self.roster.iter().filter(|member| member.linked && member.state == State::Alive);
        let supporters: BTreeSet<&str> = connected
            .map(|member| &member.peer.name)
            .filter(stores)
            .chain([&self.me.name])
            .map(String::as_str)
            .collect();
        if at_once {
            voters = m.target.clone();
        } else if m.target.is_subset(&view.voters) {
            // Never itself: its own name is among those that it was given.
            let Some(leaves) = view.voters.difference(&m.target).next() else { return };
            voters.remove(leaves);
        } else {
            let mut join = m.target.difference(&view.voters);
            let Some(joins) = join.find(|name| supporters.contains(name.as_str())) else { return };
            voters.insert(joins.clone());
        }
        let stamp = ViewStamp { epoch: self.epoch, version: view.stamp.version.saturating_add(1) };
        let next = VoterView { stamp, voters };
        if !next.has_majority(supporters) && !unsupported && !at_once {
            return;
        }
        term.before = Some(view.clone());
        self.use_view(next);
        self.tell_view();
    }
}
