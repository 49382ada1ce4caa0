//! One round with a cluster of real processes: the leader is taken down, others take over, it comes back.
//! Shared by the tests and the benchmark. What has to hold in every round is checked here.

use crate::wait::within;
use bellwether::demo::process_cluster::{Agreement, LeaderAnswer, ProcessCluster};
use rustix::process::Signal;
use std::fmt::Display;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The defaults of `--lease` and `--answer-timeout`, whose sum bounds a failover that only silence tells of.
pub const FAILURE_TIMEOUT: Duration = Duration::from_millis(1500);
pub const ANSWER_TIMEOUT: Duration = Duration::from_millis(300);
/// How long a process may take to end after SIGTERM.
pub const RESIGNATION_MAX: Duration = Duration::from_secs(1);
/// How long anything may take that has no bound of its own.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// How many connections ask a process that was stopped, all at once, when it goes on.
const POLLERS: usize = 8;
/// How many answers each of them gets at least.
const ANSWERS_EACH: usize = 50;

/// How a leader is taken down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// SIGKILL.
    Crash,
    /// SIGTERM.
    Resignation,
}

/// What `/members` answers.
#[derive(serde::Deserialize)]
struct Members {
    members: Vec<Member>,
}

/// A member as `/members` names it.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Member {
    pub id: String,
    pub name: String,
    pub priority: u16,
    pub state: String,
}

/// The members that the process of a place holds to be alive, itself included.
pub fn alive(processes: &ProcessCluster, place: usize) -> Result<Vec<Member>, String> {
    let (_, body) = processes.get(place, "/members").map_err(text)?;
    let Members { mut members } = serde_json::from_str(&body).map_err(text)?;
    members.retain(|m| m.state == "alive");
    Ok(members)
}

