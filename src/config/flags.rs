//! The command line's flags. Their doc comments are what `--help` prints: its first paragraph with `-h`, all
//! of it with `--help`. The values are checked one by one here, and against each other in `validate`.

use super::client::{
    ALIVE_EXAMPLES, AliveArgs, EXEC_EXAMPLES, EXEC_LONG, ExecArgs, INSTALL_EXAMPLES, InstallArgs,
    WAIT_EXAMPLES, WATCH_EXAMPLES, WATCH_LONG, WaitArgs, WatchArgs,
};
use super::host_port::{HostPort, host_name};
#[cfg(feature = "inject")]
use super::inject::{INJECT_EXAMPLES, INJECT_LONG, InjectArgs};
use super::modes::{LeaseMode, SafetyLevel};
use super::operate::{
    Asking, CORDON_EXAMPLES, CORDON_LONG, ControlSocket, RESIGN_EXAMPLES, RESIGN_LONG, ResignFlags,
    TRANSFER_EXAMPLES, TRANSFER_LONG, TransferFlags, UNCORDON_EXAMPLES, UNCORDON_LONG,
};
#[cfg(feature = "sim")]
use super::sim::{SIM_EXAMPLES, SimFlags};
use super::value_parsers::{
    AppClients, AppHealth, Output, announced, app_health, crash_evidence, mebibytes, one_of, peer_port,
    preempt, socket_address, whole,
};
use super::voters::{Voters, voters};
use crate::base::duration::{parse, parse_positive};
use crate::channel::{PeerAuth, SanPattern};
use crate::election::{CrashEvidence, Founding, MEMBERS_MAX, Preempt, Priority, Variant, WhenAllSick};
use crate::telemetry::log::LogFormat;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use core::net::SocketAddr;
use log::LevelFilter;
use std::path::PathBuf;
use std::time::Duration;

const PEERS: &str = "Peers";
const PROCESS: &str = "This process";
const APPLICATION: &str = "Application";
const ELECTION: &str = "Election";
const TIMING: &str = "Timing";
const LOGGING: &str = "Logging";

/// How many probes in a row may have to agree.
const PROBES_MOST: u64 = 100;

/// What `--watchers-max` may be at most.
const WATCHERS_MOST: u64 = 4096;

/// The introduction in a line, for `-h`.
pub const ABOUT: &str = "Elects one leader among processes, and tells the application beside each of them";

/// The introduction, for `--help`.
pub const LONG_ABOUT: &str = "\
bellwether elects one leader among processes, and tells the application beside each of them which one leads.

It runs as a sidecar: one next to each instance of the application. It finds its peers through the DNS of a \
headless Service (--service) or a list (--peers). It elects a leader among them with the Bully algorithm \
over TCP (port 4041), and answers on HTTP (port 4040). GET /leader names the leader. GET /is-leader says by \
its status whether it is this instance. It needs no API server, no permissions and no database.

Every flag of `run` may also be given as an environment variable, whose name --help shows. A flag wins over \
its variable, and an empty variable counts as not set. A duration is one whole number and a unit: 250ms, 5s, \
1m.";

/// Shown under the flags of `run`.
const RUN_EXAMPLES: &str = "\
Examples:
  In a pod, with a headless Service that is called web (POD_NAME and POD_IP from the downward API):
    bellwether run --service web
  A replica that only takes over when no better one is there, and one that never leads:
    bellwether run --service web --priority 50
    bellwether run --service web --priority 0
  In a StatefulSet of three that is called web, with at most one leader at every instant:
    bellwether run --service web --safety majority --voters 3 --state-dir /state
  The first start of a single voter, which no other voter can confirm:
    bellwether run --safety majority --voters one --name one --state-dir /state --found yes
  Three processes without DNS, each on its own machine:
    bellwether run --peers 10.0.0.1:4041,10.0.0.2:4041,10.0.0.3:4041 --election web
  To see an election, and to ask the sidecar here:
    bellwether demo
    bellwether status
    curl http://127.0.0.1:4040/leader

Exit codes:
  0  asked to stop (SIGTERM, SIGINT), and done with it
  1  fail-stop: the record cannot be written, or the system refuses a thread or a socket
  2  bad configuration: nothing was started
  3  the process answers, but knows no leader (`status`), or says why a command is not done (`resign` …)";

