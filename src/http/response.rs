//! Encodes a response. tiny_http writes it; the few lines that it cannot write are put in here.

use super::request::Request;
use super::routes::Response;
use tiny_http::{HTTPVersion, Method};

/// Room for the head of a reply. More is no error, only slower.
const HEAD_BYTES: usize = 512;

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

/// The encoded last reply of a connection whose request could not be read.
pub(super) fn encode_last(response: Response) -> Vec<u8> {
    print(response, false, Some("close"))
}

fn print(response: Response, without_body: bool, connection: Option<&str>) -> Vec<u8> {
    let status = response.status_code().0;
    // Never in chunks: every length is known, and HTTP/1.0 has no chunks.
    let response = response.with_chunked_threshold(usize::MAX);
    let mut bytes = Vec::with_capacity(HEAD_BYTES + response.data_length().unwrap_or(0));
    // Writing to a Vec cannot fail, nor can reading from one; if it did, the client would see a cut-off
    // reply.
    let _ = response.raw_print(&mut bytes, HTTPVersion(1, 1), &[], without_body, None);
    const EMPTY: &[u8] = b"Content-Length: 0\r\n\r\n";
    if status == 204 && bytes.ends_with(EMPTY) {
        // RFC 9110, section 8.6: no Content-Length in a reply of this status.
        bytes.truncate(bytes.len() - EMPTY.len());
        bytes.extend_from_slice(b"\r\n");
    }
    if let Some(connection) = connection {
        // tiny_http keeps this header to itself.
        let end_of_line = bytes.windows(2).position(|window| window == b"\r\n");
        let at = end_of_line.map_or(0, |position| position + 2);
        bytes.splice(at..at, format!("Connection: {connection}\r\n").into_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::routes;
    use super::*;

    fn text(method: Method, version_1_0: bool, keep_alive: bool, response: Response) -> String {
        let request = Request { method, path: "/", query: None, version_1_0, keep_alive };
        String::from_utf8(encode(response, &request)).unwrap()
    }

    #[test]
    fn says_how_the_connection_goes_on() {
        let reply =
            |version_1_0, keep_alive| text(Method::Get, version_1_0, keep_alive, routes::error(404, "x"));
        assert!(!reply(false, true).contains("Connection:"));
        assert!(reply(false, false).starts_with("HTTP/1.1 404 Not Found\r\nConnection: close\r\n"));
        assert!(reply(true, true).starts_with("HTTP/1.1 404 Not Found\r\nConnection: keep-alive\r\n"));
        assert!(reply(true, false).starts_with("HTTP/1.1 404 Not Found\r\nConnection: close\r\n"));
    }

    #[test]
    fn a_head_has_the_same_headers_and_no_body() {
        let get = text(Method::Get, false, true, routes::error(404, "x"));
        let head = text(Method::Head, false, true, routes::error(404, "x"));
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
        let reply = text(Method::Get, false, true, routes::error(404, &"x".repeat(100_000)));
        assert!(reply.contains("Content-Length: 1000"), "{}", &reply[..300]);
        assert!(!reply.contains("Transfer-Encoding"));
    }
}
