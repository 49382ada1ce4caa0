//! The command line as scripts and manifests meet it: the real binary, its exit codes and what it prints.

// Helpers of tests fail by panicking, as the tests do.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The flags of `run` with their defaults; a contract.
const FLAGS: [(&str, Option<&str>); 53] = [
    ("service", None),
    ("peers", None),
    ("peer-port", Some("4041")),
    ("expect", Some("0")),
    ("peer-secret-file", None),
    ("peer-cert", None),
    ("peer-key", None),
    ("peer-ca", None),
    ("peer-san", None),
    ("peer-auth", None),
    ("buffers-max", Some("8MiB")),
    ("advertise", None),
    ("listen", Some("[::]:4041")),
    ("http", Some("[::]:4040")),
    ("watchers-max", Some("256")),
    ("announce", None),
    ("app-health", None),
    ("app-health-interval", Some("1s")),
    ("app-health-timeout", Some("1s")),
    ("app-health-failures", Some("3")),
    ("app-health-successes", Some("1")),
    ("require-lifeline", Some("false")),
    ("when-all-sick", Some("keep")),
    ("app-clients", Some("loopback")),
    ("hold-max", Some("1s")),
    ("stop-wait", Some("10s")),
    ("control-socket", None),
    ("name", None),
    ("election", None),
    ("state-dir", None),
    ("revision", None),
    ("safety", Some("classic")),
    ("voters", None),
    ("found", Some("auto")),
    ("priority", Some("100")),
    ("preempt", Some("5s")),
    ("variant", Some("detector")),
    ("crash-evidence", Some("suspect")),
    ("heartbeat", Some("250ms")),
    ("lease", Some("1500ms")),
    ("answer-timeout", Some("300ms")),
    ("coordinator-timeout", Some("900ms")),
    ("dial-timeout", Some("200ms")),
    ("refresh", Some("5s")),
    ("stable-margin", Some("1s")),
    ("start-timeout", Some("10s")),
    ("lease-mode", Some("adaptive")),
    ("lease-min", Some("300ms")),
    ("forget-after", Some("60s")),
    ("log", Some("info")),
    ("log-format", Some("text")),
    ("help", None),
    ("version", None),
];

/// The program with nothing of ours or of a proxy in its environment.
fn bellwether(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellwether"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BELLWETHER_") {
            command.env_remove(name);
        }
    }
    command.env_remove("POD_NAME").env_remove("POD_IP").args(args).stdin(Stdio::null());
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs what is to be refused: exit code 2, nothing on stdout, and these words in the error.
fn refused(command: &mut Command, words: &[&str]) -> String {
    let output = command.output().unwrap();
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{command:?}\n{error}");
    assert_eq!(stdout(&output), "");
    assert!(error.starts_with("error: "), "{error}");
    for word in words {
        assert!(error.contains(word), "{command:?}: no {word:?} in\n{error}");
    }
    error
}

#[test]
fn help_shows_each_flag_with_its_variable_and_default() {
    for command in [&["--help"][..], &["run", "--help"], &["--name=a", "--help"]] {
        // A variable that is set but empty is not set, and yet it is in the help.
        let output = bellwether(command).env("BELLWETHER_LEASE", "").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let help = stdout(&output);
        for (flag, default) in FLAGS.iter().take(FLAGS.len() - 2) {
            // The value of one may be left out.
            let start = help.find(&format!("      --{flag} <")).or(help.find(&format!("      --{flag}[=<")));
            let start = start.unwrap_or_else(|| panic!("no --{flag} in\n{help}"));
            let rest = &help[start + 8..];
            let section = &rest[..rest.find("\n      --").unwrap_or(rest.len())];
            let variable = format!("[env: BELLWETHER_{}=]", flag.to_uppercase().replace('-', "_"));
            assert!(section.contains(&variable), "no {variable} in\n{section}");
            match default {
                Some(default) => assert!(section.contains(&format!("[default: {default}]")), "{section}"),
                None => assert!(!section.contains("\n          [default:"), "{section}"),
            }
        }
        for heading in [
            "Peers:",
            "This process:",
            "Application:",
            "Election:",
            "Timing:",
            "Logging:",
            "Examples:",
            "Exit codes:",
        ] {
            assert!(help.contains(heading), "no {heading} in\n{help}");
        }
    }
}

