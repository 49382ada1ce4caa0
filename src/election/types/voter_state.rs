//! What a voter knows from its record (`--safety majority`).

use crate::election::{VoteRecord, VoterConfig};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a process knows from its record, as it tells a voter without one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum RecoveredState {
    /// It has no record either.
    #[default]
    Empty,
    /// It has stored that it takes part in a first start, with this configuration. It has never voted.
    Founding(VoterConfig),
    /// It may have voted. This is the configuration that it stores.
    Founded(VoterConfig),
}

impl RecoveredState {
    /// What a record says to a process that was started with this list and lease. A first start that was not
    /// finished goes on with another lease, if the list is the same: that process has never voted.
    pub(in crate::election) fn of(
        record: Option<&VoteRecord>,
        list: &BTreeSet<String>,
        lease_ms: u32,
    ) -> RecoveredState {
        match record {
            None => RecoveredState::Empty,
            Some(VoteRecord { founding: false, config, .. }) => RecoveredState::Founded(config.clone()),
            Some(VoteRecord { config, .. }) if config.voters == *list => {
                RecoveredState::Founding(VoterConfig::first(list.clone(), lease_ms))
            }
            Some(VoteRecord { config, .. }) => RecoveredState::Founding(config.clone()),
        }
    }

    /// The configuration of a process that may vote.
    pub fn founded(&self) -> Option<&VoterConfig> {
        match self {
            RecoveredState::Founded(config) => Some(config),
            RecoveredState::Empty | RecoveredState::Founding(_) => None,
        }
    }
}
