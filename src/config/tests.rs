//! What the command line and the environment become, and what is refused.

use super::flags::{Cli, Command, RunArgs};
use super::validate::{ConfigError, Surroundings, check};
use super::*;
use crate::election::{CrashEvidence, Founding, Preempt, Safety, Variant};
use clap::Parser;

/// Parses the flags of `run`. The environment of the tests has none of our variables.
fn args(flags: &[&str]) -> Result<RunArgs, clap::Error> {
    let line = ["bellwether", "run"].iter().chain(flags);
    match Cli::try_parse_from(line)?.command {
        Command::Run(args) => Ok(*args),
        _ => unreachable!("`run` was asked for"),
    }
}

fn surroundings() -> Surroundings {
    Surroundings { pod_name: None, pod_ip: None, host_name: Some("host-1".to_owned()) }
}

fn config(flags: &[&str]) -> Result<Config, ConfigError> {
    check(args(flags).unwrap(), surroundings())
}

#[test]
fn the_flags_are_sound() {
    Cli::command().debug_assert();
}

#[test]
fn defaults_are_those_of_the_machine() {
    let config = config(&[]).unwrap();
    let settings = Settings { lease_min: Some(Duration::from_millis(300)), ..Settings::default() };
    assert_eq!(format!("{:?}", config.settings), format!("{settings:?}"));
    assert_eq!(config.priority, Priority::DEFAULT);
    assert_eq!(
        (config.name.as_str(), config.cluster.as_str(), config.revision.as_str()),
        ("host-1", "default", "")
    );
    assert_eq!(
        (config.listen.to_string(), config.http.to_string()),
        ("[::]:4041".into(), "[::]:4040".into())
    );
    assert_eq!((config.advertise, config.peer_port, config.state_dir), (None, 4041, None));
    assert_eq!((config.dial_timeout.as_millis(), config.refresh.as_millis()), (200, 5000));
    assert_eq!((config.log, config.log_format), (log::LevelFilter::Info, LogFormat::Text));
}

