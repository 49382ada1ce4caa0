//! The health probe of the application here (`--app-health`), on a thread of its own.

use super::driver::Input;
use crate::base::LogEvent;
use crate::base::blocking_tcp::{connect, left};
use crate::base::duration::show;
use crate::config::{AppHealth, Probe};
use crate::election::Sign;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::{Duration, Instant};

const STACK_BYTES: usize = 128 * 1024;
/// The log has one line of a failing probe in this time at most.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// How much of an answer is read: its status is in the first line.
const ANSWER_BYTES_MAX: usize = 1024;

/// Probes from now on, and tells the driver of each change.
///
/// # Errors
/// The system has no thread for it.
pub(super) fn start(probe: Probe, inputs: SyncSender<Input>) -> io::Result<()> {
    let work = move || {
        let mut verdict = Verdict::default();
        let mut told = Told::default();
        loop {
            let begun = Instant::now();
            let seen = look(&probe.app, begun + probe.timeout);
            let news = verdict.take(seen.as_ref().err(), &probe);
            let why = seen.as_ref().err().map(|error| cause(error, &probe)).filter(|_| !verdict.healthy);
            if let Some(why) = told.news(why, begun) {
                LogEvent::warn("application_probe")
                    .say(format_args!("the application does not answer {} as it should: {why}", probe.app));
            }
            if let Some(healthy) = news
                && inputs.send(Input::Application(Sign::Probed { healthy })).is_err()
            {
                return;
            }
            thread::sleep(probe.interval.saturating_sub(begun.elapsed()));
        }
    };
    thread::Builder::new().name("app-probe".to_owned()).stack_size(STACK_BYTES).spawn(work).map(drop)
}

/// Why the application does not count as healthy, for people. The system has two errors for a time that is
/// over, and neither names it.
fn cause(error: &io::Error, probe: &Probe) -> String {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => format!(
            "there is no answer within {}; a longer --app-health-timeout waits longer",
            show(probe.timeout)
        ),
        _ => error.to_string(),
    }
}

/// Why the probe fails, as the log has said last.
#[derive(Debug, Default)]
struct Told(Option<(String, Instant)>);

impl Told {
    /// What the log is to say. Causes that take turns must not fill it.
    fn news(&mut self, why: Option<String>, now: Instant) -> Option<String> {
        let Some(why) = why else {
            self.0 = None;
            return None;
        };
        if self.0.as_ref().is_some_and(|(told, at)| *told == why || now.duration_since(*at) < LINE_EVERY) {
            return None;
        }
        self.0 = Some((why.clone(), now));
        Some(why)
    }
}

/// What the probes in a row amount to.
#[derive(Debug, Default)]
struct Verdict {
    healthy: bool,
    /// How many in a row say otherwise.
    against: u32,
}

impl Verdict {
    /// Takes in a probe; returns what counts from now on, if that has changed. A refused connection says that
    /// no process listens, and needs no second look.
    fn take(&mut self, failure: Option<&io::Error>, probe: &Probe) -> Option<bool> {
        if failure.is_none() == self.healthy {
            self.against = 0;
            return None;
        }
        self.against = self.against.saturating_add(1);
        let refused = failure.is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused);
        let needed = if self.healthy { probe.failures } else { probe.successes };
        if self.against < needed && !refused {
            return None;
        }
        self.against = 0;
        self.healthy = !self.healthy;
        Some(self.healthy)
    }
}

/// Asks the application once.
fn look(app: &AppHealth, deadline: Instant) -> io::Result<()> {
    let stream = connect(&app.addresses, deadline)?;
    let Some((host, path)) = &app.http else { return Ok(()) };
    ask(stream, host, path, deadline)
}

