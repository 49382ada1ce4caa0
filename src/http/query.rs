//! Reads the parameters of a query.

/// A parameter is there twice, or its value is badly encoded.
pub(super) struct Malformed;

/// The value of a query's parameter; none: it is not there. Other parameters are not looked at.
pub(super) fn parameter(query: &str, name: &str) -> Result<Option<String>, Malformed> {
    let mut found = None;
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if decode(key).as_deref() != Some(name) {
            continue;
        }
        if found.replace(decode(value).ok_or(Malformed)?).is_some() {
            return Err(Malformed);
        }
    }
    Ok(found)
}

/// Undoes percent-encoding. None when it is malformed, or not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}
