//! What single flags cannot know: relations between settings, and defaults that come from the surroundings.

use super::flags::RunArgs;
use super::host_port::HostPort;
use super::modes::LeaseMode;
use super::safety::safety;
use super::voters;
use super::{Config, Probe};
use crate::base::duration::show;
use crate::channel::{CertificateFiles, PeerAuth, ProofFiles};
use crate::election::{
    ANNOUNCE_MAX, AnnouncedValues, CLUSTER_BYTES_MAX, LEASE_MIN_SHORTEST, MEMBERS_MAX, NAME_BYTES_MAX,
    Preempt, Priority, REVISION_BYTES_MAX, Settings, TOLD_OFTEN_MAX,
};
use core::net::{IpAddr, SocketAddr};
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

/// The shortest heartbeat: below it the timers' own jitter would look like silence.
const HEARTBEAT_SHORTEST: Duration = Duration::from_millis(10);
/// The shortest time between two DNS look-ups: name servers are shared.
const REFRESH_SHORTEST: Duration = Duration::from_millis(100);
/// How many heartbeats must fit into the failure timeout, so that one or two lost or late ones fail no
/// member.
const HEARTBEATS_A_LEASE: u32 = 4;
/// The election's name where neither `--election` nor `--service` gives one.
const ELECTION_DEFAULT: &str = "default";

/// What the defaults of some flags are made from.
pub struct Surroundings {
    /// POD_NAME, if it is set to something.
    pub pod_name: Option<String>,
    /// POD_IP, if it is set to something.
    pub pod_ip: Option<String>,
    /// The machine's host name, if it has one.
    pub host_name: Option<String>,
}

