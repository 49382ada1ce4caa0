//! What a member announces to applications. The election carries it and does not look at it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most values that a process announces.
pub const ANNOUNCE_MAX: usize = 8;
/// The longest key, in bytes.
pub const ANNOUNCE_KEY_BYTES_MAX: usize = 32;
/// The longest value, in bytes.
pub const ANNOUNCE_VALUE_BYTES_MAX: usize = 256;

/// The key of the URL that clients of the leader are sent to.
pub const ANNOUNCED_URL: &str = "url";

/// The values that a process was given as `--announce`, by their keys.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct AnnouncedValues(pub BTreeMap<String, String>);

impl AnnouncedValues {
    /// Whether there is nothing to announce.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
