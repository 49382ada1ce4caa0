//! Asks the sidecar for a hold, and renews it. It has a thread of its own, since an answer may be slow.

use super::Event;
use crate::base::Reading;
use crate::client::api::{Api, Trouble};
use crate::client::changes::{Changes, POLL};
use crate::config::EXEC_RENEWALS;
use serde_json::{Map, Value};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use ureq::http::Method;

/// A new leader grants no hold before its first round. It is asked again soon.
const SOON: Duration = Duration::from_millis(20);
/// How many times it is asked that soon. A leader without a majority grants none for long.
const SOON_MAX: u32 = 50;
/// Any answer may take so long.
const ANSWER_LEAST: Duration = Duration::from_millis(50);
/// What a sidecar grants at most by default (`--hold-max`).
const GRANTED_FIRST: Duration = Duration::from_secs(1);
/// How long the end of exec waits for the end of its hold, which would run out by itself.
pub(super) const RELEASE_LONGEST: Duration = Duration::from_millis(500);

/// More than there ever are while one question is answered.
const WANTS_MAX: usize = 16;

/// What the sidecar has said to one question.
#[derive(Debug)]
pub(super) struct Told {
    /// The clocks before the question. All times count from then, which is careful.
    pub(super) asked: Reading,
    /// The hold's epoch, and how long it lasts.
    pub(super) held: Option<(u64, Duration)>,
    /// Holds are granted here at all.
    pub(super) sure: bool,
    pub(super) resigning: bool,
    pub(super) longest: Duration,
    pub(super) stop_wait: Duration,
    /// This process's name, while it leads.
    pub(super) name: Option<String>,
    pub(super) election: Option<String>,
}

/// What the thread is asked for.
enum Want {
    /// To hold leadership, or to leave that.
    Hold(bool),
    /// To end the hold. Answers count for that generation from then on.
    Release(u64),
}

/// The thread that asks.
pub(super) struct Holder {
    wants: SyncSender<Want>,
    holds: bool,
}

impl Holder {
    /// # Errors
    /// The system has no thread for it.
    pub(super) fn start(api: Api, hold: Duration, events: SyncSender<Event>) -> io::Result<Holder> {
        let (wants, wanted) = sync_channel(WANTS_MAX);
        let mut asker = Asker::new(api, hold, events, wanted);
        thread::Builder::new().name("holds".to_owned()).spawn(move || asker.run())?;
        Ok(Holder { wants, holds: false })
    }

    /// Whether a hold is wanted from now on.
    pub(super) fn want(&mut self, holds: bool) {
        if holds != self.holds {
            self.holds = holds;
            let _ = self.wants.send(Want::Hold(holds));
        }
    }

    /// Ends the hold. What was asked before counts no more.
    /// [`Event::Released`] follows.
    pub(super) fn release(&mut self, generation: u64) {
        let _ = self.wants.send(Want::Release(generation));
    }
}

struct Asker {
    api: Api,
    /// What is asked for.
    hold: Duration,
    /// How much of that was granted last. Before the first answer it is what `--hold-max` is by default.
    granted: Duration,
    events: SyncSender<Event>,
    wanted: Receiver<Want>,
    generation: u64,
    wants: bool,
    /// The hold that is out.
    id: Option<String>,
    /// How many answers of a leader have promised nothing, one after the other.
    unpromised: u32,
}

impl Told {
    /// What is granted at most of what is asked for.
    fn granted(&self, hold: Duration) -> Duration {
        if self.sure { hold.min(self.longest) } else { hold }
    }
}

impl Asker {
    fn new(api: Api, hold: Duration, events: SyncSender<Event>, wanted: Receiver<Want>) -> Asker {
        let granted = hold.min(GRANTED_FIRST);
        Asker { api, hold, granted, events, wanted, generation: 0, wants: false, id: None, unpromised: 0 }
    }

    fn run(&mut self) {
        loop {
            let asked = Instant::now();
            let again = self.wants.then(|| self.ask_once());
            let Ok(()) = self.obey(again.map(|again| asked + again)) else { return };
        }
    }