const DEMO_EXAMPLES: &str = "\
Examples:
  bellwether demo
  bellwether demo -n 5 --once
  bellwether demo --safety majority --once";

const STATUS_EXAMPLES: &str = "\
Examples:
  bellwether status
  bellwether status -o json --url 10.0.0.7:4040
  kubectl exec POD -c bellwether -- bellwether status

Exit codes:
  0  a leader is known (with --healthz: the process is healthy)
  1  not reachable, or the answer makes no sense (with --healthz: or it is not healthy)
  2  bad configuration
  3  the process answers, but knows no leader";

/// All of it, but for the flags of `run` that may stand without the word `run`: `config` puts that in.
#[derive(clap::Parser)]
#[command(
    name = "bellwether",
    version,
    about = ABOUT,
    long_about = LONG_ABOUT,
    after_long_help = RUN_EXAMPLES,
    max_term_width = 110
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(clap::Subcommand)]
pub enum Command {
    /// Runs the sidecar; the same as no command
    #[command(long_about = LONG_ABOUT, after_long_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Starts sidecars on this machine, kills leaders and shows how fast others take over
    #[command(after_long_help = DEMO_EXAMPLES)]
    Demo(DemoArgs),
    /// Asks a sidecar for the leader and the members
    #[command(after_long_help = STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// Runs a command while the process here leads
    #[command(long_about = EXEC_LONG, after_long_help = EXEC_EXAMPLES)]
    Exec(ExecArgs),
    /// Tells of each change of the leader, by a line or a command
    #[command(long_about = WATCH_LONG, after_long_help = WATCH_EXAMPLES)]
    Watch(WatchArgs),
    /// Waits for a leader, or until the process here leads or follows
    #[command(after_long_help = WAIT_EXAMPLES)]
    Wait(WaitArgs),
    /// Says that the application here is healthy for a time
    #[command(after_long_help = ALIVE_EXAMPLES)]
    Alive(AliveArgs),
    /// Copies this program into a folder, for containers that lack it
    #[command(after_long_help = INSTALL_EXAMPLES)]
    Install(InstallArgs),
    /// Has the leader here resign, for an operator
    #[command(long_about = RESIGN_LONG, after_long_help = RESIGN_EXAMPLES)]
    Resign(ResignFlags),
    /// Has the leader here resign in favour of a member, for an operator
    #[command(long_about = TRANSFER_LONG, after_long_help = TRANSFER_EXAMPLES)]
    Transfer(TransferFlags),
    /// Keeps the process here from leading, for an operator
    #[command(long_about = CORDON_LONG, after_long_help = CORDON_EXAMPLES)]
    Cordon(Asking),
    /// Lets the process here lead again
    #[command(long_about = UNCORDON_LONG, after_long_help = UNCORDON_EXAMPLES)]
    Uncordon(Asking),
    /// Simulates clusters with faults, from seeds, and checks what is promised
    #[cfg(feature = "sim")]
    #[command(after_long_help = SIM_EXAMPLES)]
    Sim(SimFlags),
    /// Adds the sidecar to Kubernetes manifests, or takes it out again
    #[cfg(feature = "inject")]
    #[command(long_about = INJECT_LONG, after_long_help = INJECT_EXAMPLES)]
    Inject(InjectArgs),
}

