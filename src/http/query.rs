//! Reads the parameters of a query.

use crate::base::url::decode;

/// A parameter is there twice, or its value is badly encoded.
pub(super) struct Malformed;

/// The value of a query's parameter; none: it is not there. Other parameters are not looked at.
pub(super) fn parameter(query: &str, name: &str) -> Result<Option<String>, Malformed> {
    let mut found = None;
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if decode(&key.replace('+', " ")).as_deref() != Some(name) {
            continue;
        }
        if found.replace(decode(&value.replace('+', " ")).ok_or(Malformed)?).is_some() {
            return Err(Malformed);
        }
    }
    Ok(found)
}