#[test]
fn help_shows_no_flag_that_is_not_in_the_contract() {
    let help = stdout(&bellwether(&["--help"]).output().unwrap());
    let flags = help.lines().filter_map(|line| {
        let flag = line.strip_prefix("      --");
        flag.or_else(|| line.strip_prefix("  -h, --")).or_else(|| line.strip_prefix("  -V, --"))
    });
    for flag in flags {
        let flag = flag.split([' ', ',', '[']).next().unwrap();
        assert!(FLAGS.iter().any(|(known, _)| *known == flag), "--{flag}");
    }
}

#[test]
fn the_readme_shows_each_flag_with_its_default_and_no_other() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let rows: Vec<&str> = readme.lines().filter(|line| line.starts_with("| `--")).collect();
    let cell = |row: &str, column: usize| row.split('|').nth(column).unwrap_or_default().to_owned();
    let flags = &FLAGS[..FLAGS.len() - 2];
    for (flag, default) in flags {
        let named = |row: &&&str| cell(row, 1).split(['`', ' ']).any(|word| word == format!("--{flag}"));
        let row = rows.iter().find(named).unwrap_or_else(|| panic!("README.md: no row for --{flag}"));
        let shown = cell(row, 2);
        assert!(default.is_none_or(|default| shown.contains(default)), "README.md: --{flag} has {shown}");
    }
    for word in
        rows.iter().flat_map(|row| cell(row, 1).split(['`', ' ']).map(str::to_owned).collect::<Vec<_>>())
    {
        let known = flags.iter().any(|(flag, _)| word == format!("--{flag}"));
        assert!(known || !word.starts_with("--"), "README.md: there is no {word}");
    }
}

#[test]
fn inject_is_in_the_help_and_refuses_what_makes_no_sense() {
    assert!(
        stdout(&bellwether(&["--help"]).output().unwrap())
            .contains("bellwether inject [OPTIONS] [FILE] [-- <RUN FLAGS>...]")
    );
    let help = stdout(&bellwether(&["inject", "--help"]).output().unwrap());
    for words in [
        "[FILE]",
        "--uninject",
        "--only <KIND/NAME>",
        "--annotated",
        "--image <IMAGE>",
        "--safety <LEVEL>",
        "--state-claim <NAME>",
        "--peer-secret <NAME[/KEY]>",
        "--network-policy",
        "-- <RUN FLAGS>...",
        "kubectl create secret generic web-peers",
        "--ordinary-container",
        "--strict",
        "document are lost",
        "kubectl apply -f -",
        "Exit codes:",
    ] {
        assert!(help.contains(words), "no {words:?} in\n{help}");
    }
    for (flags, words) in [
        (&["--only", "CronJob/a"][..], &["only StatefulSets and Deployments"][..]),
        (&["--only", "web"], &["StatefulSet/NAME"]),
        (&["--image", "a b"], &["without spaces"]),
        (&["--uninject", "--image", "a"], &["--uninject", "cannot be used with", "--image"]),
        (&["--state-claim", "data"], &["--state-claim data", "--safety majority"]),
        (&["--safety", "more"], &["classic, majority"]),
        (&["--peer-secret", "Web"], &["name of a Secret", "web-peers"]),
        (&["--uninject", "--network-policy"], &["--uninject", "cannot be used with", "--network-policy"]),
        (&["--uninject", "--", "--lease=3s"], &["--uninject", "cannot be used with"]),
        (&["--", "--lesae", "3s"], &["after --", "'--lesae'", "'--lease'"]),
        (&["--", "--listen", "[::]:1"], &["--listen is for inject itself to set"]),
        (&["--", "--lease", "1s", "--heartbeat", "400ms"], &["would not start", "--lease 1s"]),
    ] {
        refused(bellwether(&["inject"]).args(flags), words);
    }
}

