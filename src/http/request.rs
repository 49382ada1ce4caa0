//! Reads the head of a request: bytes in, a [`Request`] or a refusal out.

use tiny_http::Method;

/// The longest head of a request, in bytes: request line and headers.
pub const HEAD_BYTES_MAX: usize = 8 * 1024;
/// The most headers that a request may have.
pub const HEADERS_MAX: usize = 64;

/// The path whose clients are sent to the leader's application; others may follow behind it.
pub(super) const REDIRECT: &str = "/redirect";

/// What a path asks for of the leader's application; none: it asks this process.
pub(super) fn redirected(path: &str) -> Option<&str> {
    path.strip_prefix(REDIRECT).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A request, as far as the status API looks at it. Only one for `/redirect` may have a body, which is not
/// read: the connection ends with the reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request<'a> {
    /// Its method; never [`Method::NonStandard`].
    pub method: Method,
    /// The path that it asks for, as it was sent: `/leader`, or `*` of an OPTIONS request.
    pub path: &'a str,
    /// What follows the `?`.
    pub query: Option<&'a str>,
    /// Whether its HTTP version is 1.0.
    pub version_1_0: bool,
    /// Whether the connection goes on after the reply.
    pub keep_alive: bool,
    /// Whether it accepts Server-Sent Events.
    pub events: bool,
    /// The version of the last event that it has seen, as it says.
    pub last_event_id: Option<&'a [u8]>,
    /// Whether it has an Origin, or a browser says that another page than the address line asks: it comes
    /// from a page.
    pub origin: bool,
    /// Whether its Host is localhost or a loopback address.
    pub loopback_host: bool,
}

/// Why a request is refused before it is looked at. The connection ends with it: where the next request would
/// begin is not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadRequest {
    /// The reply's status.
    pub status: u16,
    /// What was wrong, and what is expected.
    pub message: String,
}

fn refusal<T>(status: u16, message: impl Into<String>) -> Result<T, BadRequest> {
    Err(BadRequest { status, message: message.into() })
}

/// The request at the beginning of `received` and how many bytes it takes; none when it is not complete.
pub fn parse(received: &[u8]) -> Result<Option<(Request<'_>, usize)>, BadRequest> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    let consumed = match head.parse(received) {
        Ok(httparse::Status::Complete(consumed)) => consumed,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(malformed(error, received)),
    };
    // A complete head has all three.
    let (Some(method), Some(target), Some(minor)) = (head.method, head.path, head.version) else {
        return refusal(400, "the request line is incomplete; expected \"GET /leader HTTP/1.1\"");
    };
    let read = read_headers(head.headers, minor)?;
    let method = match method.parse() {
        Ok(Method::NonStandard(_)) | Err(()) => {
            return refusal(
                501,
                "unknown method; there are GET, HEAD, OPTIONS, and for applications POST, PUT and DELETE",
            );
        }
        Ok(method) => method,
    };
    let Some((path, query)) = split_target(target, &method) else {
        return refusal(400, "the request's target is not a path; expected one such as /leader");
    };
    let redirected = redirected(path).is_some();
    if let Some(why) = read.body.filter(|_| !redirected) {
        return refusal(400, why);
    }
    let version_1_0 = minor == 0;
    let keep_alive = !read.close && read.body.is_none() && (!version_1_0 || read.keep_alive);
    let (events, last_event_id) = (read.events, read.last_event_id);
    let (origin, loopback_host) = (read.origin, read.loopback_host);
    let request = Request {
        method,
        path,
        query,
        version_1_0,
        keep_alive,
        events,
        last_event_id,
        origin,
        loopback_host,
    };
    Ok(Some((request, consumed)))
}

/// What the headers say that matter. The first two are of Connection.
#[derive(Default)]
struct Headers<'a> {
    close: bool,
    keep_alive: bool,
    events: bool,
    last_event_id: Option<&'a [u8]>,
    origin: bool,
    loopback_host: bool,
    /// Why a request with this body is refused.
    body: Option<&'static str>,
}