/// Why a configuration is refused. Nothing has been started; the process ends with exit code 2.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(
        "--heartbeat {} is too short: below {} a busy machine's own delays look like silence; write \
         --heartbeat {} or more",
        show(*.0), show(HEARTBEAT_SHORTEST), show(HEARTBEAT_SHORTEST)
    )]
    HeartbeatTooShort(Duration),
    #[error(
        "--lease-min {} is too short: four heartbeats have to fit in, {} apart at least; write \
         --lease-min {} or more",
        show(*.0), show(LEASE_MIN_SHORTEST / HEARTBEATS_A_LEASE), show(LEASE_MIN_SHORTEST)
    )]
    LeaseMinTooShort(Duration),
    #[error(
        "--refresh {} is too short: name servers are shared; write --refresh {} or more",
        show(*.0), show(REFRESH_SHORTEST)
    )]
    RefreshTooShort(Duration),
    #[error(
        "--stop-wait {} is too short: a resignation waits for holds of up to --hold-max {}; write \
         --stop-wait {} or more, or a shorter --hold-max",
        show(*.wait), show(*.hold), show(*.hold)
    )]
    StopWaitTooShort { wait: Duration, hold: Duration },
    #[error(
        "--lease {} is shorter than {HEARTBEATS_A_LEASE} heartbeats (--heartbeat {}), so that a single late \
         one would pass for a death. Write --lease {} or more, or a shorter --heartbeat",
        show(*.lease), show(*.heartbeat), show(*.heartbeat * HEARTBEATS_A_LEASE)
    )]
    LeaseTooShort { lease: Duration, heartbeat: Duration },
    #[error(
        "--coordinator-timeout {} is not longer than --answer-timeout {}: the process that has answered \
         first waits for answers itself before it can announce. Write a longer --coordinator-timeout, such \
         as {}, or a shorter --answer-timeout",
        show(*.coordinator), show(*.answer), show(*.answer * 3)
    )]
    CoordinatorTooShort { coordinator: Duration, answer: Duration },
    #[error(
        "--answer-timeout {} is shorter than --dial-timeout {}: an answer may need a new connection first; \
         write --answer-timeout {} or more, or a shorter --dial-timeout",
        show(*.answer), show(*.dial), show(*.dial)
    )]
    AnswerTooShort { answer: Duration, dial: Duration },
    #[error(
        "--start-timeout {} is shorter than --stable-margin {}, so that the margin could never pass; write \
         --start-timeout {} or more, or a shorter --stable-margin",
        show(*.start), show(*.margin), show(*.margin)
    )]
    StartTooShort { start: Duration, margin: Duration },
    #[error(
        "--preempt {} is shorter than --heartbeat {}: the better process must have been heard once before it \
         takes over. Write --preempt {} or more, or always",
        show(*.delay), show(*.heartbeat), show(*.heartbeat)
    )]
    PreemptTooShort { delay: Duration, heartbeat: Duration },
    #[error(
        "--forget-after {} is shorter than --lease {}: a member would be forgotten before it is known to be \
         dead; write --forget-after {} or more",
        show(*.forget), show(*.lease), show(*.lease)
    )]
    ForgetTooShort { forget: Duration, lease: Duration },
    #[error(
        "--listen {listen} and --http {http} cannot both listen there; give one of them another port, such \
         as the defaults 4041 and 4040"
    )]
    SameAddress { listen: SocketAddr, http: SocketAddr },
    #[error("{source_} {address} is no address that peers can dial; write one of this machine's addresses")]
    UnspecifiedAdvertise { source_: &'static str, address: String },
    #[error("--advertise {0} has port 0, which no peer can dial; write the port where --listen is reached")]
    AdvertisePortZero(SocketAddr),
    #[error("POD_IP {0:?} is not an IP address; take it from status.podIP, or give --advertise")]
    BadPodIp(String),
    #[error(
        "--peers names {0} different peers, and an election has at most {MEMBERS_MAX} members; name fewer"
    )]
    TooManyPeers(usize),
    #[error("{0} is empty; write a name, or leave it out")]
    Empty(&'static str),
    #[error("{what} {text:?} is {} bytes long, and at most {longest} fit; write a shorter one", text.len())]
    TooLong { what: &'static str, text: String, longest: usize },
    #[error("{what} {text:?} has control characters in it; write it in plain characters")]
    ControlCharacters { what: &'static str, text: String },
    #[error("--announce is given {0} times, and at most {ANNOUNCE_MAX} values fit; give fewer")]
    TooManyAnnounced(usize),
    #[error("--announce gives {0} twice; give each key once")]
    AnnouncedTwice(String),
    #[error("this machine's host name cannot be read, and POD_NAME is not set; give --name")]
    NoName,
    #[error(
        "--peer-auth {0} needs a proof; give --peer-secret-file, or --peer-cert, --peer-key and --peer-ca, \
         or leave --peer-auth out for connections in clear"
    )]
    NoProof(&'static str),
    #[error("{0} is missing: --peer-cert, --peer-key and --peer-ca belong together; give all three")]
    NoCertificate(&'static str),
    #[error(
        "--peer-secret-file and --peer-cert are two proofs, and members understand one; leave one of them out"
    )]
    TwoProofs,
    #[error(transparent)]
    Safety(#[from] voters::SafetyError),
}

/// The election's name: `--election`, else the first part of the Service's.
fn election(args: &RunArgs) -> String {
    args.election.clone().unwrap_or_else(|| {
        let service = args.service.as_deref().unwrap_or(ELECTION_DEFAULT);
        service.split('.').next().unwrap_or(service).to_owned()
    })
}

/// Makes a configuration of the flags, or says what about them cannot be.
pub fn check(args: RunArgs, surroundings: Surroundings) -> Result<Config, ConfigError> {
    check_timing(&args)?;
    check_addresses(&args)?;
    let advertise = match (args.advertise, surroundings.pod_ip) {
        (Some(address), _) => Some(address),
        // Where it listens on one address only, peers can reach it nowhere else.
        (None, Some(text)) if args.listen.ip().is_unspecified() => {
            advertise_from_pod_ip(&text, args.listen.port())?
        }
        (None, _) => None,
    };
    let name = name(&args, surroundings.pod_name, surroundings.host_name)?;
    let cluster = election(&args);
    check_text("--election", &cluster, CLUSTER_BYTES_MAX)?;
    if let Some(revision) = &args.revision {
        check_text("--revision", revision, REVISION_BYTES_MAX)?;
    }
    let (safety, probe) = (safety(&args, &name)?, probe(&args));
    let (peer_auth, peer_proof) = peer_proof(&args, &name)?;

    Ok(Config {
        peers: merged(args.peers)?,
        service: args.service,
        peer_port: args.peer_port,
        listen: args.listen,
        advertise,
        http: args.http,
        control_socket: args.control_socket,
        name,
        cluster,
        state_dir: args.state_dir,
        priority: Priority(args.priority),
        revision: args.revision.unwrap_or_default(),
        settings: Settings {
            safety,
            founding: args.found,
            variant: args.variant,
            preempt: args.preempt,
            crash_evidence: args.crash_evidence,
            hold_max: args.hold_max,
            stop_wait: args.stop_wait,
            heartbeat: args.heartbeat,
            failure_timeout: args.lease,
            lease_min: (args.lease_mode == LeaseMode::Adaptive).then_some(args.lease_min),
            answer_timeout: args.answer_timeout,
            coordinator_timeout: args.coordinator_timeout,
            stable_margin: args.stable_margin,
            start_timeout: args.start_timeout,
            expect: args.expect,
            members_max: MEMBERS_MAX,
            told_often_max: TOLD_OFTEN_MAX,
            forget_after: args.forget_after,
            app_is_probed: args.app_health.is_some(),
            lifeline_required: args.require_lifeline,
            when_all_sick: args.when_all_sick,
            members_are_proved: peer_auth == PeerAuth::Required,
        },
        peer_proof,
        peer_auth,
        buffers_max: args.buffers_max,
        watchers_max: args.watchers_max,
        app_clients: args.app_clients,
        probe,
        announce: announce(args.announce)?,
        dial_timeout: args.dial_timeout,
        refresh: args.refresh,
        log: args.log,
        log_format: args.log_format,
    })
}

/// The process's name: `--name`, else that of the pod, else that of the machine.
fn name(args: &RunArgs, pod_name: Option<String>, host_name: Option<String>) -> Result<String, ConfigError> {
    let (what, name) = match (args.name.clone(), pod_name) {
        (Some(name), _) => ("--name", name),
        (None, Some(name)) => ("POD_NAME", name),
        (None, None) => ("the host name", host_name.ok_or(ConfigError::NoName)?),
    };
    check_text(what, &name, NAME_BYTES_MAX)?;
    Ok(name)
}

/// How the application is probed.
fn probe(args: &RunArgs) -> Option<Probe> {
    args.app_health.clone().map(|app| Probe {
        app,
        interval: args.app_health_interval,
        timeout: args.app_health_timeout,
        failures: args.app_health_failures,
        successes: args.app_health_successes,
    })
}

/// The announced values, each key once.
fn announce(pairs: Vec<(String, String)>) -> Result<AnnouncedValues, ConfigError> {
    if pairs.len() > ANNOUNCE_MAX {
        return Err(ConfigError::TooManyAnnounced(pairs.len()));
    }
    let mut announce = AnnouncedValues::default();
    for (key, value) in pairs {
        if announce.0.contains_key(&key) {
            return Err(ConfigError::AnnouncedTwice(key));
        }
        announce.0.insert(key, value);
    }
    Ok(announce)
}

/// Which connections count, and what this process proves itself with. With a proof, those count that are
/// proved.
fn peer_proof(args: &RunArgs, name: &str) -> Result<(PeerAuth, Option<ProofFiles>), ConfigError> {
    let files = proof_files(args, name)?;
    let mode = match (args.peer_auth, &files) {
        (Some(PeerAuth::Required), None) => return Err(ConfigError::NoProof("required")),
        (Some(PeerAuth::Permissive), None) => return Err(ConfigError::NoProof("permissive")),
        (Some(mode), _) => mode,
        (None, Some(_)) => PeerAuth::Required,
        (None, None) => PeerAuth::Off,
    };
    Ok((mode, files))
}

fn proof_files(args: &RunArgs, name: &str) -> Result<Option<ProofFiles>, ConfigError> {
    let certificate = [&args.peer_cert, &args.peer_key, &args.peer_ca];
    if certificate.iter().all(|path| path.is_none()) && args.peer_san.is_none() {
        return Ok(args.peer_secret_file.clone().map(ProofFiles::Secret));
    }
    if args.peer_secret_file.is_some() {
        return Err(ConfigError::TwoProofs);
    }
    let given = |path: &Option<PathBuf>, flag| path.clone().ok_or(ConfigError::NoCertificate(flag));
    Ok(Some(ProofFiles::Certificate(CertificateFiles {
        cert: given(&args.peer_cert, "--peer-cert")?,
        key: given(&args.peer_key, "--peer-key")?,
        ca: given(&args.peer_ca, "--peer-ca")?,
        san: args.peer_san.clone().unwrap_or_default(),
        name: name.to_owned(),
    })))
}

/// How the durations must stand to each other.
fn check_timing(args: &RunArgs) -> Result<(), ConfigError> {
    let (heartbeat, lease, answer) = (args.heartbeat, args.lease, args.answer_timeout);
    if heartbeat < HEARTBEAT_SHORTEST {
        return Err(ConfigError::HeartbeatTooShort(heartbeat));
    }
    if lease < heartbeat * HEARTBEATS_A_LEASE {
        return Err(ConfigError::LeaseTooShort { lease, heartbeat });
    }
    if args.lease_mode == LeaseMode::Adaptive && args.lease_min < LEASE_MIN_SHORTEST {
        return Err(ConfigError::LeaseMinTooShort(args.lease_min));
    }
    if answer < args.dial_timeout {
        return Err(ConfigError::AnswerTooShort { answer, dial: args.dial_timeout });
    }
    if args.coordinator_timeout <= answer {
        return Err(ConfigError::CoordinatorTooShort { coordinator: args.coordinator_timeout, answer });
    }
    if args.start_timeout < args.stable_margin {
        return Err(ConfigError::StartTooShort { start: args.start_timeout, margin: args.stable_margin });
    }
    if let Preempt::After(delay) = args.preempt
        && delay < heartbeat
    {
        return Err(ConfigError::PreemptTooShort { delay, heartbeat });
    }
    if args.forget_after < lease {
        return Err(ConfigError::ForgetTooShort { forget: args.forget_after, lease });
    }
    if args.stop_wait < args.hold_max {
        return Err(ConfigError::StopWaitTooShort { wait: args.stop_wait, hold: args.hold_max });
    }
    if args.refresh < REFRESH_SHORTEST {
        return Err(ConfigError::RefreshTooShort(args.refresh));
    }
    Ok(())
}

fn check_addresses(args: &RunArgs) -> Result<(), ConfigError> {
    if overlap(args.listen, args.http) {
        return Err(ConfigError::SameAddress { listen: args.listen, http: args.http });
    }
    match args.advertise {
        Some(address) if undialable(address.ip()) => {
            Err(ConfigError::UnspecifiedAdvertise { source_: "--advertise", address: address.to_string() })
        }
        Some(address) if address.port() == 0 => Err(ConfigError::AdvertisePortZero(address)),
        _ => Ok(()),
    }
}

/// Whether one of two listening sockets would keep the other from its address. The system chooses a free port
/// for 0. `[::]` also takes IPv4.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let covers = |a: IpAddr, b: IpAddr| a == b || (a.is_unspecified() && (a.is_ipv6() || b.is_ipv4()));
    a.port() == b.port() && a.port() != 0 && (covers(a.ip(), b.ip()) || covers(b.ip(), a.ip()))
}