/// What a restart forgets is in the help of each command that it concerns.
#[test]
fn the_commands_of_operators_are_in_the_help() {
    let all = stdout(&bellwether(&["--help"]).output().unwrap());
    let forgets = ["restart of the sidecar forgets that", "a restart forgets it", "bellwether uncordon"];
    for (command, words) in [
        (
            "resign",
            [&forgets[..], &["--for <DURATION>", "exec POD -c bellwether -- bellwether resign"]].concat(),
        ),
        ("transfer", vec!["--to <NAME>", "before the failure timeout (--lease) is over", forgets[0]]),
        (
            "cordon",
            vec!["restart of the sidecar forgets it", "`bellwether uncordon` ends it", "--priority 0"],
        ),
        ("uncordon", vec!["`bellwether resign --for`", "--preempt"]),
    ] {
        assert!(all.contains(&format!("\n  {command}  ")), "no {command} in\n{all}");
        let help = stdout(&bellwether(&[command, "--help"]).output().unwrap());
        let (words_in_lines, help) = (words, help.split_whitespace().collect::<Vec<_>>().join(" "));
        let shared = [
            "--control-socket <SOCKET>",
            "[env: BELLWETHER_CONTROL_SOCKET=]",
            "--timeout <DURATION>",
            "[default: 10s]",
            "-o, --output <FORMAT>",
            "0 done",
            "1 not reachable",
            "3 not done, and the process says why",
        ];
        for words in words_in_lines.iter().chain(&shared) {
            assert!(help.contains(words), "no {words:?} in\n{help}");
        }
    }
    for usage in ["bellwether transfer --to NAME [OPTIONS]", "bellwether resign [OPTIONS]"] {
        assert!(all.contains(usage), "no {usage:?} in\n{all}");
    }
}