/// Checks the headers that matter.
fn read_headers<'a>(headers: &[httparse::Header<'a>], minor: u8) -> Result<Headers<'a>, BadRequest> {
    let mut read = Headers::default();
    let mut hosts = 0;
    for header in headers {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("Host") {
            hosts += 1;
            read.loopback_host = is_loopback(header.value.trim_ascii());
        } else if is("Origin") || is("Sec-Fetch-Site") && header.value != b"none" {
            read.origin = true;
        } else if is("Connection") {
            for option in header.value.split(|byte| *byte == b',') {
                let option = option.trim_ascii();
                read.close |= option.eq_ignore_ascii_case(b"close");
                read.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if is("Accept") {
            read.events |= header.value.split(|byte| *byte == b',').any(accepts_events);
        } else if is("Last-Event-ID") {
            read.last_event_id = Some(header.value.trim_ascii());
        } else if is("Transfer-Encoding") {
            read.body = Some("no request to this port has a body; leave Transfer-Encoding out");
        } else if is("Content-Length") {
            let value = header.value.trim_ascii();
            if value.is_empty() || value.iter().any(|byte| *byte != b'0') {
                read.body = Some("no request to this port has a body; Content-Length must be 0 or left out");
            }
        }
    }
    if hosts > 1 || (minor > 0 && hosts == 0) {
        return refusal(400, "a request of HTTP/1.1 has exactly one Host header");
    }
    Ok(read)
}

/// Whether a Host names this host by loopback: localhost, or an address with or without a port.
fn is_loopback(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let ip = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || ip.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// Whether one part of an Accept header names Server-Sent Events, and not with a weight of zero.
fn accepts_events(accepted: &[u8]) -> bool {
    let mut parts = accepted.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(b"text/event-stream"));
    let zero = |part: &[u8]| {
        let weight = part.strip_prefix(b"q=").or(part.strip_prefix(b"Q="));
        weight.is_some_and(|weight| weight.iter().all(|byte| matches!(byte, b'0' | b'.')))
    };
    named && !parts.any(zero)
}

/// Path and query of a target: `/path?query`, the same behind `http://host`, or the `*` of OPTIONS. A CONNECT
/// asks for `host:port`, which is passed on as a path: there is none such.
fn split_target<'a>(target: &'a str, method: &Method) -> Option<(&'a str, Option<&'a str>)> {
    let target = if target.starts_with('/')
        || *method == Method::Connect
        || (target == "*" && *method == Method::Options)
    {
        target
    } else {
        let (scheme, rest) = target.split_once("://")?;
        if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
            return None;
        }
        match rest.find(['/', '?']) {
            Some(start) if rest.as_bytes()[start] == b'/' => &rest[start..],
            Some(start) => return Some(("/", Some(&rest[start + 1..]))),
            None => "/",
        }
    };
    Some(match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    })
}

fn malformed(error: httparse::Error, received: &[u8]) -> BadRequest {
    let (status, message) = match error {
        httparse::Error::TooManyHeaders => {
            (431, format!("the request has more than {HEADERS_MAX} headers; send fewer"))
        }
        httparse::Error::Version if names_http(received) => {
            (505, "this port speaks HTTP/1.1 and HTTP/1.0 only; send one of them".to_owned())
        }
        _ => (400, format!("the request's head is malformed: {error}; expected a request of HTTP/1.1")),
    };
    BadRequest { status, message }
}

/// Whether the request line, malformed or not, has a version of HTTP where its version belongs.
fn names_http(received: &[u8]) -> bool {
    let start = received.trim_ascii_start();
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or(start);
    line.windows(6).any(|window| window == b" HTTP/")
}

