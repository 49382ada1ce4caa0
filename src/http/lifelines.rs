//! `/alive` and `/lifeline`: an application says that it lives. A lifeline is a connection on which nothing
//! is sent; its end is the application's death.

use super::Source;
use super::app_clients::{Asked, Look, refusal};
use super::query::parameter;
use super::request::Request;
use super::response::{JSON, Response, encode_head, encode_last, error, header, no_content, response};
use crate::base::blocking_tcp::await_end;
use crate::base::duration;
use crate::election::Sign;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tiny_http::Method;

/// Where an application says that it is healthy for a time.
pub(super) const ALIVE: &str = "/alive";
/// Where it opens a lifeline.
pub(super) const LIFELINE: &str = "/lifeline";
/// How many lifelines may be open: each has a thread that waits for its end.
pub(super) const LIFELINES_MAX: usize = 16;
const STACK_BYTES: usize = 64 * 1024;
/// How long a client may take to read the answer. It is short, and others wait meanwhile.
const ANSWER_LONGEST: Duration = Duration::from_millis(100);
const ALLOW: &str = "POST, OPTIONS";

/// The request, if it is one of these.
pub(super) fn look(request: &Request<'_>, remote: IpAddr, source: &dyn Source) -> Option<Look> {
    if request.path != ALIVE && request.path != LIFELINE {
        return None;
    }
    let allowed = |response: Response| Look::Answered(response.with_header(header("Allow", ALLOW)));
    Some(match request.method {
        Method::Post => match refusal(request, remote, source) {
            Some(refusal) => Look::Answered(refusal),
            None if request.path == LIFELINE => Look::Asks(Asked::Lifeline),
            None => alive(request),
        },
        Method::Options => allowed(no_content()),
        _ => allowed(error(405, "an application says that it lives by POST")),
    })
}

fn alive(request: &Request<'_>) -> Look {
    const EXPECTED: &str = "ttl has to say once for how long the application is healthy, such as ttl=10s, \
                            from 1ms to 1h";
    let text = parameter(request.query.unwrap_or_default(), "ttl").ok().flatten();
    let ttl = text.and_then(|text| duration::parse_positive(&text).ok());
    match ttl {
        Some(ttl) => Look::Asks(Asked::Sign(Sign::Alive { ttl })),
        None => Look::Answered(error(400, EXPECTED)),
    }
}

/// The lifelines that are open. When it is dropped they end, and no end is told any more.
pub(super) struct Lifelines<S: Source> {
    source: Arc<S>,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    opened: u64,
    /// At most [`LIFELINES_MAX`]; to be cut when this process ends.
    streams: BTreeMap<u64, TcpStream>,
    /// None is told of any more.
    over: bool,
}

impl<S: Source> Lifelines<S> {
    pub(super) fn new(source: Arc<S>) -> Lifelines<S> {
        Lifelines { source, open: Arc::default() }
    }

    /// Opens one on this connection, and returns the status that its client was answered with.
    pub(super) fn open(&self, stream: TcpStream) -> u16 {
        match self.begin(&stream) {
            Ok(()) => 200,
            Err(why) => {
                let refusal = error(503, &why).with_header(header("Retry-After", "1"));
                let _ =
                    stream.set_nonblocking(true).and_then(|()| (&stream).write_all(&encode_last(refusal)));
                503
            }
        }
    }

    fn begin(&self, stream: &TcpStream) -> Result<(), String> {
        let refused = |error: io::Error| format!("the system refuses what a lifeline takes: {error}");
        stream.set_nonblocking(false).map_err(refused)?;
        stream.set_read_timeout(None).map_err(refused)?;
        stream.set_write_timeout(Some(ANSWER_LONGEST)).map_err(refused)?;
        let (kept, read) = (stream.try_clone().map_err(refused)?, stream.try_clone().map_err(refused)?);
        let number = {
            let mut open = lock(&self.open);
            if open.streams.len() >= LIFELINES_MAX {
                return Err(format!("{LIFELINES_MAX} lifelines are open, which is the most; end one"));
            }
            open.opened += 1;
            let number = open.opened;
            open.streams.insert(number, kept);
            number
        };
        // The lock is not held meanwhile: the driver may take its time.
        if self.source.sign(Sign::LifelineOpened).is_err() {
            lock(&self.open).streams.remove(&number);
            return Err("the process has no time for this now; ask again in 1s".to_owned());
        }
        let (source, all) = (Arc::clone(&self.source), Arc::clone(&self.open));
        let wait = move || {
            await_end(&read);
            let over = {
                let mut open = lock(&all);
                open.streams.remove(&number);
                open.over
            };
            if !over {
                // The driver is gone where it takes no sign any more.
                let _ = source.sign(Sign::LifelineEnded);
            }
        };
        let thread = thread::Builder::new().name("lifeline".to_owned()).stack_size(STACK_BYTES);
        // The thread needs this lock before it ends, and its handle is gone by then. pthread_detach of glibc
        // may read the memory of a thread that it has detached.
        let open = lock(&self.open);
        let began = thread.spawn(wait).map(drop);
        drop(open);
        if let Err(error) = began {
            lock(&self.open).streams.remove(&number);
            let _ = self.source.sign(Sign::LifelineEnded);
            return Err(refused(error));
        }
        // Nothing follows on this head until the connection ends.
        if (&*stream).write_all(&encode_head(response(200, JSON, Vec::new()))).is_err() {
            // It does not read, or is gone already. Its thread tells of the end.
            let _ = stream.shutdown(Shutdown::Both);
        }
        Ok(())
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Source> Drop for Lifelines<S> {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        open.over = true;
        for stream in open.streams.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::asks::asks;
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn an_application_of_this_host_says_that_it_lives() {
        let host = "Host: localhost\r\n";
        let alive = |ms| Ok(Asked::Sign(Sign::Alive { ttl: Duration::from_millis(ms) }));
        for (request, expected) in [
            ("POST /alive?ttl=10s", alive(10_000)),
            ("POST /alive?ttl=1ms", alive(1)),
            ("POST /alive?ttl=1h", alive(3_600_000)),
            ("POST /alive?ttl=3601s", Err(400)),
            ("POST /alive?ttl=0s", Err(400)),
            ("POST /alive?ttl=10", Err(400)),
            ("POST /alive", Err(400)),
            ("POST /alive?ttl=1s&ttl=1s", Err(400)),
            ("POST /lifeline", Ok(Asked::Lifeline)),
            ("GET /lifeline", Err(405)),
            ("GET /alive?ttl=1s", Err(405)),
            ("OPTIONS /alive", Err(204)),
        ] {
            assert_eq!(asks(look, request, host, Ipv4Addr::LOCALHOST), expected, "{request}");
        }
        for (headers, remote) in [
            (host, Ipv4Addr::new(198, 18, 0, 1)),
            ("Host: app.example\r\n", Ipv4Addr::LOCALHOST),
            ("Host: localhost\r\nOrigin: http://localhost\r\n", Ipv4Addr::LOCALHOST),
        ] {
            for request in ["POST /alive?ttl=1s", "POST /lifeline"] {
                assert_eq!(asks(look, request, headers, remote), Err(403), "{request} {headers} {remote}");
            }
        }
    }
}
