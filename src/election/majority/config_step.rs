//! The next configuration of a leader: one voter more or less, or one step of the lease (clauses 20, 21 and
//! 26).

use crate::election::clauses::Clauses;
use crate::election::{ConfigVersion, Flags, VoterConfig};
use std::collections::BTreeSet;

/// What a leader knows when its configuration is committed.
pub(super) struct StepInputs<'a> {
    pub(super) config: &'a VoterConfig,
    /// What this process was started with: the voters, and what stands for them in messages.
    pub(super) target: &'a BTreeSet<String>,
    pub(super) voters: u64,
    /// What each voter that is known was started with, this process included.
    pub(super) given: Vec<(&'a str, Flags)>,
    /// The processes that are connected and store the configuration, this process included.
    pub(super) supporters: BTreeSet<&'a str>,
}

impl StepInputs<'_> {
    /// The next configuration, if there is something to change. The lease changes first, and alone.
    pub(super) fn next(&self, version: ConfigVersion, clauses: impl Clauses) -> Option<VoterConfig> {
        let config = self.config;
        let agreed = |same: &dyn Fn(Flags) -> bool| {
            let names = self.given.iter().filter(|(_, flags)| same(*flags)).map(|(name, _)| *name);
            clauses.is_agreed(config, names)
        };
        let leases = self.given.iter().map(|(_, flags)| flags.lease_ms);
        let target = leases.into_iter().find(|lease| agreed(&|flags| flags.lease_ms == *lease));
        if let Some(target) = target.filter(|ms| (config.lease_ms, config.bound_ms) != (*ms, *ms)) {
            let (lease_ms, bound_ms) = clauses.next_lease(config, target)?;
            return Some(VoterConfig { version, lease_ms, bound_ms, voters: config.voters.clone() });
        }
        let same_voters = agreed(&|flags| flags.voters == self.voters);
        if config.lease_ms != config.bound_ms || config.voters == *self.target || !same_voters {
            return None;
        }
        let voters = clauses.next_voters(self.next_voters(), self.target)?;
        let next = VoterConfig { version, voters, ..config.clone() };
        clauses.is_supported(&next, self.supporters.iter().copied()).then_some(next)
    }

    /// The voters after one step: first the voters that support the configuration join, then the others
    /// leave. This process never leaves itself out, since it was started with its own name among the voters.
    fn next_voters(&self) -> Option<BTreeSet<String>> {
        let mut voters = self.config.voters.clone();
        if self.target.is_subset(&voters) {
            voters.remove(self.config.voters.difference(self.target).next()?);
        } else {
            let mut joins = self.target.difference(&self.config.voters);
            voters.insert(joins.find(|name| self.supporters.contains(name.as_str()))?.clone());
        }
        Some(voters)
    }
}
