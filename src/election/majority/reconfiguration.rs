//! The configuration: clauses 18 to 21 and 26. A new leader writes it again under its own epoch, then changes
//! it in steps.

use super::Majority;
use super::config_step::StepInputs;
use crate::election::clauses::Clauses;
use crate::election::core::{Core, Heard, Phase};
use crate::election::{
    Ballot, Body, ConfigVersion, Flags, Notification, Now, ProcessId, RecoveredState, Stage, State, Timer,
    VoteRequest, VoterConfig,
};

impl Core<Majority> {
    /// A new leader writes the configuration that elected it under its own epoch. It changes nothing before a
    /// majority stores that. Otherwise a configuration that an earlier leader did not commit could come back
    /// (clause 19).
    pub(super) fn write_own_config(&mut self) {
        let Some(config) = self.protocol.config().cloned() else { return };
        if !self.clauses.writes_own_config() {
            return self.protocol.leading.iter_mut().for_each(|leading| leading.committed = true);
        }
        let version = self.clauses.first_version(self.epoch, config.version);
        self.write_config(VoterConfig { version, ..config });
    }

    /// Stores a configuration of this leader's own, and tells it to every process that it is connected with.
    fn write_config(&mut self, config: VoterConfig) {
        let clauses = self.clauses;
        self.use_state(RecoveredState::Founded(config.clone()));
        self.protocol.leading.iter_mut().for_each(|leading| leading.begin_config(clauses));
        let members = self.ids(|m| m.linked || config.voters.contains(&m.peer.name));
        self.send_each(members, &Body::Configuration { config });
    }

    /// What this process knows from its record from now on; durable before anything that depends on it
    /// leaves.
    pub(super) fn use_state(&mut self, state: RecoveredState) {
        let before = std::mem::replace(&mut self.protocol.state, state.clone());
        self.outbox.dirty = true;
        let (Some(config), before) = (state.founded(), before.founded()) else { return };
        if before.is_none_or(|before| before.voters != config.voters) {
            self.note_voters();
        }
        if before.is_none_or(|before| before.lease_ms != config.lease_ms) {
            self.note_lease();
        }
    }

    /// Tells the log which voters count, and which this process was started with.
    pub(super) fn note_voters(&mut self) {
        if let Some(config) = self.protocol.config().cloned() {
            let given = self.protocol.target.clone();
            self.note(Notification::VotersChanged { config, given });
        }
    }

    /// Tells the log which lease the voters use, and whether this process was started with another one.
    pub(super) fn note_lease(&mut self) {
        let given_ms = self.protocol.given.lease_ms;
        if let Some(&VoterConfig { lease_ms, bound_ms, .. }) = self.protocol.config() {
            self.note(Notification::LeaseInUse { lease_ms, bound_ms, given_ms });
        }
    }

    /// A member is connected. It needs this leader's configuration, and may have lost what a former
    /// incarnation stored.
    pub(super) fn tell_config_to_newcomer(&mut self, id: ProcessId) {
        let Some(leading) = &mut self.protocol.leading else { return };
        if let Some(member) = self.members.get(id) {
            leading.stores.remove(&member.peer.name);
        }
        self.tell_config_to(id);
    }

    /// This process's configuration, for one member.
    pub(super) fn tell_config_to(&mut self, id: ProcessId) {
        if let Some(config) = self.protocol.config().cloned() {
            self.send(id, Body::Configuration { config });
        }
    }

    /// A process that neither leads nor has asked for votes stores every later configuration of the leader
    /// that it follows. That leader has written it under its own epoch (clauses 19, 29).
    pub(super) fn on_configuration(&mut self, by: Heard, config: &VoterConfig) {
        let Heard { from, epoch, .. } = by;
        let of_leader = self.follows(from, epoch) && config.version.epoch == epoch;
        if !self.clauses.counts_as_leaders(of_leader) {
            return;
        }
        let requests =
            self.protocol.campaign.as_ref().is_some_and(|campaign| campaign.stage() == Stage::Vote);
        if !self.phase.leading() && !requests {
            self.adopt_config(config);
        }
    }