/// The flags of `run`.
#[derive(clap::Args, Clone, Debug)]
pub struct RunArgs {
    /// Headless Service whose DNS names the peers
    ///
    /// A name as the pod resolves it (web, or web.default.svc.cluster.local). Its addresses are candidates.
    /// One that is missing proves nothing, and a look-up that fails removes no member. The Service should
    /// publish not-ready addresses.
    #[arg(
        long, env = "BELLWETHER_SERVICE", value_name = "NAME",
        help_heading = PEERS, value_parser = host_name
    )]
    pub service: Option<String>,

    /// Peers given one by one, separated by commas
    ///
    /// Host names or IP addresses, IPv6 in brackets. This process may be among them. May be combined with
    /// --service.
    #[arg(
        long, env = "BELLWETHER_PEERS", value_name = "HOST:PORT", help_heading = PEERS,
        value_delimiter = ','
    )]
    pub peers: Vec<HostPort>,

    /// Peer port of the processes that --service finds
    #[arg(
        long, env = "BELLWETHER_PEER_PORT", value_name = "PORT", help_heading = PEERS, default_value = "4041",
        value_parser = peer_port
    )]
    pub peer_port: u16,

    /// Members to wait for at a start without a leader, this process included
    ///
    /// The first election waits until this many are connected, but no longer than --start-timeout. 0 or 1: it
    /// waits only until the set of peers has not changed for --stable-margin.
    #[arg(
        long, env = "BELLWETHER_EXPECT", value_name = "N", help_heading = PEERS, default_value = "0",
        value_parser = |text: &str| whole::<usize>(text, 0..=MEMBERS_MAX as u64)
    )]
    pub expect: usize,

    /// Where peers reach this process
    ///
    /// Without it: the address in POD_IP with the port of --listen, and without that the local address of the
    /// route to the peers.
    #[arg(
        long, env = "BELLWETHER_ADVERTISE", value_name = "ADDR:PORT", help_heading = PROCESS,
        value_parser = socket_address
    )]
    pub advertise: Option<SocketAddr>,

    /// Peer port: where this process listens for its peers
    ///
    /// The default listens on IPv4 and IPv6, and on IPv4 alone where there is no IPv6.
    #[arg(
        long, env = "BELLWETHER_LISTEN", value_name = "ADDR:PORT", help_heading = PROCESS,
        default_value = "[::]:4041", value_parser = socket_address
    )]
    pub listen: SocketAddr,

    /// Status API: where this process answers HTTP
    #[arg(
        long, env = "BELLWETHER_HTTP", value_name = "ADDR:PORT", help_heading = PROCESS,
        default_value = "[::]:4040", value_parser = socket_address
    )]
    pub http: SocketAddr,

    /// How many clients may watch at a time (/watch, /sse); 32 more may from this host
    ///
    /// One more is refused with status 503. Each takes a descriptor and about 2 KiB. One that does not read
    /// takes up to 32 KiB of the kernel's memory before it is cut off.
    #[arg(
        long, env = "BELLWETHER_WATCHERS_MAX", value_name = "N", help_heading = PROCESS,
        default_value = "256", value_parser = |text: &str| whole::<usize>(text, 0..=WATCHERS_MOST)
    )]
    pub watchers_max: usize,

    /// Which applications may take holds and report their health: `loopback` or `none`
    ///
    /// loopback: those that come over a loopback address, which in a pod are the pod's own. none: none. With
    /// hostNetwork all of the node comes over loopback, so choose none there.
    #[arg(
        long, env = "BELLWETHER_APP_CLIENTS", value_name = "WHICH", help_heading = PROCESS,
        default_value = "loopback"
    )]
    pub app_clients: AppClients,

    /// A value for the applications of all members, KEY=VALUE; may be given 8 times
    ///
    /// `/leader` and `/members` show it beside the address. The key `url` is where `/redirect` sends clients:
    /// url=http://10.0.0.1:8080 or https. A key has 1 to 32 characters: a-z, 0-9, dot, underscore or hyphen.
    /// A value has at most 256 bytes. The variable has one pair.
    #[arg(
        long, env = "BELLWETHER_ANNOUNCE", value_name = "KEY=VALUE", help_heading = PROCESS,
        value_parser = announced
    )]
    pub announce: Vec<(String, String)>,

    /// Probe of the application here: http://HOST:PORT/PATH or tcp://HOST:PORT
    ///
    /// HOST is an address or localhost. A status of 200 to 399 is healthy, and redirects are not followed.
    /// Before the application is healthy this process is no candidate, and a leader transfers leadership. It
    /// votes all the same. A refused connection counts at once.
    #[arg(
        long, env = "BELLWETHER_APP_HEALTH", value_name = "URL", help_heading = APPLICATION,
        value_parser = app_health
    )]
    pub app_health: Option<AppHealth>,

    /// How often the application is probed
    #[arg(
        long, env = "BELLWETHER_APP_HEALTH_INTERVAL", value_name = "TIME", help_heading = APPLICATION,
        default_value = "1s", value_parser = parse_positive
    )]
    pub app_health_interval: Duration,

    /// How long one probe may take
    #[arg(
        long, env = "BELLWETHER_APP_HEALTH_TIMEOUT", value_name = "TIME", help_heading = APPLICATION,
        default_value = "1s", value_parser = parse_positive
    )]
    pub app_health_timeout: Duration,

    /// How many probes in a row have to fail
    #[arg(
        long, env = "BELLWETHER_APP_HEALTH_FAILURES", value_name = "N", help_heading = APPLICATION,
        default_value = "3", value_parser = |text: &str| whole::<u32>(text, 1..=PROBES_MOST)
    )]
    pub app_health_failures: u32,

    /// How many probes in a row have to succeed
    #[arg(
        long, env = "BELLWETHER_APP_HEALTH_SUCCESSES", value_name = "N", help_heading = APPLICATION,
        default_value = "1", value_parser = |text: &str| whole::<u32>(text, 1..=PROBES_MOST)
    )]
    pub app_health_successes: u32,

    /// Whether a lifeline (/lifeline) has to be open before this process is a candidate: `true` or `false`
    ///
    /// Lifelines count in any case from the first one on. The end of the last one is the application's death.
    #[arg(
        long, env = "BELLWETHER_REQUIRE_LIFELINE", value_name = "BOOL", help_heading = APPLICATION,
        default_value = "false", default_missing_value = "true", num_args = 0..=1, require_equals = true,
        action = clap::ArgAction::Set
    )]
    pub require_lifeline: bool,

    /// A leader that is not healthy, and no healthy member to take over: `keep` leads on, `none` resigns
    #[arg(
        long, env = "BELLWETHER_WHEN_ALL_SICK", value_name = "WHAT", help_heading = APPLICATION,
        default_value = "keep",
        value_parser = one_of([("keep", WhenAllSick::Keep), ("none", WhenAllSick::None)])
    )]
    pub when_all_sick: WhenAllSick,

    /// Longest hold that a leader promises an application
    ///
    /// No other member leads before a hold is over. With --safety classic nothing is promised.
    #[arg(
        long, env = "BELLWETHER_HOLD_MAX", value_name = "TIME", help_heading = TIMING, default_value = "1s",
        value_parser = parse_positive
    )]
    pub hold_max: Duration,

    /// How long a leader that is to resign waits for holds that go on
    #[arg(
        long, env = "BELLWETHER_STOP_WAIT", value_name = "TIME", help_heading = TIMING,
        default_value = "10s", value_parser = parse
    )]
    pub stop_wait: Duration,

    /// Control path: where operators ask, a path, @NAME or `none` (default: @bellwether-PORT, of --http)
    ///
    /// A Unix socket for `bellwether resign`, `transfer`, `cordon` and `uncordon`. Over HTTP
    /// applications alone touch the election, by holds, `valid_for` and their health. Only root and the user
    /// of this process may ask. A path becomes a file of mode 0600. @NAME is a name in the network namespace:
    /// it takes no file, and the other containers of the pod see it too.
    #[arg(
        long, env = "BELLWETHER_CONTROL_SOCKET", value_name = "SOCKET", help_heading = PROCESS
    )]
    pub control_socket: Option<ControlSocket>,

    /// Name of this process for people; unique in the election
    ///
    /// Without it: the value of POD_NAME, and without that the host name.
    #[arg(long, env = "BELLWETHER_NAME", value_name = "NAME", help_heading = PROCESS)]
    pub name: Option<String>,

    /// Name of the election; peers of another election are refused
    ///
    /// Without it: the first part of --service's name, and without that `default`.
    #[arg(
        long, alias = "cluster", env = "BELLWETHER_ELECTION", value_name = "NAME", help_heading = PROCESS
    )]
    pub election: Option<String>,

    /// Folder for the durable record (id, epoch, vote), and for where peers were [default: none]
    ///
    /// With it a restart keeps the process's id, and its epoch never goes back. Without it a restart is a new
    /// process. --safety majority requires it.
    #[arg(long, env = "BELLWETHER_STATE_DIR", value_name = "DIR", help_heading = PROCESS)]
    pub state_dir: Option<PathBuf>,

    /// What this process was made from, such as its pod's template hash
    ///
    /// A leader that is told to stop prefers a successor of another revision than its own. That one has
    /// already been restarted in the rollout under way. Without it: unknown.
    #[arg(long, env = "BELLWETHER_REVISION", value_name = "TEXT", help_heading = PROCESS)]
    pub revision: Option<String>,

    /// What is promised: `classic` or `majority`
    #[arg(
        long, env = "BELLWETHER_SAFETY", value_name = "LEVEL", help_heading = ELECTION, value_enum,
        default_value = "classic"
    )]
    pub safety: SafetyLevel,

    /// The voters of --safety majority: a number, or names separated by commas
    ///
    /// 3 in a StatefulSet called web: web-0, web-1 and web-2. Give all processes the same; of N voters, more
    /// than half must be up, so an odd number is best.
    #[arg(
        long, env = "BELLWETHER_VOTERS", value_name = "N|NAMES",
        help_heading = ELECTION, value_parser = voters
    )]
    pub voters: Option<Voters>,

    /// Whether a voter without a record may found the cluster: `auto`, `yes` or `no`
    ///
    /// A voter with an empty --state-dir cannot tell a first start from a scale-down that lost its disk. yes:
    /// it founds the cluster together with all others of --voters. All of them have to be there, without
    /// records, and to have the same --voters and --lease. no: it only recovers from the records of the
    /// others. auto: as yes where --voters names two or more, and as no where it names this process alone.
    #[arg(
        long, env = "BELLWETHER_FOUND", value_name = "WHEN", help_heading = ELECTION, default_value = "auto",
        value_parser = one_of([("auto", Founding::Auto), ("yes", Founding::Yes), ("no", Founding::No)])
    )]
    pub found: Founding,

    /// Rank among the processes, 0 to 1000: the highest leads, 0 never does
    ///
    /// Between equal priorities the process's id decides.
    #[arg(
        long, env = "BELLWETHER_PRIORITY", value_name = "N", help_heading = ELECTION, default_value = "100",
        value_parser = |text: &str| whole::<u16>(text, 0..=Priority::MAX.0.into())
    )]
    pub priority: u16,

    /// When a better process takes over from a live leader: `always`, `never` or a delay
    ///
    /// always: as soon as the highest process, by priority and id, is back (the paper). never: a leader leads
    /// until it dies or resigns. A delay: a process of higher priority takes over by leadership transfer once
    /// it has been alive for that long; an id alone never does.
    #[arg(
        long, env = "BELLWETHER_PREEMPT", value_name = "WHEN", help_heading = ELECTION, default_value = "5s",
        value_parser = preempt
    )]
    pub preempt: Preempt,

    /// Form of the algorithm of `classic`: `detector`, `paper`, `optimized` or `announcer`
    ///
    /// detector: the leader's heartbeats tell every process which members are alive. So the highest survivor
    /// announces itself at once. paper: Garcia-Molina's procedure, which asks all that rank higher.
    /// optimized: an election asks the highest survivor only. announcer: the lowest survivor asks the three
    /// highest, and declares which one leads.
    #[arg(
        long, env = "BELLWETHER_VARIANT", value_name = "VARIANT",
        help_heading = ELECTION, default_value = "detector",
        value_parser = one_of(Variant::NAMED)
    )]
    pub variant: Variant,

    /// What a closed connection and a refused dial prove: `suspect`, `release` or `off`
    ///
    /// suspect: a death, for calling an election, so that a crash is noticed within milliseconds. off:
    /// nothing; silence counts, and another process in the leader's place. Choose it where a mesh or a
    /// firewall refuses connections in the name of live processes. release, only with --safety majority: they
    /// also end the dead leader's lease, so that another leads at once instead of after the lease. Then two
    /// may lead where anything on the path refuses connections in the name of a live leader.
    #[arg(
        long, env = "BELLWETHER_CRASH_EVIDENCE", value_name = "WHAT", help_heading = ELECTION,
        default_value = "suspect",
        value_parser = crash_evidence()
    )]
    pub crash_evidence: CrashEvidence,

    /// File with the secret that the members share
    ///
    /// One to three lines of at least 32 random bytes, for instance of: head -c 32 /dev/urandom | base64. The
    /// first line is sent, all are accepted. A member proves with it that it is one, and
    /// connections between members are encrypted. The file may change while the process runs: add a second
    /// line everywhere, then swap the two, then remove the old one.
    #[arg(
        long, env = "BELLWETHER_PEER_SECRET_FILE", value_name = "FILE", help_heading = PEERS
    )]
    pub peer_secret_file: Option<PathBuf>,

    /// Certificate of this process and its chain, in PEM; with --peer-key and --peer-ca, instead of a secret
    ///
    /// It proves which member a process is. It needs the usages server auth and client auth, and the name
    /// that --peer-san asks for. ECDSA costs a third of what RSA costs. The files may change at run time.
    #[arg(long, env = "BELLWETHER_PEER_CERT", value_name = "FILE", help_heading = PEERS)]
    pub peer_cert: Option<PathBuf>,

    /// Private key of --peer-cert, in PEM
    #[arg(long, env = "BELLWETHER_PEER_KEY", value_name = "FILE", help_heading = PEERS)]
    pub peer_key: Option<PathBuf>,

    /// Authorities whose certificates members have, in PEM: 1 to 16
    ///
    /// Each process with such a certificate is a member, so these authorities are to sign for members alone.
    #[arg(long, env = "BELLWETHER_PEER_CA", value_name = "FILE", help_heading = PEERS)]
    pub peer_ca: Option<PathBuf>,

    /// What a member's certificate has to name, with {name} for the member's --name (default: {name})
    ///
    /// It is compared with the DNS names (ignoring case) and URIs of the certificate, such as
    /// {name}.web.default.svc or spiffe://example.org/ns/web/pod/{name}. Without {name} a certificate proves a
    /// member and not which one. Members can then vote in each other's names.
    #[arg(long, env = "BELLWETHER_PEER_SAN", value_name = "PATTERN", help_heading = PEERS)]
    pub peer_san: Option<SanPattern>,

    /// Which connections between members count: `off`, `permissive` or `required`
    ///
    /// required: only those whose peer has proved itself; the default with --peer-secret-file or --peer-cert.
    /// off: all, in clear; the default without them. permissive: both, which protects against nothing and is
    /// a step from one to the other without an outage.
    #[arg(
        long, env = "BELLWETHER_PEER_AUTH", value_name = "MODE", help_heading = PEERS,
        value_parser = one_of([
            ("off", PeerAuth::Off), ("permissive", PeerAuth::Permissive), ("required", PeerAuth::Required)
        ])
    )]
    pub peer_auth: Option<PeerAuth>,

    /// What all buffers may hold that peers and clients fill: a whole number of MiB
    ///
    /// Unfinished messages, messages that wait, and long replies that were not taken yet count. Above it,
    /// such connections are closed and long replies are refused with status 503. Short messages and replies
    /// always have room. Raise it, and the memory limit by as much, for hundreds of members with long names.
    #[arg(
        long, env = "BELLWETHER_BUFFERS_MAX", value_name = "SIZE", help_heading = PEERS,
        default_value = "8MiB", value_parser = mebibytes
    )]
    pub buffers_max: usize,

    /// Longest time between two heartbeats of a leader
    #[arg(
        long, env = "BELLWETHER_HEARTBEAT", value_name = "DURATION",
        help_heading = TIMING, default_value = "250ms",
        value_parser = parse_positive
    )]
    pub heartbeat: Duration,

    /// Longest lease and failure timeout: a leader that is silent for its lease counts as dead
    ///
    /// At least 4 heartbeats. With --lease-mode fixed each lease is this long. With --safety majority a
    /// leader leads for a lease without hearing from a majority.
    #[arg(
        long, env = "BELLWETHER_LEASE", value_name = "DURATION",
        help_heading = TIMING, default_value = "1500ms",
        value_parser = parse_positive
    )]
    pub lease: Duration,

    /// How a leader chooses its lease
    ///
    /// The others notice that a leader hangs or is cut off once the lease in use is over. With adaptive
    /// leases heartbeats come at least twice in each, and --heartbeat is the longest time between two.
    #[arg(
        long, env = "BELLWETHER_LEASE_MODE", value_name = "MODE", help_heading = TIMING,
        default_value = "adaptive", value_enum
    )]
    pub lease_mode: LeaseMode,

    /// With --lease-mode adaptive: the shortest lease, or --lease where that is shorter
    #[arg(
        long, env = "BELLWETHER_LEASE_MIN", value_name = "DURATION", help_heading = TIMING,
        default_value = "300ms", value_parser = parse_positive
    )]
    pub lease_min: Duration,

    /// How long an election waits for better processes to answer
    #[arg(
        long, env = "BELLWETHER_ANSWER_TIMEOUT", value_name = "DURATION", help_heading = TIMING,
        default_value = "300ms", value_parser = parse_positive
    )]
    pub answer_timeout: Duration,

    /// How long an answered process, or one with an announcer, waits for the leader; over --answer-timeout
    #[arg(
        long, env = "BELLWETHER_COORDINATOR_TIMEOUT", value_name = "DURATION", help_heading = TIMING,
        default_value = "900ms", value_parser = parse_positive
    )]
    pub coordinator_timeout: Duration,

    /// How long opening a connection to a peer may take; at most --answer-timeout
    #[arg(
        long, env = "BELLWETHER_DIAL_TIMEOUT", value_name = "DURATION", help_heading = TIMING,
        default_value = "200ms", value_parser = parse_positive
    )]
    pub dial_timeout: Duration,

    /// Time between two look-ups of --service; they come faster while this process is alone
    #[arg(
        long, env = "BELLWETHER_REFRESH", value_name = "DURATION",
        help_heading = TIMING, default_value = "5s",
        value_parser = parse_positive
    )]
    pub refresh: Duration,

    /// At a start: how long the set of peers must not have changed before the first election
    ///
    /// The best of --voters does not wait for it once it has met all the others.
    #[arg(
        long, env = "BELLWETHER_STABLE_MARGIN", value_name = "DURATION", help_heading = TIMING,
        default_value = "1s", value_parser = parse
    )]
    pub stable_margin: Duration,

    /// At a start: how long to wait for --expect members, for --stable-margin, and for DNS to name a peer, at
    /// most
    #[arg(
        long, env = "BELLWETHER_START_TIMEOUT", value_name = "DURATION", help_heading = TIMING,
        default_value = "10s", value_parser = parse
    )]
    pub start_timeout: Duration,

    /// How long a dead member that DNS no longer names stays in the list
    #[arg(
        long, env = "BELLWETHER_FORGET_AFTER", value_name = "DURATION",
        help_heading = TIMING, default_value = "60s",
        value_parser = parse_positive
    )]
    pub forget_after: Duration,

    /// What is logged, on stderr
    #[arg(
        long, env = "BELLWETHER_LOG", value_name = "LEVEL", help_heading = LOGGING, default_value = "info",
        value_parser = PossibleValuesParser::new(["off", "error", "warn", "info", "debug", "trace"])
            .try_map(|level| level.parse::<LevelFilter>())
    )]
    pub log: LevelFilter,

    /// How it is written: lines for people, or one JSON object a line
    #[arg(
        long, env = "BELLWETHER_LOG_FORMAT", value_name = "FORMAT",
        help_heading = LOGGING, default_value = "text",
        value_parser = one_of([("text", LogFormat::Text), ("json", LogFormat::Json)])
    )]
    pub log_format: LogFormat,
}

