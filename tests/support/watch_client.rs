//! A client of `/watch` and `/sse`, as an application would write one.

use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// No client waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client after its request.
pub struct Client(pub BufReader<TcpStream>);

impl Client {
    pub fn asks(server: SocketAddr, target: &str, headers: &str) -> Client {
        Client::over(TcpStream::connect(server).unwrap(), &format!("GET {target}"), headers)
    }

    /// A client whose request goes over this connection.
    pub fn over(mut stream: TcpStream, request: &str, headers: &str) -> Client {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").unwrap();
        Client(BufReader::new(stream))
    }

    pub fn follows(server: SocketAddr, target: &str, headers: &str) -> Client {
        let mut client = Client::asks(server, target, &format!("Accept: text/event-stream\r\n{headers}"));
        let head = client.head();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("Content-Type: text/event-stream\r\n"), "{head}");
        assert!(head.contains("Cache-Control: no-store\r\n") && !head.contains("Content-Length"), "{head}");
        assert_eq!((client.line(), client.line()), ("retry: 1000".to_owned(), String::new()));
        client
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the stream has ended");
        line.trim_end_matches(['\r', '\n']).to_owned()
    }

    /// The head of an answer.
    pub fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.0.read_line(&mut head).unwrap() > 0, "the connection has ended");
        }
        head
    }

    /// The next event: its id, and what it says.
    pub fn event(&mut self) -> (String, Value) {
        self.next_event().expect("the stream has ended")
    }

    /// The same; none once the stream has ended.
    pub fn next_event(&mut self) -> Option<(String, Value)> {
        let mut id = String::new();
        // A comment is no event.
        while matches!(id.as_str(), "" | ":\n" | "\n") {
            id.clear();
            if self.0.read_line(&mut id).ok()? == 0 {
                return None;
            }
        }
        let id = id.trim_end().strip_prefix("id: ").unwrap().to_owned();
        let data = serde_json::from_str(self.line().strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(self.line(), "");
        Some((id, data))
    }

    /// Whether the other side has closed.
    pub fn ended(&mut self) -> bool {
        match self.0.read_to_end(&mut Vec::new()) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}