fn ask(mut stream: TcpStream, host: &str, path: &str, deadline: Instant) -> io::Result<()> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: bellwether\r\nAccept: */*\r\n\
         Connection: close\r\n\r\n"
    );
    stream.set_write_timeout(Some(left(deadline)?))?;
    stream.write_all(request.as_bytes())?;
    let (mut answer, mut length) = ([0; ANSWER_BYTES_MAX], 0);
    while length < answer.len() && !answer[..length].contains(&b'\n') {
        stream.set_read_timeout(Some(left(deadline)?))?;
        match stream.read(&mut answer[length..])? {
            0 => break,
            read => length += read,
        }
    }
    match status(&answer[..length]) {
        Some(200..400) => Ok(()),
        Some(status) => {
            Err(io::Error::other(format!("it answers with status {status}; 200 to 399 is healthy")))
        }
        None => Err(io::Error::other("its answer is not one of HTTP/1.1")),
    }
}

/// The status of an answer that begins like this.
fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\n').next()?;
    let rest = line.strip_prefix(b"HTTP/1.1 ").or_else(|| line.strip_prefix(b"HTTP/1.0 "))?;
    let digits = rest.get(..3).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let number: u16 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    matches!(rest.get(3), None | Some(b' ' | b'\r')).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn probe(failures: u32, successes: u32) -> Probe {
        let app = AppHealth { addresses: Vec::new(), http: None };
        Probe { app, interval: Duration::from_secs(1), timeout: Duration::from_secs(1), failures, successes }
    }

    #[test]
    fn the_log_says_each_cause_once_and_not_too_often() {
        let (mut told, began) = (Told::default(), Instant::now());
        let mut said = |why: Option<&str>, after: u64| {
            told.news(why.map(str::to_owned), began + Duration::from_secs(after)).is_some()
        };
        let causes = [(Some("refused"), 0), (Some("refused"), 60), (Some("404"), 61), (Some("refused"), 62)];
        assert_eq!(causes.map(|(why, after)| said(why, after)), [true, false, true, false]);
        assert!(said(Some("refused"), 71), "it lasts");
        assert!(!said(None, 72) && said(Some("refused"), 73), "it was healthy in between");
    }

    #[test]
    fn a_number_of_probes_in_a_row_decides() {
        let (good, bad) = (None, Some(ErrorKind::TimedOut));
        let refused = Some(ErrorKind::ConnectionRefused);
        let said = |seen: &[Option<ErrorKind>], failures, successes| {
            let mut verdict = Verdict::default();
            let each = seen.iter().filter_map(|kind| {
                verdict.take(kind.map(io::Error::from).as_ref(), &probe(failures, successes))
            });
            each.collect::<Vec<_>>()
        };
        assert_eq!(said(&[bad, good], 3, 1), [true], "at first it is not healthy");
        assert_eq!(said(&[good, bad, bad], 3, 1), [true]);
        assert_eq!(said(&[good, bad, bad, bad], 3, 1), [true, false]);
        assert_eq!(said(&[good, bad, bad, good, bad, bad], 3, 1), [true], "not in a row");
        assert_eq!(said(&[good, good, bad, good], 1, 2), [true, false]);
        assert_eq!(said(&[good, good, bad, good, good], 1, 2), [true, false, true]);
        assert_eq!(said(&[good, refused], 3, 1), [true, false], "no process listens");
    }

    #[test]
    fn the_status_is_read_from_the_first_line() {
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\n", Some(200)),
            ("HTTP/1.0 503\r\n", Some(503)),
            ("HTTP/1.1 204\n", Some(204)),
            ("HTTP/1.1 2000 OK\r\n", None),
            ("HTTP/1.1 20", None),
            ("HTTP/2 200\r\n", None),
            ("200 OK", None),
            ("", None),
        ] {
            assert_eq!(status(answer.as_bytes()), expected, "{answer:?}");
        }
    }

    /// What answers with these bytes, once, byte by byte and slowly if that is wanted.
    fn answering(bytes: &'static str, pause: Duration) -> AppHealth {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let Ok((mut stream, _)) = listener.accept() else { return };
            for byte in bytes.bytes() {
                thread::sleep(pause);
                if stream.write_all(&[byte]).is_err() {
                    return;
                }
            }
            let _ = stream.read(&mut [0; 1024]);
        });
        AppHealth { addresses: vec![address], http: Some(("a".to_owned(), "/".to_owned())) }
    }

    #[test]
    fn an_application_that_hangs_or_redirects_or_errs_is_told_apart() {
        let soon = || Instant::now() + Duration::from_millis(300);
        let late = || Instant::now() + Duration::from_secs(20);
        assert!(look(&answering("HTTP/1.1 200 OK\r\n\r\n", Duration::ZERO), late()).is_ok());
        assert!(
            look(&answering("HTTP/1.1 302 Found\r\nLocation: http://a/\r\n\r\n", Duration::ZERO), late())
                .is_ok()
        );
        let failure = look(&answering("HTTP/1.1 500 No\r\n\r\n", Duration::ZERO), late()).unwrap_err();
        assert!(failure.to_string().contains("status 500"), "{failure}");
        let failure =
            look(&answering("HTTP/1.1 200 OK\r\n\r\n", Duration::from_millis(100)), soon()).unwrap_err();
        assert!(
            cause(&failure, &probe(1, 1)).starts_with("there is no answer within "),
            "it is slow: {failure}"
        );
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let tcp = AppHealth { addresses: vec![free], http: None };
        assert_eq!(look(&tcp, late()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
}
