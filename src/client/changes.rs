//! The changes that a sidecar tells of, one after the other.

use super::api::{Api, Trouble};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;

/// How long one question waits for a change.
const POLL: Duration = Duration::from_millis(500);
/// How much longer its answer may take. A sidecar that stands still for more than both is silent. Both
/// together are less than the default lease, so a client stops before another leader may come.
const ANSWER: Duration = Duration::from_millis(500);

/// What a client is told: `/watch` has it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Told {
    /// All of it.
    pub(super) record: Map<String, Value>,
    pub(super) parts: Parts,
}

/// What this program reads of it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub(super) struct Parts {
    pub(super) version: String,
    pub(super) leader: Option<Named>,
    pub(super) is_leader: bool,
    pub(super) epoch: u64,
    #[serde(default)]
    pub(super) missed: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub(super) struct Named {
    pub(super) name: String,
}

/// The feed of one sidecar, and how far it was read.
pub(super) struct Changes<'a> {
    api: &'a Api,
    version: Option<String>,
}

impl<'a> Changes<'a> {
    pub(super) fn of(api: &'a Api) -> Changes<'a> {
        Changes { api, version: None }
    }

    /// The state at first, and then the next change. None: there was none for this long, or for a while.
    pub(super) fn next(&mut self, within: Duration) -> Result<Option<Told>, Trouble> {
        let path = match &self.version {
            Some(known) => {
                format!("/watch?timeout={}ms&after={known}", POLL.min(within).as_millis())
            }
            None => "/watch".to_owned(),
        };
        let told = self.ask(&path)?;
        let new = self.version.as_ref() != Some(&told.parts.version);
        self.version = Some(told.parts.version.clone());
        Ok(new.then_some(told))
    }

    /// The state, changed or not.
    pub(super) fn state(&mut self) -> Result<Told, Trouble> {
        let told = self.ask("/watch")?;
        self.version = Some(told.parts.version.clone());
        Ok(told)
    }

    fn ask(&self, path: &str) -> Result<Told, Trouble> {
        let record = self.api.json(path, &[200], POLL + ANSWER)?;
        let parts: Parts = self.api.understood(path, &record)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        if parts.version.is_empty() || !parts.version.bytes().all(plain) {
            return Err(self.api.garbage(path, &"the version has other characters than a version has"));
        }
        Ok(Told { record, parts })
    }
}