fn undialable(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    address.is_unspecified() || address.is_multicast() || broadcast
}

/// The pod's address with the peer port; none where that port is still to be chosen by the system.
fn advertise_from_pod_ip(text: &str, port: u16) -> Result<Option<SocketAddr>, ConfigError> {
    let address: IpAddr = text.parse().map_err(|_| ConfigError::BadPodIp(text.to_owned()))?;
    if undialable(address) {
        return Err(ConfigError::UnspecifiedAdvertise { source_: "POD_IP", address: text.to_owned() });
    }
    Ok((port != 0).then_some(SocketAddr::new(address, port)))
}

/// A text that peers, people and logs will see.
fn check_text(what: &'static str, text: &str, longest: usize) -> Result<(), ConfigError> {
    if text.trim().is_empty() {
        Err(ConfigError::Empty(what))
    } else if text.len() > longest {
        Err(ConfigError::TooLong { what, text: text.to_owned(), longest })
    } else if text.chars().any(char::is_control) {
        Err(ConfigError::ControlCharacters { what, text: text.to_owned() })
    } else {
        Ok(())
    }
}

/// Each peer once, in the order given.
fn merged(peers: Vec<HostPort>) -> Result<Vec<HostPort>, ConfigError> {
    let mut seen = HashSet::new();
    let merged: Vec<HostPort> = peers.into_iter().filter(|peer| seen.insert(peer.clone())).collect();
    if merged.len() > MEMBERS_MAX {
        return Err(ConfigError::TooManyPeers(merged.len()));
    }
    Ok(merged)
}