/// Waits until all present incarnations know each other. A leader sends its list with its first heartbeat
/// after an election. When it dies before that, the last newcomer knows no other process and may lead for a
/// moment beside another.
pub fn acquainted(processes: &ProcessCluster) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    let places = processes.running();
    loop {
        let mut lists = Vec::new();
        for place in &places {
            let mut ids: Vec<String> = alive(processes, *place)?.into_iter().map(|m| m.id).collect();
            ids.sort();
            lists.push(ids);
        }
        if lists.iter().all(|ids| ids.len() == places.len() && *ids == lists[0]) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("the processes do not come to know each other: {lists:?}"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The place of the process that ranks highest of those that are alive, apart from `but`, as the process
/// there knows them. Its own order of the list is not trusted.
pub fn best_besides(processes: &ProcessCluster, but: usize) -> Result<usize, String> {
    let mut members = alive(processes, but)?;
    members.retain(|m| m.name != processes.name(but));
    let best = members.into_iter().max_by(|a, b| (a.priority, &a.id).cmp(&(b.priority, &b.id)));
    let best = best.ok_or("no other process is alive")?;
    (0..processes.n())
        .find(|place| processes.name(*place) == best.name)
        .ok_or_else(|| format!("{} is none of these processes", best.name))
}

/// The places of all processes that run, apart from one.
pub fn others(processes: &ProcessCluster, but: usize) -> Vec<usize> {
    processes.running().into_iter().filter(|place| *place != but).collect()
}

/// Takes the leader down. All others agree on one leader with a higher epoch, and after a resignation on the
/// one that ranks highest. The time until they do is measured from the signal.
pub fn take_down(
    processes: &mut ProcessCluster,
    now: &Agreement,
    cause: Cause,
) -> Result<(Agreement, Duration), String> {
    acquainted(processes)?;
    ready(processes)?;
    let best = best_besides(processes, now.leader)?;
    let survivors = others(processes, now.leader);
    let at = Instant::now();
    processes.signal(now.leader, if cause == Cause::Crash { Signal::KILL } else { Signal::TERM });
    let next = processes.agree_among(&survivors, now.epoch, PATIENCE).map_err(text)?;
    let took = next.since.saturating_duration_since(at);
    let status = processes.wait(now.leader, RESIGNATION_MAX).map_err(text)?;
    if cause == Cause::Resignation {
        if next.leader != best {
            let (led, ought) = (processes.name(next.leader), processes.name(best));
            return Err(format!("{led} leads after the resignation, and {ought} ranks highest"));
        }
        if status.code() != Some(0) {
            return Err(format!(
                "SIGTERM ended {} with {status}, not with exit code 0",
                processes.name(now.leader)
            ));
        }
    }
    Ok((next, took))
}

/// Takes the leader down, and starts its process again. Says how long the others took to agree on another,
/// and how long that process took to join. `now` becomes what all agree on then.
pub fn round(
    processes: &mut ProcessCluster,
    now: &mut Agreement,
    cause: Cause,
) -> Result<(Duration, Duration), String> {
    let (next, took) = take_down(processes, now, cause)?;
    let joined = bring_back(processes, now.leader, &[], &next)?;
    *now = next;
    Ok((took, joined))
}

/// Starts the process of a place again: it joins the leader without an election, and all come to know it.
/// Says how long the joining took.
pub fn bring_back(
    processes: &mut ProcessCluster,
    place: usize,
    flags: &[&str],
    now: &Agreement,
) -> Result<Duration, String> {
    let at = Instant::now();
    processes.start(place, flags).map_err(text)?;
    let all = processes.agree(now.epoch - 1, PATIENCE).map_err(text)?;
    unchanged(processes, now, &all, "rejoined")?;
    acquainted(processes)?;
    ready(processes)?;
    let after = processes.agree(now.epoch - 1, PATIENCE).map_err(text)?;
    unchanged(processes, now, &after, "rejoined")?;
    Ok(all.since.saturating_duration_since(at))
}

/// Waits until all are ready. A restarted voter may have forgotten a promise until it hears the leader's
/// heartbeat. A crash before that would be a second failure while the first one lasts. In a new cluster, a
/// voter that only learns of the leader has no record yet. A crash then waits until it has asked for one.
pub fn ready(processes: &ProcessCluster) -> Result<(), String> {
    match processes
        .running()
        .into_iter()
        .find(|place| within(PATIENCE, || is_ready(processes, *place).then_some(())).is_none())
    {
        None => Ok(()),
        Some(place) => Err(format!("{} does not become ready", processes.name(place))),
    }
}

/// Whether a process says that it takes part, and knows a leader.
pub fn is_ready(processes: &ProcessCluster, place: usize) -> bool {
    processes.get(place, "/readyz?leader=known").is_ok_and(|(status, _)| status == 200)
}

fn unchanged(
    processes: &ProcessCluster,
    before: &Agreement,
    after: &Agreement,
    what: &str,
) -> Result<(), String> {
    if (after.leader, after.epoch) == (before.leader, before.epoch) {
        return Ok(());
    }
    Err(format!(
        "there was an election when a process {what}: {} led in epoch {}, and now {} in epoch {}",
        processes.name(before.leader),
        before.epoch,
        processes.name(after.leader),
        after.epoch
    ))
}

/// What came of a pause.
pub struct Pause {
    /// From SIGSTOP until the others agreed.
    pub took: Duration,
    /// From SIGCONT until all agreed again.
    pub joined: Duration,
    /// Answers of the woken process that were checked.
    pub answers: u64,
}

/// Stops the leader for `stopped`, and the others elect another. The woken one joins that one without an
/// election and does not say a single time that it leads.
pub fn pause(
    processes: &mut ProcessCluster,
    now: &Agreement,
    stopped: Duration,
) -> Result<(Agreement, Pause), String> {
    acquainted(processes)?;
    let place = now.leader;
    let others = others(processes, place);
    // Some connections are old when it stops.
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, processes.ports(place).http));
    let old: Vec<TcpStream> =
        (0..POLLERS / 2).map(|_| TcpStream::connect(address)).collect::<Result<_, _>>().map_err(text)?;
    let at = Instant::now();
    processes.signal(place, Signal::STOP);
    let next = processes.agree_among(&others, now.epoch, PATIENCE).map_err(text)?;
    let took = next.since.saturating_duration_since(at);

    let done = AtomicBool::new(false);
    let yes_before = processes.sighting(place).yes;
    let (woken, all, answers) = std::thread::scope(|scope| {
        let mut connections: Vec<Option<TcpStream>> = old.into_iter().map(Some).collect();
        connections.resize_with(POLLERS, || None);
        let done = &done;
        // They ask while it is stopped, so that it finds their questions waiting for it.
        let pollers: Vec<_> = connections
            .into_iter()
            .map(|open| scope.spawn(move || poll(address, open, done, stopped + PATIENCE)))
            .collect();
        std::thread::sleep(stopped.saturating_sub(at.elapsed()));
        let woken = Instant::now();
        processes.signal(place, Signal::CONT);
        let all = processes.agree(now.epoch, PATIENCE);
        done.store(true, Ordering::Relaxed);
        let answers: Result<Vec<Vec<(Instant, bool)>>, String> =
            pollers.into_iter().map(|p| p.join().map_err(|_| "a poller panicked".to_owned())).collect();
        (woken, all, answers)
    });
    let all = all.map_err(text)?;
    let answers: Vec<(Instant, bool)> = answers?.into_iter().flatten().collect();
    if let Some((when, _)) = answers.iter().filter(|(_, yes)| *yes).min() {
        return Err(format!(
            "{} said that it leads {:?} after SIGCONT, while {} leads in epoch {}",
            processes.name(place),
            when.saturating_duration_since(woken),
            processes.name(next.leader),
            next.epoch
        ));
    }
    if processes.sighting(place).yes != yes_before {
        return Err(format!("{} said that it leads after SIGCONT", processes.name(place)));
    }
    unchanged(processes, &next, &all, "woke")?;
    let joined = all.since.saturating_duration_since(woken);
    Ok((next, Pause { took, joined, answers: answers.len() as u64 }))
}

