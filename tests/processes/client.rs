//! `bellwether watch`, `wait` and `install` beside real sidecars.

use crate::harness::{Real, processes, started, voters_started};
use crate::rounds::{Cause, PATIENCE, take_down};
use crate::wait::within;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bellwether");
/// Longer than any test, and like no other program's.
const LONG_SLEEP: &str = "sleep 600.125";
/// The same as the kernel shows it.
const LONG_SLEEP_LINE: &[u8] = b"sleep\x00600.125\x00";
const NEVER: [&str; 2] = ["--preempt", "never"];

fn url(real: &Real, place: usize) -> String {
    format!("127.0.0.1:{}", real.ports(place).http)
}

fn bellwether(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env_remove("BELLWETHER_URL");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// How a command has ended: its exit code, and what it said on stderr.
fn end(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), text(&output.stderr))
}

/// A command that goes on, until this is dropped.
struct Watching {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watching {
    fn begin(url: &str, more: &[&str]) -> Watching {
        let arguments = [&["watch", "--url", url], more].concat();
        let mut child = bellwether(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Watching { child, lines }
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // It passes this on to the command that runs.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

#[test]
fn watch_prints_each_change_and_that_the_sidecar_is_silent() {
    let (mut real, now) = started(3, &NEVER);
    let follower = (0..3).find(|place| *place != now.leader).unwrap();
    let (mut leader, mut other) =
        (Watching::begin(&url(&real, now.leader), &[]), Watching::begin(&url(&real, follower), &[]));
    let first = leader.line();
    assert_eq!((&first["is_leader"], &first["epoch"]), (&json!(true), &json!(now.epoch)));
    assert_eq!(other.line()["is_leader"], json!(false));
    let (next, _) = take_down(&mut real, &now, Cause::Crash).unwrap();
    let mut silent = leader.line();
    while silent["unreachable"].is_null() {
        // It may hear that its sidecar has lost the leadership first.
        silent = leader.line();
    }
    assert_eq!((&silent["is_leader"], &silent["leader"]), (&json!(false), &Value::Null));
    let name = real.name(next.leader);
    while other.line()["leader"]["name"] != json!(name) {}
    // It tells the state again once there is one.
    real.start(now.leader, &[]).unwrap();
    while leader.line()["leader"]["name"] != json!(name) {}
}

#[test]
fn watch_runs_a_command_for_each_change_in_order() {
    let (mut real, now) = started(2, &NEVER);
    let follower = 1 - now.leader;
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let script = r#"echo "$BELLWETHER_EPOCH $BELLWETHER_IS_LEADER $BELLWETHER_MISSED $(cat)" >> "$0""#;
    let (url, seen_path) = (url(&real, follower), seen.to_str().unwrap());
    let _watching = Watching::begin(&url, &["--exec", "--", "sh", "-c", script, seen_path]);
    let lines = || std::fs::read_to_string(&seen).unwrap_or_default();
    let ends_with = |leads: &str| {
        let last = || lines().lines().last().map(str::to_owned).filter(|line| line.contains(leads));
        within(PATIENCE, last).unwrap_or_else(|| panic!("no {leads:?} at the end of {}", lines()))
    };
    ends_with(&format!("{} false false ", now.epoch));
    let (next, _) = take_down(&mut real, &now, Cause::Resignation).unwrap();
    let last = ends_with(&format!("{} true false ", next.epoch));
    let record: Value = serde_json::from_str(&last[last.find('{').unwrap()..]).unwrap();
    assert_eq!(record["is_leader"], json!(true));
    // One line each, none of them twice.
    let all = lines();
    let version = |line: &str| line.split("\"version\":").nth(1).unwrap().to_owned();
    let mut versions: Vec<String> = all.lines().map(version).collect();
    let counted = versions.len();
    versions.dedup();
    assert!(counted >= 2 && versions.len() == counted, "{all}");
}

#[test]
fn a_command_that_hangs_or_fails_holds_up_no_other() {
    let (mut real, now) = started(2, &NEVER);
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    // The first leaves a process of its group behind, which holds on to the output.
    let script = &format!(r#"echo "$BELLWETHER_EPOCH" >> "$0"; {LONG_SLEEP} & wait; exit 1"#);
    let arguments = ["--exec-timeout", "200ms", "--exec", "--", "sh", "-c", script, seen.to_str().unwrap()];
    let left = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        lines.filter(|line| *line == LONG_SLEEP_LINE).count()
    };
    let watching = Watching::begin(&url(&real, 1 - now.leader), &arguments);
    let told = |epoch: u64| {
        let text = || std::fs::read_to_string(&seen).unwrap_or_default();
        let there = || text().lines().any(|line| line == epoch.to_string()).then_some(());
        assert!(within(PATIENCE, there).is_some(), "epoch {epoch} is not in {}", text());
    };
    told(now.epoch);
    let (next, _) = take_down(&mut real, &now, Cause::Resignation).unwrap();
    told(next.epoch);
    assert!(within(PATIENCE, || (left() == 0).then_some(())).is_some(), "{} are left", left());
    drop(watching);
}

/// The signal reaches the command, which may take its time, and then ends this program too.
#[test]
fn a_signal_reaches_the_command_and_its_end_is_waited_for() {
    let (real, now) = started(2, &NEVER);
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let script = r#"trap 'kill $!; sleep 0.3; echo ended >> "$0"; exit 0' TERM; echo begun >> "$0"
        sleep 600 & wait"#;
    let arguments = ["--exec", "--", "sh", "-c", script, seen.to_str().unwrap()];
    let mut watching = Watching::begin(&url(&real, now.leader), &arguments);
    let lines = || std::fs::read_to_string(&seen).unwrap_or_default();
    assert!(within(PATIENCE, || (lines() == "begun\n").then_some(())).is_some(), "{}", lines());
    kill_process(Pid::from_child(&watching.child), Signal::TERM).unwrap();
    assert_eq!(watching.child.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(lines(), "begun\nended\n");
    // Without a command it ends at once.
    let mut plain = Watching::begin(&url(&real, now.leader), &[]);
    plain.line();
    kill_process(Pid::from_child(&plain.child), Signal::INT).unwrap();
    assert_eq!(plain.child.wait().unwrap().code(), Some(128 + 2));
}

#[test]
fn watch_ends_once_its_reader_has_gone() {
    let (real, _) = started(2, &NEVER);
    let mut child = bellwether(&["watch", "--url", &url(&real, 0)]).stdout(Stdio::piped()).spawn().unwrap();
    // No change comes that it could fail to write.
    drop(child.stdout.take());
    let ended = within(PATIENCE, || child.try_wait().unwrap());
    let _ = child.kill();
    assert_eq!(ended.and_then(|status| status.code()), Some(0));
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = bellwether(&["watch", "--url", &url(&real, 0)]).stdout(full).output().unwrap();
    let (code, error) = end(&output);
    assert!(code == Some(125) && error.contains("cannot write a line"), "{code:?} {error}");
}

/// A sidecar that tells of a leadership that is over already, and then of none.
#[test]
fn wait_does_not_take_what_is_past() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answers = ["", ",\"past\":true,\"valid_for_ms\":0", ""];
    let server = std::thread::spawn(move || {
        for (number, more) in answers.into_iter().enumerate() {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            assert!(std::io::Read::read(&mut stream, &mut request).unwrap() > 0);
            let leads = number == 1;
            let body =
                format!(r#"{{"version":"a-{number}","leader":null,"is_leader":{leads},"epoch":1{more}}}"#);
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}", body.len());
            std::io::Write::write_all(&mut stream, format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
        }
    });
    let arguments = ["wait", "--url", &address, "--for", "leading", "--timeout", "2s"];
    let (code, error) = end(&bellwether(&arguments).output().unwrap());
    assert_eq!(code, Some(124), "{error}");
    server.join().unwrap();
}

#[test]
fn a_command_that_cannot_be_run_ends_watch() {
    let (real, _) = started(2, &NEVER);
    let url = url(&real, 0);
    for (program, code) in [("no-such-program", 127), ("/", 126)] {
        let output = bellwether(&["watch", "--url", &url, "--exec", "--", program]).output().unwrap();
        let (found, error) = end(&output);
        assert!(found == Some(code) && error.contains(program), "{found:?} {error}");
    }
    for flags in [&["--exec"][..], &["--", "true"], &["--exec-timeout", "0s"], &["--url", "http://a/b"]] {
        assert_eq!(end(&bellwether(&[&["watch"], flags].concat()).output().unwrap()).0, Some(2), "{flags:?}");
    }
}

#[test]
fn wait_waits_for_a_sidecar_and_for_what_it_is_asked_for() {
    let mut real = processes(2, &[&NEVER[..], &["--expect", "2"]].concat());
    let asks = |place: usize, wanted: &str, timeout: &str| {
        let mut command = bellwether(&["wait", "--for", wanted, "--timeout", timeout]);
        // The variable serves as the flag does.
        command.env("BELLWETHER_URL", url(&real, place)).stderr(Stdio::piped()).spawn().unwrap()
    };
    let early = asks(0, "leader", "30s");
    let silent = asks(1, "leader", "50ms").wait_with_output().unwrap();
    let (code, error) = end(&silent);
    assert!(code == Some(124) && error.contains("did not come in 50ms: no answer from"), "{code:?} {error}");
    (0..2).for_each(|place| real.start(place, &[]).unwrap());
    let now = real.agree(0, PATIENCE).unwrap();
    assert_eq!(end(&early.wait_with_output().unwrap()), (Some(0), String::new()));
    let asks = |place: usize, wanted: &str, timeout: &str| {
        bellwether(&["wait", "--url", &url(&real, place), "--for", wanted, "--timeout", timeout])
            .output()
            .unwrap()
    };
    let other = 1 - now.leader;
    assert_eq!(end(&asks(now.leader, "leading", "30s")).0, Some(0));
    assert_eq!(end(&asks(other, "following", "30s")).0, Some(0));
    let (code, error) = end(&asks(other, "leading", "1s"));
    let leads = format!("{} leads in epoch {}", real.name(now.leader), now.epoch);
    assert!(code == Some(124) && error.contains(&leads), "{code:?} {error}");
}

#[test]
fn install_puts_the_program_there_in_one_step() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("bellwether");
    // What was there before is replaced, not written into: it may be running.
    std::fs::write(&target, "an older one").unwrap();
    let before = std::fs::File::open(&target).unwrap();
    let install = format!("umask 077; exec {PROGRAM} install {}", folder.path().display());
    let output = Command::new("sh").args(["-c", &install]).output().unwrap();
    assert_eq!(end(&output), (Some(0), String::new()));
    assert_eq!(text(&output.stdout), format!("{}\n", target.display()));
    assert_eq!(before.metadata().unwrap().len(), 12);
    assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o7777, 0o755);
    assert!(std::fs::read(&target).unwrap() == std::fs::read(PROGRAM).unwrap());
    assert!(Command::new(&target).arg("--version").output().unwrap().status.success());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let missing = Path::new("/no/such/folder");
    let (code, error) = end(&bellwether(&["install", missing.to_str().unwrap()]).output().unwrap());
    assert!(code == Some(125) && error.contains("/no/such/folder"), "{code:?} {error}");
}

/// A silent sidecar may not have ended: another process may lead by the time that its lease is over.
#[test]
fn a_stopped_sidecar_counts_as_silent_within_its_lease() {
    let (real, now) = voters_started(3, &NEVER);
    let mut watching = Watching::begin(&url(&real, now.leader), &[]);
    assert_eq!(watching.line()["is_leader"], json!(true));
    let at = std::time::Instant::now();
    real.signal(now.leader, Signal::STOP);
    assert!(!watching.line()["unreachable"].is_null());
    let took = at.elapsed();
    real.signal(now.leader, Signal::CONT);
    // It has lost its lease, and knows the next leader.
    while watching.line()["leader"].is_null() {}
    // One question in two steps of half a second each, and a busy machine.
    assert!(took < Duration::from_secs(3), "{took:?}");
}
