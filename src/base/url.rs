//! URLs of applications: where clients of the leader are sent, and what is on this host.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use ureq::http::Uri;
use ureq::http::uri::Authority;

/// Whether a text is `http://HOST[:PORT][/PATH]`, or the same with `https`. It begins with its origin, so nothing
/// that is appended behind a slash leads to another host. It is ASCII, and has no user, query, fragment or
/// `..` in it.
pub fn is_application_url(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return false };
    matches!(scheme, "http" | "https")
        && is_host_and_port(authority)
        && text.starts_with(&format!("{scheme}://{authority}"))
        && text.is_ascii()
        && !text.contains(['#', '?'])
        && !climbs(uri.path())
}

/// Whether an authority is a host, and perhaps a port of 16 bits: it has no user.
pub fn is_host_and_port(authority: &Authority) -> bool {
    let port = authority.port().map(|port| format!(":{port}")).unwrap_or_default();
    !authority.host().is_empty() && authority.as_str() == format!("{}{port}", authority.host())
}

/// What an address, or `localhost`, stands for; none: it is another name. Without a port it is 80.
pub fn addresses(uri: &Uri) -> Option<Vec<SocketAddr>> {
    let (host, port) = (uri.host()?, uri.port_u16().unwrap_or(80));
    if host.eq_ignore_ascii_case("localhost") {
        let both = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        return Some(both.map(|ip| SocketAddr::new(ip, port)).to_vec());
    }
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    Some(vec![SocketAddr::new(ip, port)])
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
            assert_eq!(is_application_url(good), !good.ends_with(".."), "{good}");
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
            "http://a/\u{e4}",
            "http://a\r\nb",
        ] {
            assert!(!is_application_url(bad), "{bad:?}");
        }
    }
}
