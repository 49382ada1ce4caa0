//! Reads JSON as JSON: YAML's readers know no pairs of surrogates, and no key of more than 1,024 characters.

use super::builder::{Fault, Sink};
use super::tree::Scalar;
use serde::de::IgnoredAny;

/// Whether a text is one list or mapping in JSON, from its first character to its last.
pub fn is_json(text: &str) -> bool {
    text.starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Reads a text for which [`is_json`] holds; an error comes with its place in bytes.
///
/// Numbers stay as they are written, which no tree of serde_json's would keep. What is known to be JSON needs
/// no grammar any more: after commas, colons and spaces, each part is told by its first character.
pub fn read(text: &str, sink: &mut impl Sink) -> Result<(), (usize, Fault)> {
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let token = rest.get(..token_end(rest.as_bytes())).unwrap_or(rest);
        match token.as_bytes()[0] {
            b'{' => sink.map(0),
            b'[' => sink.list(0),
            b'}' | b']' => sink.end(),
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => Ok(()),
            b'"' => string(token).and_then(|text| sink.scalar(Scalar::Text(text.into()), 0)),
            _ => sink.scalar(Scalar::Plain(token.to_owned()), 0),
        }
        .map_err(|fault| (at, fault))?;
        at += token.len();
    }
    Ok(())
}

/// Where the first token of valid JSON ends.
fn token_end(text: &[u8]) -> usize {
    match text[0] {
        b'{' | b'[' | b'}' | b']' | b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => 1,
        b'"' => {
            let mut escaped = false;
            let end = text.iter().skip(1).position(|byte| {
                let ends = *byte == b'"' && !escaped;
                escaped = *byte == b'\\' && !escaped;
                ends
            });
            end.map_or(text.len(), |end| end + 2)
        }
        // A number, a truth value or null.
        _ => text.iter().position(|byte| b",]} \t\n\r".contains(byte)).unwrap_or(text.len()),
    }
}

/// What a string in its quotes means.
fn string(token: &str) -> Result<String, Fault> {
    serde_json::from_str(token).map_err(|_| {
        Fault::Syntax("half of a surrogate pair (\\ud800 to \\udfff) stands alone in this string".to_owned())
    })
}