#[test]
fn says_its_version() {
    let output = bellwether(&["--version"]).output().unwrap();
    assert_eq!(stdout(&output), format!("bellwether {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn what_cannot_be_announced_is_refused() {
    let (key, value) =
        (format!("--announce={}=v", "k".repeat(33)), format!("--announce=k={}", "v".repeat(257)));
    for (flag, words) in [
        ("--announce=url", &["write KEY=VALUE"][..]),
        ("--announce==v", &["1 to 32 characters", "a-z"]),
        ("--announce=Url=http://a", &["1 to 32 characters", "a-z"]),
        (&key, &["has 33 bytes", "1 to 32"]),
        (&value, &["257 bytes", "at most 256"]),
        ("--announce=k=a\nb", &["control character", "at byte 1"]),
        ("--announce=k=a\u{9b}b", &["control character", "at byte 1"]),
        ("--announce=url=", &["write http or https", "such as http://10.0.0.1:8080"]),
        ("--announce=url=10.0.0.1:8080", &["write http or https"]),
        ("--announce=url=ftp://a", &["write http or https"]),
        ("--announce=url=http://user@a", &["no user, query, fragment"]),
        ("--announce=url=http://a/?b", &["no user, query, fragment"]),
        ("--announce=url=http://a/%2e%2e", &["no user, query, fragment or .."]),
        ("--announce=url=http://fd00::1:8080", &["http://[fd00::1]:8080"]),
    ] {
        refused(&mut bellwether(&[flag]), &[&["--announce"], words].concat());
    }
    let mut command = bellwether(&[]);
    refused(command.env("BELLWETHER_ANNOUNCE", "url"), &["BELLWETHER_ANNOUNCE", "write KEY=VALUE"]);
}

#[test]
fn alive_tells_why_it_is_not_taken() {
    refused(&mut bellwether(&["alive"]), &["--ttl"]);
    refused(&mut bellwether(&["alive", "--ttl", "61m"]), &["--ttl", "the longest is 1h"]);
    refused(&mut bellwether(&["alive", "--ttl", "0s"]), &["--ttl"]);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = bellwether(&["alive", "--ttl", "1s", "--url", &free.to_string()]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("refused"), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_probed_is_refused() {
    for url in [
        "8080",
        "127.0.0.1:8080",
        "http://app:8080",
        "https://127.0.0.1",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:1/a",
        "http://u@127.0.0.1:1",
        "http://127.0.0.1:0",
        "http://127.0.0.1:1/#a",
        "http://127.0.0.1:99999",
        "unix:///a",
    ] {
        let flag = format!("--app-health={url}");
        refused(&mut bellwether(&[&flag]), &["--app-health", "write http://127.0.0.1:8080/healthz"]);
    }
    refused(&mut bellwether(&["--app-health-failures=0"]), &["--app-health-failures", "from 1 to 100"]);
    refused(&mut bellwether(&["--app-health-interval=0s"]), &["--app-health-interval"]);
    refused(&mut bellwether(&["--when-all-sick=wait"]), &["--when-all-sick", "keep, none"]);
    refused(&mut bellwether(&["--require-lifeline=perhaps"]), &["--require-lifeline", "true, false"]);
}

#[test]
fn impossible_relations_are_refused_with_both_values_and_the_mend() {
    let nine: Vec<String> = (0..9).map(|number| format!("--announce=k{number}=v")).collect();
    let nine: Vec<&str> = nine.iter().map(String::as_str).collect();
    for (flags, words) in [
        (&["--lease=999ms"][..], &["--lease 999ms", "--heartbeat 250ms", "--lease 1s"][..]),
        (&["--heartbeat=400ms"], &["--lease 1500ms", "--heartbeat 400ms", "--lease 1600ms"]),
        (&["--heartbeat=9ms"], &["--heartbeat 9ms", "--heartbeat 10ms"]),
        (&["--answer-timeout=900ms"], &["--coordinator-timeout 900ms", "--answer-timeout 900ms", "2700ms"]),
        (
            &["--dial-timeout=301ms"],
            &["--answer-timeout 300ms", "--dial-timeout 301ms", "--answer-timeout 301ms"],
        ),
        (&["--start-timeout=999ms"], &["--start-timeout 999ms", "--stable-margin 1s"]),
        (&["--preempt=249ms"], &["--preempt 249ms", "--heartbeat 250ms"]),
        (&["--forget-after=1s"], &["--forget-after 1s", "--lease 1500ms"]),
        (&["--refresh=50ms"], &["--refresh 50ms", "--refresh 100ms"]),
        (&["--stop-wait=999ms"], &["--stop-wait 999ms", "--hold-max 1s", "--stop-wait 1s"]),
        (
            &["--listen=[::]:7", "--http=127.0.0.1:7"],
            &["--listen [::]:7", "--http 127.0.0.1:7", "another port"],
        ),
        (&["--advertise=0.0.0.0:4041"], &["--advertise 0.0.0.0:4041", "no address that peers can dial"]),
        (&["--advertise=10.0.0.1:0"], &["--advertise 10.0.0.1:0", "port 0"]),
        (&["--announce=a=1", "--announce=a=2"], &["--announce gives a twice"]),
        (&nine, &["--announce is given 9 times", "at most 8"]),
    ] {
        refused(&mut bellwether(flags), words);
        refused(bellwether(&["run"]).args(flags), words);
    }
}

#[test]
fn impossible_values_are_refused_with_the_mend() {
    let long_path = format!("/{}", "a".repeat(107));
    let many_names = (0..32).map(|k| format!("web-{k}")).collect::<Vec<_>>().join(",");
    for (flags, words) in [
        (&["--safety=most"][..], &["'most'", "--safety", "classic, majority"][..]),
        (&["--crash-evidence=some"], &["'some'", "--crash-evidence", "off, suspect, release"]),
        (&["--found=maybe"], &["'maybe'", "--found", "auto, yes, no"]),
        (&["--voters=0"], &["'0'", "--voters", "from 1 to 31"]),
        (&["--voters=32"], &["'32'", "--voters", "from 1 to 31"]),
        (&["--voters=-3"], &["'-3'", "--voters", "from 1 to 31"]),
        (&["--voters=a,,b"], &["'a,,b'", "--voters", "an empty entry"]),
        (&["--voters=a,b,a"], &["'a,b,a'", "--voters", "\"a\" is named twice"]),
        (&["--voters", &many_names], &["--voters", "32 voters", "at most 31"]),
        (&["wait"], &["wait"]),
        (&["exec"], &["exec"]),
        (&["--variant=ring"], &["ring", "detector, paper, optimized, announcer"]),
        (&["--priority=1001"], &["1001", "--priority", "from 0 to 1000"]),
        (&["--priority=-1"], &["-1", "--priority", "from 0 to 1000"]),
        (&["--expect=257"], &["257", "--expect", "from 0 to 256"]),
        (&["--preempt=sometimes"], &["sometimes", "always, never"]),
        (&["--preempt=5"], &["'5'", "write 5s"]),
        (&["--refresh=5"], &["'5'", "--refresh", "write 5s"]),
        (&["--refresh=-5s"], &["-5s", "cannot be negative"]),
        (&["--refresh=0s"], &["0s", "longer than zero"]),
        (&["--refresh=2h"], &["2h", "the longest is 1h"]),
        (&["--refresh=99999999999999999999s"], &["the longest is 1h"]),
        (&["--lease=1.5s"], &["1.5s", "1500ms"]),
        (&["--peers=web-0"], &["'web-0'", "write web-0:4041"]),
        (&["--peers=::1:4041"], &["[fd00::1]:4041"]),
        (&["--peers=a:1,"], &["an empty entry"]),
        (&["--service=web:4041"], &["web:4041", "--peer-port"]),
        (&["--peer-port=0"], &["'0'", "from 1 to 65535"]),
        (&["--peer-port=tcp://10.0.0.1:4041"], &["Kubernetes", "enableServiceLinks"]),
        (&["--listen=4041"], &["[::]:4041"]),
        (&["--http=localhost:4040"], &["localhost:4040", "no host name"]),
        (&["--name="], &["--name"]),
        (&["--name=a\tb"], &["--name", r"a\tb", "control characters"]),
        (&["--election", &"c".repeat(64)], &["--election", "64 bytes", "at most 63"]),
        (&["--log=loud"], &["loud", "off, error, warn, info, debug, trace"]),
        (&["--log-format=xml"], &["xml", "text, json"]),
        (&["stauts"], &["stauts", "'status'"]),
        (&["demo", "-n", "2"], &["'2'", "from 3 to 9"]),
        (&["status", "--url", "https://a"], &["https://a", "127.0.0.1:4040"]),
        (&["--control-socket=run/a.sock"], &["'run/a.sock'", "--control-socket", "an absolute path, @NAME"]),
        (&["--control-socket", &long_path], &["--control-socket", "108 bytes", "at most 107"]),
        (&["resign", "--for", "0s"], &["'0s'", "--for", "longer than zero"]),
        (&["resign", "--for", "2h"], &["'2h'", "--for", "the longest is 1h"]),
        (&["resign", "--for", "60"], &["'60'", "write 60s"]),
        (&["resign", "--timeout", "0s"], &["'0s'", "--timeout", "longer than zero"]),
        (&["resign", "--to", "web-1"], &["'--to'"]),
        (&["resign", "-o", "xml"], &["'xml'", "table, json"]),
        (&["transfer"], &["--to <NAME>", "not provided"]),
        (&["transfer", "--to="], &["--to", "the name of a member"]),
        (&["transfer", "--to", &"n".repeat(254)], &["--to", "254 bytes", "at most 253"]),
        (&["cordon", "--for", "60s"], &["'--for'"]),
        (&["uncordon", "web-1"], &["'web-1'"]),
    ] {
        refused(&mut bellwether(flags), words);
    }
}

#[test]
fn a_safety_level_is_refused_without_what_it_needs_and_the_error_says_what_that_is() {
    let majority = "--safety=majority";
    let deployed = "--name=web-7d4b9c6f5-x2x7k";
    for (flags, words) in [
        (&[majority, "--voters=3", "--name=web-0"][..], &["--state-dir", "survives a restart"][..]),
        (
            &[majority, "--state-dir=/state", "--name=web-0"],
            &["without --voters", "--voters 3", "web-0,web-1"],
        ),
        (&["--voters=3"], &["--voters 3", "--safety classic", "leave --voters out"]),
        (&["--found=yes"], &["--found yes", "--safety classic", "leave --found out"]),
        (&["--found=no"], &["--found no", "--safety classic", "leave --found out"]),
        (&["--crash-evidence=release"], &["--crash-evidence release", "--safety classic", "suspect"]),
        (
            &[majority, "--state-dir=/state", "--voters=3", deployed],
            &["web-7d4b9c6f5-x2x7k", "Deployment", "StatefulSet"],
        ),
        (
            &[majority, "--state-dir=/state", "--voters=3", "--name=web-3"],
            &["\"web-3\"", "web-0 to web-2", "--voters 3", "--name"],
        ),
        (
            &[
                majority,
                "--state-dir=/state",
                "--voters=3",
                "--name=web-0",
                "--answer-timeout=986ms",
                "--coordinator-timeout=2s",
            ],
            &[
                "--lease 1500ms",
                "1485ms",
                "--heartbeat 250ms",
                "--answer-timeout 986ms",
                "1486ms",
                "--lease 1502ms",
            ],
        ),
    ] {
        refused(&mut bellwether(flags), words);
    }
    let mut command = bellwether(&[majority, "--state-dir=/state", "--name=web-3"]);
    refused(command.env("BELLWETHER_VOTERS", "3"), &["--voters 3", "web-0 to web-2"]);
    refused(bellwether(&[]).env("BELLWETHER_FOUND", "yes"), &["--found yes", "--safety classic"]);
}

#[test]
fn variables_are_settings_and_flags_win_over_them() {
    refused(bellwether(&[]).env("BELLWETHER_LEASE", "999ms"), &["--lease 999ms"]);
    refused(
        bellwether(&["run"]).env("BELLWETHER_LEASE", "5"),
        &["'5'", "--lease", "write 5s", "the variable BELLWETHER_LEASE"],
    );
    let flag = refused(bellwether(&["--lease=4"]).env("BELLWETHER_LEASE", "5"), &["'4'", "--lease"]);
    assert!(!flag.contains("variable"), "{flag}");
    refused(bellwether(&["--lease=998ms"]).env("BELLWETHER_LEASE", "999ms"), &["--lease 998ms"]);
    refused(bellwether(&[]).env("BELLWETHER_PEERS", "a:1,b"), &["'b'", "write b:4041"]);
    refused(bellwether(&[]).env("POD_IP", "localhost"), &["POD_IP \"localhost\"", "status.podIP"]);
    // The settings of the sidecar are none of the other commands'.
    let status = bellwether(&["status", "--help"]).env("BELLWETHER_LEASE", "5").output().unwrap();
    assert_eq!(status.status.code(), Some(0));
}

#[test]
fn an_empty_variable_is_not_set() {
    let mut command = bellwether(&["--lease=999ms"]);
    for (flag, _) in FLAGS.iter().take(FLAGS.len() - 2) {
        command.env(format!("BELLWETHER_{}", flag.to_uppercase().replace('-', "_")), "");
    }
    command.env("POD_IP", "").env("POD_NAME", "");
    refused(&mut command, &["--lease 999ms", "--heartbeat 250ms"]);
}

#[test]
fn a_variable_that_no_flag_has_is_refused() {
    refused(
        bellwether(&[]).env("BELLWETHER_LAESE", "2s").env("BELLWETHER_CLUSTER", "web"),
        &["BELLWETHER_LAESE (is BELLWETHER_LEASE meant?)", "BELLWETHER_CLUSTER", "remove them"],
    );
    // An empty variable is none, and other commands read no variables of `run`.
    refused(bellwether(&["--lease=999ms"]).env("BELLWETHER_LAESE", ""), &["--lease 999ms"]);
    let version = bellwether(&["--version"]).env("BELLWETHER_LAESE", "2s").output().unwrap();
    assert!(version.status.success(), "{}", stderr(&version));
}

#[test]
fn what_is_perhaps_not_meant_is_warned_of() {
    let mut child = bellwether(&["--listen=127.0.0.1:0", "--http=127.0.0.1:0"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let (lines, read) = channel();
    let reader = std::thread::spawn(move || {
        for line in stderr.lines().map_while(Result::ok) {
            let _ = lines.send(line);
        }
    });
    let mut awaited = vec!["no peers: neither --service nor --peers"];
    while !awaited.is_empty() {
        let line = read
            .recv_timeout(Duration::from_secs(20))
            .unwrap_or_else(|_| panic!("not warned of: {awaited:?}"));
        awaited.retain(|words| !(line.contains(words) && line.contains(" WARN ")));
    }
    let _ = child.kill();
    child.wait().unwrap();
    reader.join().unwrap();
}

#[test]
fn the_demo_runs_beside_a_configured_sidecar() {
    // As in its container: what is meant for that one is not meant for the demo's processes.
    let output = bellwether(&["demo", "--once"])
        .env("POD_IP", "198.18.0.9")
        .env("POD_NAME", "web-0")
        .env("BELLWETHER_STATE_DIR", "/in/use/by/the/sidecar")
        .env("BELLWETHER_SERVICE", "web.invalid.")
        .env("BELLWETHER_PRIORITY", "0")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
}

/// A server that answers each connection with the next of these replies; its address.
fn server(replies: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for reply in replies {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
                head.push(byte[0]);
            }
            let _ = stream.write_all(&reply);
        }
    });
    url
}

fn reply(status: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: \
         close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

const LEADER: &str = r#"{"leader":{"id":"abcdef01-0000-4000-8000-000000000002","name":"web-2",
    "address":"10.0.0.2:4041","priority":100},"is_leader":false,"epoch":7,"valid_for_ms":null,
    "elected_at":"2026-11-21T09:00:00Z","safety":"classic"}"#;
const NO_LEADER: &str =
    r#"{"leader":null,"is_leader":false,"epoch":7,"valid_for_ms":null,"elected_at":null,"safety":"classic"}"#;
const MEMBERS: &str = r#"{"members":[
    {"id":"abcdef01-0000-4000-8000-000000000002","name":"web-2","address":"10.0.0.2:4041","priority":100,
    "state":"alive","leader":true,"me":false,"last_heard_ms":120,"round_trip_ms":null},
    {"id":"abcdef00-0000-4000-8000-000000000001","name":"evil\u001b[2J\nleader: me",
    "address":"10.0.0.1:4041","priority":50,"state":"failed","leader":false,"me":true,"last_heard_ms":null,
    "round_trip_ms":0.42}]}"#;

