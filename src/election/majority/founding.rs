//! The first start: the voters found their cluster in two steps, clauses 22 and 23.

use super::Majority;
use super::recovery_answers::{Recovery, RecoveryAnswer};
use crate::election::clauses::Clauses;
use crate::election::core::{Core, Phase};
use crate::election::{Flags, Notification, Now, ProcessId, RecoveredState, VoterConfig};

impl Majority {
    /// The configuration that the flags name: of a first start.
    pub(super) fn flagged(&self) -> VoterConfig {
        VoterConfig::first(self.target.clone(), self.given.lease_ms)
    }
}

impl Core<Majority> {
    /// Whether this process may take the first step of a first start. Discovery has to have answered. A
    /// process whose list names it alone waits for peers as long as at any start.
    pub(super) fn may_begin_founding(&self, recovery: &Recovery) -> bool {
        let m = &self.protocol;
        self.dial_targets.discovery_complete
            && (m.target.len() > 1 || !matches!(self.phase, Phase::Asking(_)))
            && recovery.is_first_start(
                &self.me.name,
                &m.flagged(),
                m.given,
                self.linked_names(),
                self.clauses,
            )
    }

    /// The first of two durable steps: it has asked all, and has not voted (clause 22).
    pub(super) fn begin_founding(&mut self, now: Now) {
        let m = &mut self.protocol;
        if self.settings.may_found(m.target.len()) {
            let config = m.flagged();
            self.use_state(RecoveredState::Founding(config));
            // The others may have taken this step already.
            return self.ask_to_recover(now);
        }
        let said = m.recovery.as_mut().is_none_or(|recovery| std::mem::replace(&mut recovery.refused, true));
        if !said {
            self.note(Notification::FoundingRefused(self.settings.founding));
        }
    }

    /// A process asks all others anew once it takes the first step of a first start. One that has taken it
    /// before, and waits for the others, need not wait for its own next round to hear of that. It asks back
    /// those alone that have not said yet that they have taken it, and once for a round of theirs in a round
    /// of its own. So two do not ask each other without end, also where their answers come too late to count.
    pub(super) fn ask_back(&mut self, asker: ProcessId, round: u32) {
        let founds = matches!(self.protocol.state, RecoveredState::Founding(_));
        let name = self.members.get(asker).map(|member| member.peer.name.as_str());
        let (Some(name), Some(recovery)) = (name, &mut self.protocol.recovery) else { return };
        if founds && recovery.may_ask_back(name, round) {
            self.ask_one_to_recover(asker);
        }
    }
}

impl Recovery {
    /// Whether this is a first start, as far as every known peer can tell. All others of its list have
    /// answered, and were started with the same list and lease. All connected processes have answered too. No
    /// process has a vote yet.
    fn is_first_start<'a>(
        &self,
        me: &str,
        flagged: &VoterConfig,
        given: Flags,
        mut connected: impl Iterator<Item = &'a str>,
        clauses: impl Clauses,
    ) -> bool {
        let answer = |name: &str| self.answers.get(name);
        let agrees =
            |name: &str| name == me || answer(name).is_some_and(|a| clauses.has_same_flags(a.flags, given));
        let forbidden = self.highest().is_some() && clauses.record_forbids_founding();
        let connected_answered = connected.all(|name| answer(name).is_some());
        !forbidden && clauses.may_begin_founding(flagged, agrees, connected_answered)
    }

    /// Whether to ask a member back: it has not said that it has taken a step of a first start, and has not
    /// been asked back for its present round since this process's own began.
    fn may_ask_back(&mut self, name: &str, round: u32) -> bool {
        let empty = |answer: &RecoveryAnswer| answer.state == RecoveredState::Empty;
        self.answers.get(name).is_none_or(empty)
            && self.asked_back.insert(name.to_owned(), round) != Some(round)
    }

    /// The configuration of a process that is founding, once it may vote. It is its own, if all others of the
    /// list are founding with it. Otherwise it is that of a process of the list that may vote already.
    pub(super) fn founded<'a>(&'a self, me: &str, own: &'a VoterConfig) -> Option<&'a VoterConfig> {
        let listed = self.answers.iter().filter(|(name, _)| own.voters.contains(*name));
        let founded =
            listed.filter_map(|(_, answer)| answer.state.founded()).max_by_key(|config| config.version);
        founded.or(Some(own).filter(|_| self.not_founding(me, own).next().is_none()))
    }

    /// The other voters of its own list that have not said that they found with it.
    pub(super) fn not_founding<'a>(
        &'a self,
        me: &'a str,
        own: &'a VoterConfig,
    ) -> impl Iterator<Item = &'a String> {
        own.voters.iter().filter(move |name| {
            let state = self.answers.get(*name).map(|answer| &answer.state);
            *name != me && !matches!(state, Some(RecoveredState::Founding(config)) if config == own)
        })
    }
}
