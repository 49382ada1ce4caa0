//! Makes responses, and encodes them. tiny_http writes them; the few lines that it cannot write are put in
//! here.

use super::feed::Change;
use super::json::{ErrorBody, ErrorDetail};
use super::request::Request;
use serde::Serialize;
use std::io::Cursor;
use tiny_http::{HTTPVersion, Header, Method, StatusCode};

/// What is sent back: a status, headers, and a body in memory.
pub type Response = tiny_http::Response<Cursor<Vec<u8>>>;

pub(super) const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";

/// Room for the head of a reply. More is no error, only slower.
const HEAD_BYTES: usize = 512;

/// An error: its status, and a message that says what was wrong and what is expected.
pub(super) fn error(status: u16, message: &str) -> Response {
    json(status, &ErrorBody { error: ErrorDetail { status, message } })
}

/// A body as JSON.
pub(super) fn json(status: u16, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(mut body) => {
            // So that a shell prompt after curl begins on a new line.
            body.push(b'\n');
            response(status, JSON, body)
        }
        // Only a map with keys that are not text can fail, and no body here has one; a status is right in any
        // case.
        Err(_) => response(500, JSON, Vec::new()),
    }
}

pub(super) fn response(status: u16, content_type: &'static str, body: Vec<u8>) -> Response {
    let mut headers = vec![header("Server", "bellwether"), header("Cache-Control", "no-store")];
    if !body.is_empty() {
        headers.push(header("Content-Type", content_type));
    }
    let length = body.len();
    Response::new(StatusCode(status), headers, Cursor::new(body), Some(length), None)
}

/// What has no body: it is done.
pub(super) fn no_content() -> Response {
    response(204, JSON, Vec::new())
}

/// The version of a change, as a header.
pub(super) fn etag(change: &Change) -> Header {
    // A version is hexadecimal digits, a hyphen and digits.
    #[allow(clippy::expect_used)]
    Header::from_bytes("ETag", format!("\"{}\"", change.version)).expect("an ASCII header")
}

/// The refusal of one watcher too many.
pub(super) fn too_many_watchers() -> Response {
    let message = "all places of watchers are taken (--watchers-max); ask again in 1s, or ask /leader";
    error(503, message).with_header(header("Retry-After", "1"))
}

/// The head of a stream of events, whose length is not known.
pub(super) fn events() -> Response {
    let headers = [("Server", "bellwether"), ("Cache-Control", "no-store"), ("Content-Type", EVENT_STREAM)];
    let headers = headers.map(|(name, value)| header(name, value)).to_vec();
    Response::new(StatusCode(200), headers, Cursor::new(Vec::new()), Some(0), None)
}

/// A header. Both parts are of this program, never of a request or a peer: tiny_http does not reject line
/// breaks.
pub(super) fn header(name: &'static str, value: &'static str) -> Header {
    // ASCII literals without white space in the name, all of which the tests go through.
    #[allow(clippy::expect_used)]
    Header::from_bytes(name, value).expect("an ASCII header")
}

/// The encoded reply to `request`.
pub(super) fn encode(response: Response, request: &Request<'_>) -> Vec<u8> {
    let connection = match (request.keep_alive, request.version_1_0) {
        (false, _) => Some("close"),
        // A client of HTTP/1.0 goes on only if it is told to.
        (true, true) => Some("keep-alive"),
        (true, false) => None,
    };
    print(response, request.method == Method::Head, connection)
}

/// The encoded head of a reply that goes on until the connection ends.
pub(super) fn encode_head(response: Response) -> Vec<u8> {
    let mut bytes = encode_last(response);
    without_length(&mut bytes);
    bytes
}

/// The encoded last reply of a connection whose request could not be read.
pub(super) fn encode_last(response: Response) -> Vec<u8> {
    print(response, false, Some("close"))
}

/// The encoded last reply of a connection, to a request that could be read.
pub(super) fn encode_last_to(response: Response, request: &Request<'_>) -> Vec<u8> {
    print(response, request.method == Method::Head, Some("close"))
}

fn print(response: Response, without_body: bool, connection: Option<&str>) -> Vec<u8> {
    let status = response.status_code().0;
    // Never in chunks: every length is known, and HTTP/1.0 has no chunks.
    let response = response.with_chunked_threshold(usize::MAX);
    let mut bytes = Vec::with_capacity(HEAD_BYTES + response.data_length().unwrap_or(0));
    // Writing to a Vec cannot fail, nor can reading from one; if it did, the client would see a cut-off
    // reply.
    let _ = response.raw_print(&mut bytes, HTTPVersion(1, 1), &[], without_body, None);
    if status == 204 {
        // RFC 9110, section 8.6: no Content-Length in a reply of this status.
        without_length(&mut bytes);
    }
    if let Some(connection) = connection {
        // tiny_http keeps this header to itself.
        let end_of_line = bytes.windows(2).position(|window| window == b"\r\n");
        let at = end_of_line.map_or(0, |position| position + 2);
        bytes.splice(at..at, format!("Connection: {connection}\r\n").into_bytes());
    }
    bytes
}

/// Takes the length of an empty body out of a head, where tiny_http puts it last.
fn without_length(bytes: &mut Vec<u8>) {
    const EMPTY: &[u8] = b"Content-Length: 0\r\n\r\n";
    if bytes.ends_with(EMPTY) {
        bytes.truncate(bytes.len() - EMPTY.len());
        bytes.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(method: Method, version_1_0: bool, keep_alive: bool, response: Response) -> String {
        let request = Request {
            method,
            path: "/",
            query: None,
            version_1_0,
            keep_alive,
            events: false,
            last_event_id: None,
            origin: false,
            loopback_host: true,
        };
        String::from_utf8(encode(response, &request)).unwrap()
    }

    #[test]
    fn says_how_the_connection_goes_on() {
        let reply = |version_1_0, keep_alive| text(Method::Get, version_1_0, keep_alive, error(404, "x"));
        assert!(!reply(false, true).contains("Connection:"));
        assert!(reply(false, false).starts_with("HTTP/1.1 404 Not Found\r\nConnection: close\r\n"));
        assert!(reply(true, true).starts_with("HTTP/1.1 404 Not Found\r\nConnection: keep-alive\r\n"));
        assert!(reply(true, false).starts_with("HTTP/1.1 404 Not Found\r\nConnection: close\r\n"));
    }

    #[test]
    fn a_head_has_the_same_headers_and_no_body() {
        let get = text(Method::Get, false, true, error(404, "x"));
        let head = text(Method::Head, false, true, error(404, "x"));
        let (headers, body) = get.split_once("\r\n\r\n").unwrap();
        assert!(headers.contains(&format!("Content-Length: {}", body.len())), "{headers}");
        let without_date = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !line.starts_with("Date:")).map(str::to_owned).collect()
        };
        assert!(head.ends_with("\r\n\r\n"));
        assert_eq!(without_date(head.trim_end()), without_date(headers));
    }

    #[test]
    fn a_big_body_is_not_sent_in_chunks() {
        let reply = text(Method::Get, false, true, error(404, &"x".repeat(100_000)));
        assert!(reply.contains("Content-Length: 1000"), "{}", &reply[..300]);
        assert!(!reply.contains("Transfer-Encoding"));
    }
}