/// Asks as fast as it can until `done`, and a while longer: when each answer came, and whether it was yes.
fn poll(
    address: SocketAddr,
    mut open: Option<TcpStream>,
    done: &AtomicBool,
    timeout: Duration,
) -> Vec<(Instant, bool)> {
    let mut answers = Vec::new();
    let deadline = Instant::now() + timeout;
    let go_on = |answers: usize| !done.load(Ordering::Relaxed) || answers < ANSWERS_EACH;
    while go_on(answers.len()) && Instant::now() < deadline {
        let stream = match open.take() {
            Some(stream) => stream,
            None => match TcpStream::connect(address) {
                Ok(stream) => stream,
                Err(_) => continue,
            },
        };
        if let Ok((answer, stream)) = ask(stream, timeout) {
            answers.push((Instant::now(), answer.is_leader));
            open = Some(stream);
        }
    }
    answers
}

/// One question over a connection that stays open.
pub fn ask(stream: TcpStream, timeout: Duration) -> std::io::Result<(LeaderAnswer, TcpStream)> {
    stream.set_read_timeout(Some(timeout))?;
    stream.set_nodelay(true)?;
    (&stream).write_all(b"GET /leader HTTP/1.1\r\nHost: here\r\n\r\n")?;
    let mut received = Vec::new();
    let mut buffer = [0u8; 2048];
    loop {
        let count = (&stream).read(&mut buffer)?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        received.extend_from_slice(&buffer[..count]);
        // The body is the only thing in braces, and comes last.
        let body = received.iter().position(|b| *b == b'{').map(|begin| &received[begin..]);
        if let Some(answer) = body.and_then(|body| serde_json::from_slice(body).ok()) {
            return Ok((answer, stream));
        }
    }
}

fn text(error: impl Display) -> String {
    error.to_string()
}
