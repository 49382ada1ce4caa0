//! The URL of an application: where clients of the leader are sent.

use ureq::http::Uri;

/// Reads `http://HOST[:PORT][/PATH]`, or the same with `https`. The text begins with its origin, so nothing
/// that is appended behind a slash leads to another host. None: it is something else, or has a user, a query,
/// a fragment or `..` in it.
pub fn application_url(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    let port = authority.port().map(|port| format!(":{port}")).unwrap_or_default();
    let plain = authority.as_str() == format!("{}{port}", authority.host()) && !authority.host().is_empty();
    let whole = text.starts_with(&format!("{scheme}://{authority}")) && !text.contains(['#', '?']);
    let http = matches!(scheme, "http" | "https");
    (http && plain && whole && !climbs(uri.path())).then_some(uri)
}

/// Whether a path has a part `..`, also one that a server may decode to it.
pub fn climbs(path: &str) -> bool {
    let Some(decoded) = decode(path) else { return true };
    decoded.split(['/', '\\']).any(|part| part == "..")
}

/// Undoes percent-encoding. None when it is malformed, or not UTF-8.
pub fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_applications_url_is_an_origin_and_perhaps_a_path() {
        for good in
            ["http://10.0.0.1:8080", "https://a.b", "http://[fd00::1]:80/", "http://a/b/c/", "http://a:1/.."]
        {
            assert_eq!(application_url(good).is_some(), !good.ends_with(".."), "{good}");
        }
        for bad in [
            "",
            "a",
            "10.0.0.1:8080",
            "/a",
            "//a",
            "http:",
            "http://",
            "http://:80",
            "ftp://a",
            "http://u@a",
            "http://u:p@a",
            "http://a?b",
            "http://a/b?c",
            "http://a#b",
            "http://a/b#c",
            "http://a b",
            "http://a:99999",
            "http://a:x",
            "http://a/../b",
            "http://a/%2e./b",
            "http://a/b%2f..%5cc",
            "http://a/%zz",
            "http://\u{e4}",
            "http://a\r\nb",
        ] {
            assert_eq!(application_url(bad), None, "{bad:?}");
        }
    }
}