#[test]
fn every_setting_arrives_where_it_belongs() {
    let config = config(&[
        "--service=Web.default.svc.",
        "--peers=a:1,B:2,[::1]:3,b:2",
        "--peers=a:1,c:3",
        "--peer-port=5000",
        "--announce=url=http://a:1/b",
        "--announce=zone=x=y",
        "--expect=3",
        "--advertise=10.0.0.1:5001",
        "--listen=0.0.0.0:5002",
        "--http=127.0.0.1:5003",
        "--name=n",
        "--election=c",
        "--state-dir=/state",
        "--revision=r",
        "--safety=classic",
        "--priority=0",
        "--preempt=never",
        "--variant=paper",
        "--crash-evidence=off",
        "--heartbeat=11ms",
        "--lease=44ms",
        "--answer-timeout=13ms",
        "--coordinator-timeout=14ms",
        "--dial-timeout=12ms",
        "--refresh=15s",
        "--stable-margin=16s",
        "--start-timeout=17s",
        "--forget-after=18s",
        "--log=debug",
        "--log-format=json",
    ])
    .unwrap();
    assert_eq!(config.service.as_deref(), Some("web.default.svc."));
    let peers: Vec<String> = config.peers.iter().map(HostPort::to_string).collect();
    assert_eq!(peers, ["a:1", "b:2", "[::1]:3", "c:3"]);
    assert_eq!(config.peer_port, 5000);
    let announced = [("url", "http://a:1/b"), ("zone", "x=y")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(config.announce, crate::election::AnnouncedValues(announced.into()));
    assert_eq!(config.advertise, Some("10.0.0.1:5001".parse().unwrap()));
    assert_eq!((config.listen.port(), config.http.port()), (5002, 5003));
    assert_eq!((config.name.as_str(), config.cluster.as_str(), config.revision.as_str()), ("n", "c", "r"));
    assert_eq!(config.state_dir, Some("/state".into()));
    assert_eq!(config.priority, Priority::NEVER);
    let s = &config.settings;
    assert_eq!((s.expect, s.preempt, s.variant), (3, Preempt::Never, Variant::Paper));
    assert_eq!(s.crash_evidence, CrashEvidence::Off);
    let ms = [s.heartbeat, s.failure_timeout, s.answer_timeout, s.coordinator_timeout].map(|d| d.as_millis());
    assert_eq!(ms, [11, 44, 13, 14]);
    let s = [config.dial_timeout, config.refresh, s.stable_margin, s.start_timeout, s.forget_after];
    assert_eq!(s.map(|d| d.as_millis()), [12, 15_000, 16_000, 17_000, 18_000]);
    assert_eq!((config.log, config.log_format), (log::LevelFilter::Debug, LogFormat::Json));
}

#[test]
fn the_pod_names_itself() {
    let pod = |flags: &[&str], name: Option<&str>, ip: Option<&str>| {
        let surroundings = Surroundings {
            pod_name: name.map(str::to_owned),
            pod_ip: ip.map(str::to_owned),
            host_name: None,
        };
        check(args(flags).unwrap(), surroundings)
    };
    let config = pod(&["--service=web.default"], Some("web-0"), Some("10.0.0.7")).unwrap();
    assert_eq!((config.name.as_str(), config.cluster.as_str()), ("web-0", "web"));
    assert_eq!(config.advertise, Some("10.0.0.7:4041".parse().unwrap()));
    let config = pod(&["--name=a"], Some("web-0"), Some("fd00::7")).unwrap();
    assert_eq!((config.name.as_str(), config.advertise), ("a", Some("[fd00::7]:4041".parse().unwrap())));
    let config = pod(&["--listen=[::]:0"], Some("web-0"), Some("fd00::7")).unwrap();
    assert_eq!(config.advertise, None);
    let config = pod(&["--listen=127.0.0.1:4041"], Some("web-0"), Some("10.0.0.7")).unwrap();
    assert_eq!(config.advertise, None, "peers could not reach it there");
    assert_eq!(pod(&[], Some("web-0"), Some("web")).unwrap_err(), ConfigError::BadPodIp("web".to_owned()));
    let refusal = pod(&[], Some("web-0"), Some("0.0.0.0")).unwrap_err();
    assert!(refusal.to_string().starts_with("POD_IP 0.0.0.0 "), "{refusal}");
    assert_eq!(pod(&[], None, None).unwrap_err(), ConfigError::NoName);
}

#[test]
fn listening_twice_at_one_place_is_noticed() {
    for (listen, http, refused) in [
        ("[::]:1", "[::]:1", true),
        ("[::]:1", "127.0.0.1:1", true),
        ("127.0.0.1:1", "0.0.0.0:1", true),
        ("0.0.0.0:1", "[::]:1", true),
        ("0.0.0.0:1", "[::1]:1", false),
        ("127.0.0.1:1", "127.0.0.2:1", false),
        ("127.0.0.1:0", "127.0.0.1:0", false),
        ("[::]:1", "[::]:2", false),
    ] {
        let result = config(&["--listen", listen, "--http", http]);
        assert_eq!(result.is_err(), refused, "{listen} {http}");
    }
}

#[test]
fn limits_hold_at_their_edges() {
    for (flags, accepted) in [
        (&["--name", &"n".repeat(253)][..], true),
        (&["--name", &"n".repeat(254)], false),
        (&["--name", " "], false),
        (&["--name", "a\nb"], false),
        (&["--election", &"c".repeat(64)], false),
        (&["--revision", &"r".repeat(64)], false),
        (&["--heartbeat=10ms", "--lease=40ms"], true),
        (&["--heartbeat=9ms"], false),
        (&["--heartbeat=10ms", "--lease=39ms"], false),
        (&["--answer-timeout=900ms"], false),
        (&["--answer-timeout=899ms"], true),
        (&["--dial-timeout=300ms"], true),
        (&["--dial-timeout=301ms"], false),
        (&["--preempt=250ms"], true),
        (&["--preempt=249ms"], false),
        (&["--start-timeout=0s", "--stable-margin=0s"], true),
        (&["--start-timeout=0s"], false),
        (&["--forget-after=1499ms"], false),
        (&["--refresh=99ms"], false),
    ] {
        assert_eq!(config(flags).is_ok(), accepted, "{flags:?}");
    }
    let peers = |n: usize| (0..n).map(|i| format!("p{i}:1")).collect::<Vec<_>>().join(",");
    assert!(config(&["--peers", &peers(256)]).is_ok());
    assert_eq!(config(&["--peers", &peers(257)]).unwrap_err(), ConfigError::TooManyPeers(257));
}

/// The names of the voters that these flags make of `--safety majority`.
fn voters(flags: &[&str]) -> Result<Vec<String>, ConfigError> {
    let mut all = vec!["--safety=majority", "--state-dir=/state"];
    all.extend(flags);
    match config(&all)?.settings.safety {
        Safety::Majority { voters } => Ok(Vec::from_iter(voters)),
        Safety::Classic => unreachable!("majority was asked for"),
    }
}

#[test]
fn voters_are_counted_or_named() {
    assert_eq!(voters(&["--voters=3", "--name=web-1"]).unwrap(), ["web-0", "web-1", "web-2"]);
    assert_eq!(voters(&["--voters=2"]).unwrap(), ["host-0", "host-1"], "the host name is the default name");
    assert_eq!(voters(&["--voters=c, a,b", "--name=a"]).unwrap(), ["a", "b", "c"]);
    assert_eq!(voters(&["--voters=web-7", "--name=web-7"]).unwrap(), ["web-7"]);
    assert_eq!(voters(&["--voters=31", "--name=web-30"]).unwrap().len(), 31);
    let config = config(&["--safety=majority", "--state-dir=/s", "--voters=2", "--crash-evidence=release"]);
    assert_eq!(config.unwrap().settings.crash_evidence, CrashEvidence::Release);
}

#[test]
fn founding_is_a_choice_of_majority() {
    let founding = |flags: &[&str]| {
        let majority = ["--safety=majority", "--state-dir=/s", "--voters=host-1"];
        config(&[&majority, flags].concat()).map(|config| config.settings.founding)
    };
    assert_eq!(founding(&[]), Ok(Founding::Auto));
    for (text, meant) in [("auto", Founding::Auto), ("yes", Founding::Yes), ("no", Founding::No)] {
        let flag = format!("--found={text}");
        assert_eq!(founding(&[&flag]), Ok(meant), "{flag}");
        let refusal = config(&[&flag]).err().map(|refusal| refusal.to_string());
        let refused =
            refusal.as_ref().is_some_and(|words| words.contains(&format!("--found {text} is given")));
        assert_eq!(refused, meant != Founding::Auto, "{flag} with classic: {refusal:?}");
    }
}

#[test]
fn a_voter_is_among_the_voters_and_has_a_name_that_stays() {
    for (flags, word) in [
        (
            &["--voters=3", "--name=web-3"][..],
            "\"web-3\" is not among the voters web-0 to web-2 (--voters 3)",
        ),
        (&["--voters=1", "--name=web-3"], "not among the voters web-0 (--voters 1)"),
        (&["--voters=a,b", "--name=c"], "\"c\" is not among the voters a, b (--voters a,b)"),
        (&["--voters=3", "--name=web-7d4b9c6f5-x2x7k"], "Run it as a StatefulSet"),
        (&["--voters=3", "--name=web"], "does not end in an ordinal"),
    ] {
        let refusal = voters(flags).unwrap_err().to_string();
        assert!(refusal.contains(word), "{flags:?}: {refusal}");
    }
}

#[test]
fn a_lease_has_room_for_drift_two_heartbeats_and_an_answer() {
    // 0.99 of 809 ms is 800.91 ms, of 808 ms 799.92 ms; two heartbeats and an answer take 800 ms.
    let lease =
        |lease: &str| voters(&["--voters=host-1", "--heartbeat=200ms", "--answer-timeout=400ms", lease]);
    assert!(lease("--lease=809ms").is_ok());
    let refusal = lease("--lease=808ms").unwrap_err().to_string();
    for word in
        ["--lease 808ms", "799ms", "--heartbeat 200ms", "--answer-timeout 400ms", "800ms", "--lease 809ms"]
    {
        assert!(refusal.contains(word), "no {word:?} in {refusal}");
    }
    assert!(
        config(&["--heartbeat=200ms", "--answer-timeout=400ms", "--lease=800ms"]).is_ok(),
        "classic has none"
    );
}

#[test]
fn a_proof_is_a_secret_or_a_certificate() {
    let proof = |flags: &[&str]| config(flags).map(|config| (config.peer_auth, config.peer_proof));
    assert_eq!(proof(&[]), Ok((PeerAuth::Off, None)));
    let secret = ProofFiles::Secret("s".into());
    assert_eq!(proof(&["--peer-secret-file=s"]), Ok((PeerAuth::Required, Some(secret.clone()))));
    let permissive = ["--peer-secret-file=s", "--peer-auth=permissive"];
    assert_eq!(proof(&permissive), Ok((PeerAuth::Permissive, Some(secret))));
    let files = ["--peer-cert=c", "--peer-key=k", "--peer-ca=a"];
    let Ok((PeerAuth::Required, Some(ProofFiles::Certificate(certificate)))) = proof(&files) else {
        panic!("no certificate");
    };
    assert!(certificate.san.binds_name());
    assert_eq!((certificate.san.to_string(), certificate.cert), ("{name}".to_owned(), "c".into()));

    for (flags, words) in [
        (&["--peer-cert=c", "--peer-key=k"][..], "--peer-ca is missing"),
        (&["--peer-san={name}.web"], "--peer-cert is missing"),
        (&[files[0], files[1], files[2], "--peer-secret-file=s"], "two proofs"),
        (&["--peer-auth=required"], "needs a proof"),
        (&["--peer-auth=permissive"], "needs a proof"),
    ] {
        let error = config(flags).unwrap_err().to_string();
        assert!(error.contains(words), "{flags:?}: {error}");
    }
    let majority = [&files[..], &["--safety=majority", "--voters=n", "--name=n", "--state-dir=/s"]].concat();
    let warned = |san: &'static str| {
        let config = config(&[&majority[..], &[san]].concat()).unwrap();
        config.warnings().iter().any(|warning| warning.contains("can vote in another's name"))
    };
    assert!(warned("--peer-san=spiffe://a/web") && !warned("--peer-san=spiffe://a/{name}"));
}