/// What `bellwether demo` is asked for.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug)]
pub struct DemoArgs {
    /// How many sidecars, 3 to 9
    #[arg(
        short = 'n', long = "processes", value_name = "N", default_value = "3",
        value_parser = |text: &str| whole::<usize>(text, 3..=9)
    )]
    pub n: usize,

    /// One crash and one resignation, then end; without it, on and on until interrupted
    #[arg(long)]
    pub once: bool,

    /// Their safety level; with `majority` all are voters, and their records are in the folder for temporary
    /// files
    #[arg(long, value_name = "LEVEL", default_value = "classic", value_enum)]
    pub safety: SafetyLevel,

    /// Use the ports from this one on, two for each sidecar, instead of free ones
    #[arg(long, value_name = "PORT", value_parser = |text: &str| whole::<u16>(text, 1..=65_500))]
    pub base_port: Option<u16>,
}

/// What `bellwether status` is asked for.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug)]
pub struct StatusArgs {
    /// Status API to ask [default: this machine's, http://127.0.0.1:4040, or where BELLWETHER_HTTP says]
    #[arg(long, env = "BELLWETHER_URL", value_name = "URL")]
    pub url: Option<String>,

    /// How the answer is printed
    #[arg(short = 'o', long = "output", value_name = "FORMAT", value_enum, default_value = "table")]
    pub output: Output,

    /// Only ask whether the process is healthy, and exit with 0 or 1: for a container's health check
    #[arg(long)]
    pub healthz: bool,
}