    /// A process that may be no candidate knows no leader. The leader may be a voter that only a later
    /// configuration names, and no word of it counts before that (clause 29). So this process asks the voters
    /// of its own configuration, as a candidate does by a pre-vote (clause 24). It is no contender by that.
    pub(super) fn ask_for_config(&mut self, now: Now) {
        let Some(config) = self.protocol.config().cloned() else { return };
        if self.phase != Phase::Deferring || self.may_campaign() || !self.clauses.asks_for_config() {
            return;
        }
        let ballot = self.ballot(now, Stage::PreVote);
        self.protocol.config_asked = Some(ballot);
        let voters = self.ids(|m| m.linked && config.voters.contains(&m.peer.name));
        let request = VoteRequest { ballot, contender: false, transfer: None, config };
        self.send_each(voters, &Body::VoteRequest { request });
    }

    /// A voter's answer to that question; says whether it is one.
    pub(super) fn takes_config_asked(
        &mut self,
        voter: &str,
        ballot: Ballot,
        own: Option<&VoterConfig>,
    ) -> bool {
        if self.protocol.config_asked != Some(ballot) {
            return false;
        }
        let asked = self.protocol.config().is_some_and(|config| config.voters.contains(voter));
        if let Some(own) = own
            && self.phase == Phase::Deferring
            && self.clauses.counts_as_voter(asked)
            && self.clauses.takes_later_config()
        {
            self.adopt_config(own);
        }
        true
    }

    /// Stores a configuration if it is a later one (clauses 7, 18, 24); says whether it is.
    pub(super) fn adopt_config(&mut self, config: &VoterConfig) -> bool {
        let own = self.protocol.config();
        let later = own.is_some_and(|own| self.clauses.is_later(config.version, own.version));
        if later {
            self.use_state(RecoveredState::Founded(config.clone()));
        }
        later
    }

    /// A leader whose configuration is committed writes the next one, if there is one.
    pub(super) fn reconfigure(&mut self, now: Now) {
        if let Some(next) = self.next_config(now) {
            self.write_config(next);
            if let Some(left) =
                self.protocol.leading.as_ref().map(|leading| leading.lease_until.since(now.at))
            {
                self.arm(Timer::Lease, left);
            }
            self.on_heartbeat_timer(now);
        }
    }

    fn next_config(&self, now: Now) -> Option<VoterConfig> {
        let (m, me) = (&self.protocol, self.me.name.as_str());
        let (config, leading) = (m.config()?, m.leading.as_ref()?);
        // What a majority has promised firmly in this term says nothing of a hold of an earlier one.
        let firm = leading.firm && !self.held_since_earlier_term();
        if !leading.committed || !self.clauses.changes_under_hold(self.held(), firm) {
            return None;
        }
        // This comes with each acknowledgement, and all were started with the same nearly always.
        let same_lease = |flags: &Flags| flags.lease_ms == config.lease_ms;
        let as_given = config.voters == m.target && same_lease(&m.given) && m.flags.values().all(same_lease);
        if as_given && config.lease_ms == config.bound_ms {
            return None;
        }
        let version = ConfigVersion { epoch: self.epoch, version: config.version.version.checked_add(1)? };
        let flags = m.flags.iter().filter_map(|(id, flags)| Some((self.voter(now, *id)?, *flags)));
        let live = self.members.iter().filter(|member| member.linked && member.state == State::Alive);
        let stores =
            live.map(|member| member.peer.name.as_str()).filter(|name| leading.stores.contains(*name));
        let committed = StepInputs {
            config,
            target: &m.target,
            voters: m.given.voters,
            given: flags.chain([(me, m.given)]).collect(),
            supporters: stores.chain([me]).collect(),
        };
        committed.next(version, self.clauses)
    }
}