const NOT_READY: &str = r#"{"error":{"status":503,"message":"it waits for web-2\u001b[2J"}}"#;

/// Readiness is asked last.
fn status(mut replies: Vec<Vec<u8>>, more: &[&str]) -> Output {
    replies.push(reply("200 OK", r#"{"status":"ready"}"#));
    // A proxy in the environment is not asked.
    bellwether(&["status", "--url", &server(replies)])
        .args(more)
        .env("http_proxy", "http://127.0.0.1:9")
        .env("ALL_PROXY", "http://127.0.0.1:9")
        .output()
        .unwrap()
}

#[test]
fn status_prints_the_leader_and_the_members() {
    let output = status(vec![reply("200 OK", LEADER), reply("200 OK", MEMBERS)], &[]);
    let expected = r"leader: web-2 (abcdef01, 10.0.0.2:4041), epoch 7

   NAME                               ID        ADDRESS        PRIORITY  STATE   HEARD      RTT
*  web-2                              abcdef01  10.0.0.2:4041  100       alive   120ms ago  -
   evil\u{1b}[2J\nleader: me (here)  abcdef00  10.0.0.1:4041  50        failed  -          0.42ms
";
    assert_eq!(stdout(&output).replace(' ', ""), expected.replace(' ', ""), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn status_prints_the_voters() {
    let leader =
        LEADER.replace(r#""valid_for_ms":null"#, r#""valid_for_ms":900"#).replace("classic", "majority");
    let members = MEMBERS
        .replace(r#""round_trip_ms":null"#, r#""round_trip_ms":null,"voter":true,"lease_ms":1500"#)
        .replace(r#""round_trip_ms":0.42"#, r#""round_trip_ms":0.42,"voter":false,"lease_ms":null"#);
    let names = r#""voters":{"epoch":6,"version":2,"names":["evil\u001b[2J","web-2"]}}"#;
    let members = format!("{},{names}", members.strip_suffix('}').unwrap());
    let output = status(vec![reply("200 OK", &leader), reply("200 OK", &members)], &[]);
    let expected = r"leader: web-2 (abcdef01, 10.0.0.2:4041), epoch 7, for 900ms more unless renewed
voters: evil\u{1b}[2J (missing), web-2; configuration 6.2; more than half of the 2 have to be alive

   NAME                               ID        ADDRESS        PRIORITY  STATE   HEARD      RTT     VOTER
*  web-2                              abcdef01  10.0.0.2:4041  100       alive   120ms ago  -       yes
   evil\u{1b}[2J\nleader: me (here)  abcdef00  10.0.0.1:4041  50        failed  -          0.42ms  no
";
    assert_eq!(stdout(&output).replace(' ', ""), expected.replace(' ', ""), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn status_says_what_keeps_the_process_from_leading() {
    let members =
        MEMBERS.replace(r#""priority":50"#, r#""priority":0"#).strip_suffix('}').unwrap().to_owned()
            + r#","cordoned":true,"resigned_for_ms":8001}"#;
    let replies = || vec![reply("200 OK", LEADER), reply("200 OK", &members)];
    let output = status(replies(), &[]);
    let head = "leader: web-2 (abcdef01, 10.0.0.2:4041), epoch 7\n\
                cordoned: this process does not lead before bellwether uncordon, or its restart (by an \
                operator, or by the preStop hook of a pod that drains)\n\
                resigned: this process does not lead for 9s more\n\n";
    assert!(stdout(&output).starts_with(head), "{}{}", stdout(&output), stderr(&output));
    let foot = "\npriority 0: that member does not lead; its own status says why, or its --priority is 0\n";
    assert!(stdout(&output).ends_with(foot), "{}", stdout(&output));

    let output = status(replies(), &["-o", "json"]);
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&object["cordoned"], &object["resigned_for_ms"]), (&true.into(), &8001.into()));
}

#[test]
fn status_says_what_discovery_warns_of() {
    let members = MEMBERS.strip_suffix('}').unwrap().to_owned()
        + r#","discovery_warning":"no peer is published under evil\u001b[2J"}"#;
    let output = status(vec![reply("200 OK", LEADER), reply("200 OK", &members)], &[]);
    let head = "leader: web-2 (abcdef01, 10.0.0.2:4041), epoch 7\n\
                discovery: no peer is published under evil\\u{1b}[2J\n\n";
    assert!(stdout(&output).starts_with(head), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn status_says_whether_a_process_with_a_sick_application_leads_on() {
    let sick = |members: &str| {
        let (members, _) = members.rsplit_once('}').unwrap();
        format!(r#"{members},"unhealthy":true,"complaints":["probe","lifeline"]}}"#)
    };
    let leader_here =
        MEMBERS.replace(r#""me":true"#, r#""me":null"#).replace(r#""me":false"#, r#""me":true"#);
    let leader_here = leader_here.replace(r#""me":null"#, r#""me":false"#);
    for (members, what) in [
        (sick(MEMBERS), "so this process does not stand"),
        (sick(&leader_here), "and this process leads on while no other member can take over"),
    ] {
        let output = status(vec![reply("200 OK", LEADER), reply("200 OK", &members)], &[]);
        let line = format!(
            "\nunhealthy: the application here is not healthy, {what}; complaints: probe, lifeline\n"
        );
        assert!(stdout(&output).contains(&line), "{}{}", stdout(&output), stderr(&output));
    }
}

#[test]
fn status_without_a_leader_exits_with_3() {
    let replies = || {
        let unavailable = |body| reply("503 Service Unavailable", body);
        vec![unavailable(NO_LEADER), reply("200 OK", MEMBERS), unavailable(NOT_READY)]
    };
    let output = status(replies(), &[]);
    let head = "no leader, epoch 7\nnot ready: it waits for web-2\\u{1b}[2J\n";
    assert!(stdout(&output).starts_with(head), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(3));

    let output = status(replies(), &["-o", "json"]);
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["not_ready"], "it waits for web-2\\u{1b}[2J");
}

#[test]
fn status_prints_one_json_object() {
    let output = status(vec![reply("200 OK", LEADER), reply("200 OK", MEMBERS)], &["-o", "json"]);
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&object["leader"]["name"], &object["epoch"], &object["safety"]),
        (&"web-2".into(), &7.into(), &"classic".into())
    );
    assert_eq!(object["members"][1]["round_trip_ms"], 0.42);
    assert_eq!(object["not_ready"], serde_json::Value::Null);
    assert!(!stdout(&output).contains('\u{1b}'));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn status_says_what_it_tried_and_how_to_mend_it() {
    // A port that was free a moment ago: no process listens there.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = bellwether(&["status", "--url", &format!("http://{free}")]).output().unwrap();
    let unreachable =
        (output, vec![format!("http://{free}/leader"), "refused".to_owned(), "--url".to_owned()]);
    let huge = reply("200 OK", &format!("{{\"a\":\"{}\"}}", "a".repeat(2_000_000)));
    for (output, words) in [
        unreachable,
        (status(vec![b"\x16\x03\x01 what?\r\n\r\n".to_vec()], &[]), vec!["/leader".to_owned()]),
        (status(vec![Vec::new()], &[]), vec!["/leader".to_owned()]),
        (status(vec![reply("200 OK", "<html>")], &[]), vec!["/leader".to_owned(), "expected".to_owned()]),
        (status(vec![reply("200 OK", "{}"), reply("200 OK", MEMBERS)], &[]), vec!["epoch".to_owned()]),
        (status(vec![reply("200 OK", LEADER), reply("200 OK", "[]")], &[]), vec!["/members".to_owned()]),
        (
            status(vec![reply("404 Not Found", "no\u{1b}[2J")], &[]),
            vec!["404".to_owned(), "--url".to_owned()],
        ),
        (status(vec![reply("302 Found", "")], &[]), vec!["302".to_owned()]),
        (status(vec![huge], &[]), vec!["/leader".to_owned()]),
        (status(vec![reply("200 OK", &"[".repeat(100_000))], &[]), vec!["/leader".to_owned()]),
    ] {
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.starts_with("error: ") && !error.contains('\u{1b}') && error.len() < 1000, "{error}");
        assert_eq!(stdout(&output), "");
        for word in words {
            assert!(error.contains(&word), "no {word:?} in {error}");
        }
    }
}

#[test]
fn status_asks_for_health() {
    let output = status(vec![reply("200 OK", "{}")], &["--healthz"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output =
        status(vec![reply("500 Internal Server Error", r#"{"error":"the driver stands"}"#)], &["--healthz"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("the driver stands"), "{}", stderr(&output));
}

#[test]
fn status_does_not_wait_for_ever() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut command = bellwether(&["status", "--url", &url]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let code = loop {
        match child.try_wait().unwrap() {
            Some(code) => break code.code(),
            None if Instant::now() > deadline => break None,
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let _ = child.kill();
    child.wait().unwrap();
    assert_eq!(code, Some(1));
}