/// The refusal of a head that is longer than [`HEAD_BYTES_MAX`].
pub fn too_large(received: &[u8]) -> BadRequest {
    let (status, what) =
        if received.trim_ascii_start().contains(&b'\n') { (431, "head") } else { (414, "request line") };
    let message = format!("the request's {what} is longer than {HEAD_BYTES_MAX} bytes; send a shorter one");
    BadRequest { status, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> (Request<'_>, usize) {
        parse(text.as_bytes()).unwrap().unwrap_or_else(|| panic!("incomplete: {text:?}"))
    }

    #[test]
    fn reads_requests() {
        let host = "Host: a\r\n";
        #[rustfmt::skip]
        let table = [
            // request line, headers, method, path, query, keep alive
            ("GET /leader HTTP/1.1", host, Method::Get, "/leader", None, true),
            ("HEAD / HTTP/1.1", host, Method::Head, "/", None, true),
            ("OPTIONS * HTTP/1.1", host, Method::Options, "*", None, true),
            ("CONNECT a:80 HTTP/1.1", host, Method::Connect, "a:80", None, true),
            ("GET /is-leader?standby=204 HTTP/1.1", host,
                Method::Get, "/is-leader", Some("standby=204"), true),
            ("GET /a?b?c HTTP/1.1", host, Method::Get, "/a", Some("b?c"), true),
            ("GET http://a:1/leader?x HTTP/1.1", host, Method::Get, "/leader", Some("x"), true),
            ("GET HTTPS://a HTTP/1.1", host, Method::Get, "/", None, true),
            ("GET http://a?x=/y HTTP/1.1", host, Method::Get, "/", Some("x=/y"), true),
            ("GET / HTTP/1.1", "Host: a\r\nConnection: close\r\n", Method::Get, "/", None, false),
            ("GET / HTTP/1.1", "Host: a\r\nconnection: TE , CLOSE\r\n", Method::Get, "/", None, false),
            ("GET / HTTP/1.1", "Host: a\r\nConnection: upgrade\r\n", Method::Get, "/", None, true),
            ("GET / HTTP/1.0", "", Method::Get, "/", None, false),
            ("GET / HTTP/1.0", "Connection: Keep-Alive\r\n", Method::Get, "/", None, true),
            ("GET / HTTP/1.0", "Connection: keep-alive, close\r\n", Method::Get, "/", None, false),
            ("POST /leader HTTP/1.1", "Host: a\r\nContent-Length: 0\r\n",
                Method::Post, "/leader", None, true),
            ("GET / HTTP/1.1", "Host: a\r\nExpect: 100-continue\r\n", Method::Get, "/", None, true),
        ];
        for (line, headers, method, path, query, keep_alive) in table {
            let text = format!("{line}\r\n{headers}\r\nNEXT");
            let (request, consumed) = request(&text);
            assert_eq!(consumed, text.len() - 4, "{text:?}");
            assert_eq!((&request.method, request.path, request.query), (&method, path, query), "{text:?}");
            assert_eq!(request.keep_alive, keep_alive, "{text:?}");
            assert_eq!(request.version_1_0, line.ends_with("1.0"), "{text:?}");
            for length in 0..consumed {
                assert_eq!(parse(&text.as_bytes()[..length]), Ok(None), "{:?}", &text[..length]);
            }
        }
    }

    #[test]
    fn sees_which_clients_take_events() {
        let table = [
            ("", false, None),
            ("Accept: */*\r\n", false, None),
            ("accept: text/html, Text/Event-Stream;q=0.5\r\n", true, None),
            ("Accept: text/event-stream;q=0.000, */*\r\n", false, None),
            ("Accept: text/event-stream\r\nLast-Event-ID:  a-1 \r\n", true, Some(&b"a-1"[..])),
        ];
        for (headers, events, id) in table {
            let text = format!("GET /watch HTTP/1.1\r\nHost: a\r\n{headers}\r\n");
            let (request, _) = request(&text);
            assert_eq!((request.events, request.last_event_id), (events, id), "{headers:?}");
        }
    }

    #[test]
    fn refuses_what_is_malformed_or_has_a_body() {
        let many = "a: b\r\n".repeat(HEADERS_MAX);
        let enough = "a: b\r\n".repeat(HEADERS_MAX - 1);
        request(&format!("GET / HTTP/1.1\r\nHost: a\r\n{enough}\r\n"));
        let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n");
        #[rustfmt::skip]
        let table: &[(u16, &str)] = &[
            (400, "\x16\x03\x01\x02\x00\x01"),
            (400, "GET\r\n\r\n"),
            (400, "GET /\r\n\r\n"),
            (400, "GET / FTP/1.1\r\n\r\n"),
            (400, "GET / HTTP/1.1\r\n\r\n"),
            (400, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
            (400, "GET leader HTTP/1.1\r\nHost: a\r\n\r\n"),
            (400, "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
            (400, "GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
            (400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
            (400, "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"),
            (400, "GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n"),
            (400, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"),
            (400, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n"),
            (400, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 0\r\n\r\n"),
            (400, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -0\r\n\r\n"),
            (400, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\ncontent-length: 7\r\n\r\n"),
            (400, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000000000000\r\n\r\n"),
            (400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
            (431, &many),
            (501, "BREW / HTTP/1.1\r\nHost: a\r\n\r\n"),
            (501, "get / HTTP/1.1\r\nHost: a\r\n\r\n"),
            (505, "GET / HTTP/2.0\r\n\r\n"),
            (505, "GET / HTTP/2.0"),
            (505, "GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
            (505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ];
        for (status, text) in table {
            let error = parse(text.as_bytes()).expect_err(text);
            assert_eq!(error.status, *status, "{text:?}: {}", error.message);
        }
    }

    /// The body stays unread, so no request can follow.
    #[test]
    fn a_request_that_is_sent_elsewhere_may_have_a_body() {
        for body in ["Content-Length: 7", "Transfer-Encoding: chunked", "Content-Length: nine"] {
            for target in ["/redirect", "/redirect/a?b", "http://a/redirect/"] {
                let text = format!("POST {target} HTTP/1.1\r\nHost: a\r\n{body}\r\n\r\n");
                assert!(!request(&text).0.keep_alive, "{text:?}");
            }
            for target in ["/", "/leader", "/redirected", "/redirectx/a", "/holds"] {
                let text = format!("POST {target} HTTP/1.1\r\nHost: a\r\n{body}\r\n\r\n");
                assert_eq!(parse(text.as_bytes()).unwrap_err().status, 400, "{text:?}");
            }
        }
        assert!(request("POST /redirect HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").0.keep_alive);
    }

    #[test]
    fn says_which_part_was_too_long() {
        assert_eq!(too_large(b"\r\nGET /aaaaa").status, 414);
        assert_eq!(too_large(b"GET / HTTP/1.1\r\na: b").status, 431);
    }
}