    /// Does what is wanted until the next question is due; None: until something else is wanted.
    fn obey(&mut self, until: Option<Instant>) -> Result<(), RecvTimeoutError> {
        loop {
            let next = match until {
                Some(until) => self.wanted.recv_timeout(until.saturating_duration_since(Instant::now())),
                None => self.wanted.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match next {
                Ok(Want::Hold(wants)) if wants != self.wants => {
                    self.wants = wants;
                    return Ok(());
                }
                Ok(Want::Hold(_)) => {}
                Ok(Want::Release(generation)) => {
                    self.generation = generation;
                    if let Some(id) = self.id.take() {
                        // One that cannot be ended runs out.
                        let path = format!("/holds/{id}");
                        let _ = self.api.send(Method::DELETE, &path, &[204], RELEASE_LONGEST / 2);
                    }
                    let _ = self.events.send(Event::Released(generation));
                }
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(gone) => return Err(gone),
            }
        }
    }

    /// One question. Returns when the next is due, counted from this one.
    fn ask_once(&mut self) -> Duration {
        let (asked, begun) = (Reading::take(), Instant::now());
        match self.ask() {
            Ok(record) => {
                let leads = is_leader(&record) || self.id.is_some();
                let told = told(asked, &record, self.hold);
                let promised = told.held.is_some();
                self.granted = told.granted(self.hold);
                self.tell(Ok(told));
                self.unpromised = if promised || !leads { 0 } else { self.unpromised.saturating_add(1) };
                if leads {
                    let soon = !promised && self.unpromised <= SOON_MAX;
                    let every = self.granted / EXEC_RENEWALS;
                    return if soon { every.min(SOON) } else { every };
                }
                self.wait_for_leadership();
                begun.elapsed().max(SOON)
            }
            Err(trouble) => {
                self.tell(Err(trouble));
                self.granted / EXEC_RENEWALS
            }
        }
    }

    fn tell(&self, told: Result<Told, Trouble>) {
        // Without a receiver this process is about to end.
        let _ = self.events.send(Event::Told(self.generation, told.map(Box::new)));
    }

    /// Waits for a change, or a moment.
    fn wait_for_leadership(&self) {
        let mut changes = Changes::of(&self.api);
        // The first is the state, which may have changed since.
        let state = changes.next(POLL);
        let change = match state {
            Ok(Some(told)) if !told.parts.leads() => changes.next(POLL),
            other => other,
        };
        if let Err(trouble) = change {
            self.tell(Err(trouble));
            thread::sleep(self.granted / EXEC_RENEWALS);
        }
    }

    fn ask(&mut self) -> Result<Record, Trouble> {
        let (lasts, within) = (self.hold.as_millis(), (self.granted / 4).max(ANSWER_LEAST));
        if let Some(id) = &self.id {
            let path = format!("/holds/{id}?for={lasts}ms");
            match self.api.send(Method::PUT, &path, &[200, 404], within)? {
                (200, body) => return self.record(&path, &body),
                _ => self.id = None,
            }
        }
        let path = format!("/holds?for={lasts}ms");
        let (status, body) = self.api.send(Method::POST, &path, &[200, 201, 403], within)?;
        if status == 403 {
            return self.api.json("/watch", &[200], within);
        }
        let record = self.record(&path, &body)?;
        self.id = hold(&record, "id").and_then(Value::as_str).filter(|id| is_id(id)).map(str::to_owned);
        Ok(record)
    }

    /// An answer. One that does not say whether this process leads is none of bellwether's.
    fn record(&self, path: &str, body: &[u8]) -> Result<Record, Trouble> {
        let record: Record = serde_json::from_slice(body).map_err(|error| self.api.garbage(path, &error))?;
        let told = record.get("is_leader").is_some_and(Value::is_boolean);
        if told { Ok(record) } else { Err(self.api.garbage(path, &"it has no is_leader")) }
    }
}

type Record = Map<String, Value>;

/// It becomes a part of a path.
fn is_id(id: &str) -> bool {
    id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_leader(record: &Record) -> bool {
    record.get("is_leader").and_then(Value::as_bool).unwrap_or(false)
}

/// A field of the hold in an answer.
fn hold<'a>(record: &'a Record, field: &str) -> Option<&'a Value> {
    record.get("hold")?.get(field)
}

fn told(asked: Reading, record: &Record, lasts: Duration) -> Told {
    let number = |field: &str| hold(record, field).and_then(Value::as_u64);
    let time = |field: &str| Duration::from_millis(number(field).unwrap_or(0));
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let (longest, leads) = (time("max_ms"), is_leader(record));
    let sure = !longest.is_zero();
    let granted = time("ms").min(lasts);
    let promised = number("epoch").filter(|_| !granted.is_zero()).map(|epoch| (epoch, granted));
    // Where nothing is ever promised, a leader is taken to lead for as long as it would be held.
    let epoch = record.get("epoch").and_then(Value::as_u64);
    let led = epoch.filter(|_| !sure && leads).map(|epoch| (epoch, lasts));
    Told {
        asked,
        held: promised.or(led),
        sure,
        resigning: record.get("resigning").and_then(Value::as_bool).unwrap_or(false),
        longest,
        stop_wait: time("stop_wait_ms"),
        name: text(record.get("leader").and_then(|leader| leader.get("name"))).filter(|_| leads),
        election: text(hold(record, "election")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Of 30 s that are asked for, 1 s is granted. A question fails; the next comes within that second.
    #[test]
    fn questions_follow_each_other_by_what_is_granted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let api = Api::at(Some(&listener.local_addr().unwrap().to_string())).unwrap();
        let sidecar = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            let record = r#"{"is_leader":true,"hold":{"id":"1","ms":900,"epoch":1,"max_ms":1000}}"#;
            let head = format!("HTTP/1.1 201 Created\r\nContent-Length: {}\r\n\r\n", record.len());
            stream.write_all((head + record).as_bytes()).unwrap();
        });
        let ((events, _events), (_wants, wanted)) = (sync_channel(WANTS_MAX), sync_channel(WANTS_MAX));
        let mut asker = Asker::new(api, Duration::from_secs(30), events, wanted);
        assert_eq!(asker.ask_once(), Duration::from_millis(100), "an answer");
        sidecar.join().unwrap();
        assert_eq!(asker.ask_once(), Duration::from_millis(100), "no sidecar any more");
    }
}
