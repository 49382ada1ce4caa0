//! Asks every process `/leader` again and again: a thread a process, on a connection that stays open. Where
//! processes have network namespaces of their own, it asks from inside. So nothing that is cut between the
//! processes keeps it from asking.

use super::history::{Lifetime, Nanos, Observation, Observer, Sample};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long one question waits. A process that is stopped finds the question of the last moments before it
/// goes on waiting for it. A question that waits longer would prove little: its answer is of any moment since
/// it was sent.
pub const TIMEOUT: Duration = Duration::from_millis(100);
/// Between two attempts to connect to a process that refuses.
const REFUSED: Duration = Duration::from_millis(1);
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// In every second span of this length, a leader's application takes holds.
const HOLDING: Nanos = 3_000_000_000;
/// Between two holds.
const HOLD_EVERY: Nanos = 40_000_000;

/// How often a thread looks whether the machine stands still.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// So late no scheduler wakes a thread: the whole machine stood still.
const STANDSTILL: Nanos = 5_000_000_000;

/// Where the process of a place is asked.
pub struct Place {
    /// Where it answers.
    pub http: SocketAddr,
    /// What its sampler does first: it may enter a namespace.
    pub enter: Box<dyn FnOnce() + Send>,
    /// Between two questions.
    pub pause: Duration,
}

/// What a place's sampler and the test share.
pub struct Watched {
    /// Which process is there.
    pub life: Mutex<Lifetime>,
    /// What it answered.
    pub observer: Mutex<Observer>,
}

/// The threads. Dropping it ends them.
pub struct Samplers {
    origin: Instant,
    watched: Vec<Arc<Watched>>,
    standstills: Arc<Mutex<Vec<(Nanos, Nanos)>>>,
    done: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Samplers {
    /// A sampler for each of these places.
    pub fn start(places: Vec<Place>) -> Samplers {
        let (origin, done) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let standstills = Arc::default();
        let mut samplers = Samplers { origin, watched: Vec::new(), standstills, done, threads: Vec::new() };
        let (standstills, done) = (Arc::clone(&samplers.standstills), Arc::clone(&samplers.done));
        samplers.threads.push(std::thread::spawn(move || look_for_standstills(origin, &standstills, &done)));
        for (number, place) in places.into_iter().enumerate() {
            let life = Mutex::new(Lifetime { place: number, life: 0, folder: 0 });
            let watched = Arc::new(Watched { life, observer: Mutex::default() });
            samplers.watched.push(Arc::clone(&watched));
            let done = Arc::clone(&samplers.done);
            samplers.threads.push(std::thread::spawn(move || {
                (place.enter)();
                while !done.load(Ordering::Relaxed) {
                    ask_one_after_another(&watched, place.http, place.pause, origin, &done);
                }
            }));
        }
        samplers
    }

    /// Now, on the clock of the samples.
    pub fn now(&self) -> Nanos {
        since(self.origin)
    }

    pub fn watched(&self, place: usize) -> &Watched {
        &self.watched[place]
    }

    /// When the machine stood still, from and until. No process could lead then, and none was asked.
    pub fn standstills(&self) -> Vec<(Nanos, Nanos)> {
        self.standstills.lock().unwrap().clone()
    }

    /// What all places answered up to now.
    pub fn observers(&self) -> Vec<Observer> {
        self.watched.iter().map(|w| w.observer.lock().unwrap().clone()).collect()
    }
}

impl Drop for Samplers {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A sampler that panicked has printed why, and its observer's lock is poisoned: the test has
            // failed.
            thread.join().ok();
        }
    }
}

fn look_for_standstills(origin: Instant, standstills: &Mutex<Vec<(Nanos, Nanos)>>, done: &AtomicBool) {
    let mut before = since(origin);
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK_EVERY);
        let now = since(origin);
        if now - before > STANDSTILL {
            standstills.lock().unwrap().push((before, now));
        }
        before = now;
    }
}

fn since(origin: Instant) -> Nanos {
    u64::try_from(origin.elapsed().as_nanos()).unwrap()
}

/// Asks over one connection as long as it is answered.
fn ask_one_after_another(
    watched: &Watched,
    http: SocketAddr,
    pause: Duration,
    origin: Instant,
    done: &AtomicBool,
) {
    let connected = TcpStream::connect_timeout(&http, TIMEOUT);
    // After connecting: the incarnation is counted up once the former process has ended and before the next
    // one starts. So an answer over this connection can be of no other incarnation than this one.
    let life = *watched.life.lock().unwrap();
    let mut sent = since(origin);
    let mut stream = match connected {
        Ok(stream) => stream,
        Err(_) => {
            let sample = Sample { life, sent, received: sent, answer: None };
            watched.observer.lock().unwrap().observe(sample);
            return std::thread::sleep(REFUSED);
        }
    };
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut buffer = Vec::new();
    let mut held = 0;
    while !done.load(Ordering::Relaxed) {
        sent = since(origin);
        let answer = ask(&mut stream, "/leader", &mut buffer).ok().and_then(|body| read(&body));
        let sample = Sample { life, sent, received: since(origin), answer };
        let answered = sample.answer.is_some();
        let yes = sample.answer.as_ref().is_some_and(|answer| answer.yes);
        watched.observer.lock().unwrap().observe(sample);
        if !answered {
            return;
        }
        if yes && sent / HOLDING % 2 == 1 && sent - held >= HOLD_EVERY {
            held = sent;
            // Where no answer comes, a hold may be out that none counts on.
            take_hold(watched, http, life, origin).ok();
        }
        std::thread::sleep(pause);
    }
}

/// Asks for a hold, as an application does, for half a second at most.
fn take_hold(watched: &Watched, http: SocketAddr, life: Lifetime, origin: Instant) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&http, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let sent = since(origin);
    stream.write_all(b"POST /holds?for=500ms HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let body = body(&mut stream, &mut Vec::new())?;
    let received = since(origin);
    let number = |name: &str| body.pointer(name).and_then(serde_json::Value::as_u64);
    if let (Some(epoch), Some(ms)) = (number("/hold/epoch"), number("/hold/ms")) {
        let lasts = ms * 1_000_000;
        watched.observer.lock().unwrap().holds(life, epoch, sent, received, lasts);
    }
    Ok(())
}

/// One question: the body of its answer, which is an object.
fn ask(stream: &mut TcpStream, path: &str, buffer: &mut Vec<u8>) -> io::Result<serde_json::Value> {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").as_bytes())?;
    body(stream, buffer)
}

/// The body of an answer, which is an object.
fn body(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<serde_json::Value> {
    buffer.clear();
    let mut piece = [0u8; 2048];
    while buffer.len() < ANSWER_BYTES_MAX {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            break;
        }
        buffer.extend_from_slice(&piece[..count]);
        // The body is the only thing in braces, and comes last.
        let body = buffer.iter().position(|b| *b == b'{').map(|begin| &buffer[begin..]);
        if let Some(body) = body.and_then(|body| serde_json::from_slice(body).ok()) {
            return Ok(body);
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

fn read(body: &serde_json::Value) -> Option<Observation> {
    Some(Observation {
        yes: body.get("is_leader")?.as_bool()?,
        epoch: body.get("epoch")?.as_u64()?,
        leader: body.pointer("/leader/id").and_then(|id| id.as_str()).map(str::to_owned),
        valid_for_ms: body.get("valid_for_ms")?.as_u64(),
    })
}
