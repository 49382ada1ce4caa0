//! What a process keeps over a restart: its record, and where its peers were.

use crate::election::{Entry, Epoch, Peer, ProcessId, State, VoterConfig};
use serde::{Deserialize, Serialize};

/// What is durable (tests/bully-readme.txt, note 5). It is small, and written only when it changes: a
/// leader's heartbeats wait for it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The cluster that it belongs to.
    pub cluster: String,
    /// This process's id.
    pub id: ProcessId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Its vote; none in `classic`, and while a voter without a record has not recovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vote: Option<VoteRecord>,
}

/// What a voter keeps over a restart, besides its id and epoch.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct VoteRecord {
    /// Its name: a folder that was copied from another voter names that one.
    pub name: String,
    /// Whether it still takes part in its first start: it has never voted then.
    pub founding: bool,
    /// Whether a promise may be out that no crash evidence frees (rule 2 of docs/safety/holds.md). A record
    /// of an older version does not say, so it may be.
    #[serde(default = "unsaid")]
    pub firm: bool,
    /// The configuration that it stores.
    pub config: VoterConfig,
}

fn unsaid() -> bool {
    true
}

/// Places to ask first after a restart. It is written aside, may be lost, and is never believed.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct KnownPeers {
    /// The cluster of these peers.
    pub cluster: String,
    /// The leader that this process last followed, or itself.
    pub leader: Option<Peer>,
    /// The other members.
    pub members: Vec<Entry>,
}

impl KnownPeers {
    /// The members that the failure detector holds alive.
    pub fn alive(&self) -> impl Iterator<Item = &Peer> {
        self.members.iter().filter(|entry| entry.state == State::Alive).map(|entry| &entry.peer)
    }
}
