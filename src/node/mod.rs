//! The sidecar: one driver thread that owns the machine, and everything it needs around it.
//!
//! The order at a start: log, signals, configuration's folder, ports, transport, HTTP, discovery, then the
//! machine's first event. The order at an end: the machine's resignation, links closed as deliberate, log
//! flushed, exit code. A part that breaks ends the process with exit code 1, and a panic on any thread aborts
//! it: no part may go on answering for a dead driver.

mod app_probe;
mod applications;
mod driver;
mod operators;
mod peers_writer;
mod published_state;
mod signals;
mod stop;
mod timers;

use crate::base::{Budget, Clock, LogEvent, Reading, wall_ms};
use crate::channel::{Credentials, Keys};
use crate::config::{AppClients, Config};
use crate::discovery::{self, Discovery, LookupResult};
use crate::election::{Body, Incarnation, KnownPeers, Machine, Peer, ProcessId, Record, Safety};
use crate::store::{OpenError, PeersError, PeersFile, Store};
use crate::telemetry::{self, Metrics};
use crate::transport::{self, Transport};
use crate::{control, http, net, wire};
use driver::{Driver, Input, State};
use peers_writer::PeersWriter;
use published_state::{AskDriver, PublishedState};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;
use uuid::Uuid;

/// How many inputs wait for the driver. A thread with one more waits for room, and so does the peer whose
/// link it reads. The queue takes its memory at once, about 180 bytes for each.
const INPUTS_MAX: usize = 1024;
/// How long a process that fails waits for its last line, the reason, to be written.
const LAST_LINE_LONGEST: Duration = Duration::from_secs(3);
/// How many files are open besides connections: the ports, the record and its lock, pipes, a look-up's
/// sockets.
const DESCRIPTORS_BESIDES: usize = 64;
/// How often discovery looks in a hurry.
const REFRESH_HURRIED: Duration = Duration::from_millis(500);

/// Why the sidecar cannot start, or ended.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("{0}")]
    Open(#[from] OpenError),
    #[error("{0}")]
    Proof(#[from] crate::channel::ProofError),
    #[error("cannot listen for {what} ({flag}): {source}")]
    Listen { what: &'static str, flag: &'static str, source: net::ListenError },
    #[error("cannot listen for operators (--control-socket): {0}")]
    Control(#[from] control::SocketError),
    #[error("the operating system refused a thread or a socket: {0}")]
    System(#[from] std::io::Error),
    #[error("{0}")]
    Driver(#[from] driver::DriverError),
}

impl RunError {
    /// 2 for what the operator has to mend before another start makes sense, 1 for fail-stop.
    fn exit_code(&self) -> u8 {
        match self {
            RunError::Open(_) | RunError::Proof(_) | RunError::Listen { .. } | RunError::Control(_) => 2,
            RunError::System(_) | RunError::Driver(_) => 1,
        }
    }
}

/// Runs the sidecar until it is told to stop. The exit code is 0 then, 2 where it could not start as
/// configured, and 1 when it had to stop itself.
pub fn run(config: Config) -> ExitCode {
    let _flushed_at_the_end = telemetry::log::init(config.log, config.log_format, &config.cluster);
    abort_on_panic();
    for warning in config.warnings() {
        LogEvent::warn("settings").say(warning);
    }
    let outcome = sidecar(config);
    let code = match &outcome {
        Ok(()) => {
            LogEvent::info("stopped").say("this process has stopped");
            0
        }
        Err(failure) => {
            LogEvent::error("failed").say(failure);
            telemetry::log::flush_within(LAST_LINE_LONGEST);
            failure.exit_code()
        }
    };
    ExitCode::from(code)
}

/// A panic on any thread is logged and ends the process. Nothing is written to stderr but through the log: a
/// stream without a reader would hold up the end, while other threads go on.
fn abort_on_panic() {
    std::panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name");
        LogEvent::error("panicked").with("thread", name).say(format_args!(
            "a part of this process panicked, so all of it ends (fail-stop): thread {name}: {info}"
        ));
        let backtrace = std::backtrace::Backtrace::capture();
        if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
            LogEvent::error("panicked").with("thread", name).say(backtrace);
        }
        telemetry::log::flush();
        std::process::abort();
    }));
}

/// Takes as many file descriptors as this program's limits may need, where the system's soft limit is lower.
fn allow_descriptors(watchers_max: usize) {
    let clients = http::LIMITS.connections_max + watchers_max + http::LOOPBACK_WATCHERS;
    let peers = transport::LINKS_MAX + transport::STRANGERS_MAX;
    let dials = transport::DIALS_MAX + transport::DIALS_WITH_STRANGERS_MAX;
    let wanted = u64::try_from(peers + dials + clients + DESCRIPTORS_BESIDES).unwrap_or(u64::MAX);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        let granted = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(granted), ..limit }) {
            LogEvent::warn("open_files")
                .say(format_args!("the limit of open files stays at {:?}: {error}", limit.current));
        } else if granted < wanted {
            LogEvent::warn("open_files").with("granted", granted).with("wanted", wanted).say(
                "fewer files may be open than a full election under load may need; raise the hard limit \
                 (RLIMIT_NOFILE)",
            );
        }
    }
}

