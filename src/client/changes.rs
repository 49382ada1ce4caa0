//! The changes that a sidecar tells of, one after the other.

use super::api::{Api, Trouble};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;

/// How long one question waits for a change.
pub(super) const POLL: Duration = Duration::from_millis(500);
/// How much longer its answer may take. A sidecar that stands still for more than both is silent. Where this
/// process leads, an answer may take no longer than its lease lasts.
const ANSWER: Duration = Duration::from_millis(500);
/// Any answer may take so long.
const ANSWER_LEAST: Duration = Duration::from_millis(50);

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
    /// Another change has followed already.
    #[serde(default)]
    pub(super) past: bool,
    valid_for_ms: Option<u64>,
}

impl Parts {
    /// Whether this process leads, as far as it knows.
    pub(super) fn leads(&self) -> bool {
        self.is_leader && !self.past
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub(super) struct Named {
    pub(super) name: String,
}

/// The feed of one sidecar, and how far it was read.
pub(super) struct Changes<'a> {
    api: &'a Api,
    version: Option<String>,
    /// For how long this process leads by the last answer.
    leads_for: Option<Duration>,
}

impl<'a> Changes<'a> {
    pub(super) fn of(api: &'a Api) -> Changes<'a> {
        Changes { api, version: None, leads_for: None }
    }

    /// The first state, then each change. None: no change in this time, or in [`POLL`].
    pub(super) fn next(&mut self, within: Duration) -> Result<Option<Told>, Trouble> {
        let known = self.version.clone();
        let told = match &known {
            Some(known) => {
                let wait = POLL.min(within).min(self.leads_for.unwrap_or(POLL) / 2);
                let path = format!("/watch?timeout={}ms&after={known}", wait.as_millis());
                self.ask(&path, wait + ANSWER.min(within))
            }
            None => self.ask("/watch", ANSWER.min(within)),
        };
        Ok(Some(told?).filter(|told| known.as_ref() != Some(&told.parts.version)))
    }

    /// The state, changed or not.
    pub(super) fn state(&mut self) -> Result<Told, Trouble> {
        self.ask("/watch", ANSWER)
    }

    fn ask(&mut self, path: &str, within: Duration) -> Result<Told, Trouble> {
        let within = within.min(self.leads_for.take().unwrap_or(within)).max(ANSWER_LEAST);
        let record = self.api.json(path, &[200], within)?;
        let parts: Parts = self.api.understood(path, &record)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        if parts.version.is_empty() || !parts.version.bytes().all(plain) {
            return Err(self.api.garbage(path, &"the version has other characters than a version has"));
        }
        self.version = Some(parts.version.clone());
        self.leads_for = parts.valid_for_ms.filter(|_| parts.leads()).map(Duration::from_millis);
        Ok(Told { record, parts })
    }
}