fn sidecar(config: Config) -> Result<(), RunError> {
    let (sender, inputs) = sync_channel(INPUTS_MAX);
    // First of all: see `signals`. It also ends a start that hangs.
    let stop = Arc::new(stop::Stop::default());
    signals::watch(sender.clone(), Arc::clone(&stop), config.settings.stop_wait)?;
    allow_descriptors(config.watchers_max);
    let credentials =
        Arc::new(Credentials::open(config.peer_auth, config.peer_proof.clone(), &config.cluster)?);
    let (state, Kept { record, known }) = open(&config)?;
    let peer_port = listen(config.listen, "peers", "--listen")?;
    let http_port = listen(config.http, "HTTP", "--http")?;
    let operators_port = operators::bind(&config, http_port.local_addr()?.port())?;
    let me = identity(&config, record.as_ref(), peer_port.local_addr()?);
    LogEvent::info("started")
        .with("version", env!("CARGO_PKG_VERSION"))
        .with("name", me.name.as_str())
        .with("id", me.id.to_string())
        .with("priority", me.priority.0)
        .with("listen", peer_port.local_addr()?.to_string())
        .with("http", http_port.local_addr()?.to_string())
        .say(format_args!("this process takes part in election {:?}", config.cluster));

    let metrics = Metrics::new(&config.cluster);
    metrics.begin_messages(Body::names_of(&config.settings.safety));
    metrics.begin_requests(&crate::http::routes::PATHS);
    let mut machine =
        Machine::new(config.settings.clone(), config.cluster.clone(), me.clone(), record.as_ref());
    if let Some(known) = &known {
        machine.ask_first(known);
    }
    let published_state =
        Arc::new(PublishedState::new(machine.status(), Clock::new(Reading::take()), metrics.clone()));

    let budget = Budget::new(config.buffers_max);
    let trust = Trust { credentials: Arc::clone(&credentials), budget: budget.clone() };
    let transport = start_transport(&config, me, peer_port, sender.clone(), metrics.clone(), trust)?;
    let applications = (config.app_clients == AppClients::Loopback)
        .then(|| Box::new(applications::Applications(sender.clone())) as Box<dyn AskDriver>);
    let election = config.cluster.clone();
    let answers =
        published_state::Answers { state: Arc::clone(&published_state), credentials, applications, election };
    let room = http::Room { budget, watchers_max: config.watchers_max };
    let server = http::start(http_port, answers, room)?;
    let operators = operators::operators(sender.clone());
    // Its file goes when this function ends.
    let _socket = operators_port.map(|bound| control::serve(bound, operators)).transpose()?;
    if let Some(probe) = config.probe.clone() {
        app_probe::start(probe, sender.clone())?;
    }
    let discovery = start_discovery(&config, sender, Arc::clone(&published_state))?;

    let driver = Driver::new(machine, state, transport, published_state, discovery, stop, &config.settings);
    driver.run(inputs)?;
    server.stop();
    Ok(())
}

/// With what this process meets peers.
struct Trust {
    credentials: Arc<Credentials>,
    budget: Budget,
}

/// Starts the transport, which reports to the driver.
fn start_transport(
    config: &Config,
    me: Peer,
    listener: TcpListener,
    reports: SyncSender<Input>,
    metrics: Metrics,
    Trust { credentials, budget }: Trust,
) -> io::Result<Transport> {
    Transport::start(
        transport::TransportSettings {
            cluster: config.cluster.clone(),
            safety: match config.settings.safety {
                Safety::Classic => wire::SafetyCode::Classic,
                Safety::Majority { .. } => wire::SafetyCode::Majority,
            },
            me,
            announce: config.announce.clone(),
            credentials,
            budget,
            dial_timeout: config.dial_timeout,
            unacknowledged_max: 2 * config.settings.failure_timeout,
        },
        listener,
        // The driver outlives the transport; once it is gone no part has to know any more.
        Arc::new(move |report| drop(reports.send(Input::Report(report)))),
        Arc::new(Counted(metrics)),
    )
}

/// Starts discovery. It tells the driver of every answer that says where peers are, and publishes what it
/// warns of.
fn start_discovery(
    config: &Config,
    inputs: SyncSender<Input>,
    published_state: Arc<PublishedState>,
) -> io::Result<Discovery> {
    discovery::spawn(
        discovery::DiscoverySettings {
            service: config.service.clone(),
            peers: config.peers.iter().map(|p| (p.host.clone(), p.port)).collect(),
            peer_port: config.peer_port,
            refresh: config.refresh,
            refresh_hurried: REFRESH_HURRIED,
        },
        move |lookup| {
            published_state.metrics().lookup(lookup.result.name());
            published_state.discovery_warns(lookup.warning);
            let addresses = match lookup.result {
                LookupResult::Found(addresses) => addresses,
                // None is published yet, or there was nothing to ask for.
                LookupResult::Empty => BTreeSet::new(),
                LookupResult::Unknown { .. } => return,
            };
            let _ = inputs.send(Input::Found { addresses, complete: lookup.complete });
        },
    )
}

/// What this process kept from its last life.
#[derive(Default)]
struct Kept {
    record: Option<Record>,
    known: Option<KnownPeers>,
}

/// Opens the state folder, if there is one, and reads what this process kept.
fn open(config: &Config) -> Result<(Option<State>, Kept), RunError> {
    let Some(folder) = &config.state_dir else { return Ok((None, Kept::default())) };
    let (store, record) = Store::open(folder)?;
    if let Some(record) = &record {
        store.check_cluster(record, &config.cluster)?;
        store.check_epochs(record, wall_ms())?;
        if let Safety::Majority { .. } = config.settings.safety {
            store.check_voter(record, &config.name)?;
        }
    }
    let mut file = store.peers_file();
    let known = known_peers(&file, &config.cluster)?;
    let peers = PeersWriter::spawn(move |known| file.write(known))?;
    Ok((Some(State { store, peers }), Kept { record, known }))
}

/// Where peers were. Without the file, or if it is damaged, the process starts, and asks those that discovery
/// names. It does not start with one that may be another user's doing.
fn known_peers(file: &PeersFile, cluster: &str) -> Result<Option<KnownPeers>, RunError> {
    let why = match file.read() {
        Ok(known) if known.as_ref().is_none_or(|known| known.cluster == cluster) => return Ok(known),
        Ok(_) => "the file of known peers is of another election".to_owned(),
        Err(PeersError::Untrusted(untrusted)) => return Err(OpenError::from(untrusted).into()),
        Err(error) => error.to_string(),
    };
    LogEvent::warn("peers_not_read")
        .say(format_args!("{why}; this process starts without known peers and will replace the file"));
    Ok(None)
}

fn listen(address: SocketAddr, what: &'static str, flag: &'static str) -> Result<TcpListener, RunError> {
    net::listen(address).map_err(|source| RunError::Listen { what, flag, source })
}

/// This process's id: the one of its record, or a new one.
fn identity(config: &Config, record: Option<&Record>, listening: SocketAddr) -> Peer {
    let id = record.map_or_else(|| ProcessId(Uuid::new_v4()), |r| r.id);
    Peer {
        id,
        incarnation: Incarnation(Uuid::new_v4().as_u64_pair().0),
        name: config.name.clone(),
        address: advertised(config, listening),
        priority: config.priority,
        revision: config.revision.clone(),
    }
}

/// Where peers reach this process: as configured, else where it listens, if that is one address. Otherwise it
/// is left unspecified until the first dial shows which address leads to the peers.
fn advertised(config: &Config, listening: SocketAddr) -> SocketAddr {
    match config.advertise {
        Some(address) => address,
        None if !listening.ip().is_unspecified() => listening,
        None => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), listening.port()),
    }
}

/// The transport's counts as metrics.
struct Counted(Metrics);

impl transport::Counts for Counted {
    fn sent(&self, name: &'static str) {
        self.0.sent(name);
    }

    fn received(&self, name: &'static str) {
        self.0.received(name);
    }

    fn unknown_frame(&self) {
        self.0.unknown_frame();
    }

    fn refused(&self) {
        self.0.connection_refused();
    }

    fn unauthenticated(&self) {
        self.0.unauthenticated();
    }

    fn peer_keys(&self, keys: &Keys) {
        self.0.peer_keys(keys.fingerprints(), keys.expires());
    }

    fn peer_keys_unusable(&self) {
        self.0.peer_keys_unusable();
    }

    fn links(&self, links: transport::LinkCounts) {
        self.0.links(links.clear, links.sealed, links.former);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{OFlags, fcntl_setfl};
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    const PANICS: &str = "node::tests::panics_in_a_process_of_its_own";

    /// Set for the process of the test below that is to panic.
    const TO_PANIC: &str = "_BELLWETHER_TEST_TO_PANIC";

    /// The other half of the next test, which starts it in a process of its own; nothing by itself.
    #[test]
    fn panics_in_a_process_of_its_own() {
        if std::env::var_os(TO_PANIC).is_none() {
            return;
        }
        let _guard = telemetry::log::init(log::LevelFilter::Info, crate::config::LogFormat::Text, "web");
        abort_on_panic();
        panic!("on purpose");
    }

    #[test]
    fn a_panic_ends_the_process_though_no_reader_takes_the_log() {
        let (_unread, stderr) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        while rustix::io::write(&stderr, &[b'.'; 4096]).is_ok() {}
        fcntl_setfl(&stderr, OFlags::empty()).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", PANICS, "--nocapture"])
            .env(TO_PANIC, "1")
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        let ended = loop {
            match child.try_wait().unwrap() {
                None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                ended => break ended,
            }
        };
        let _ = child.kill();
        child.wait().unwrap();
        assert_eq!(ended.and_then(|status| status.signal()), Some(6), "{ended:?}");
    }
}
