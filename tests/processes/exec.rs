//! `bellwether exec` beside real sidecars: when its command runs, and that nothing of it is left when its
//! hold is over.
//!
//! Each command holds a lock of one file while it lives, as do all its descendants. So a command notices
//! another one that runs.

use crate::harness::{Real, started, voters_started};
use crate::rounds::{Cause, PATIENCE, bring_back, take_down};
use crate::wait::within;
use bellwether::demo::process_cluster::Agreement;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bellwether");
const NEVER: [&str; 2] = ["--preempt", "never"];
/// Says which epoch it runs in, and whether another command ran at that time, then waits.
const WORKER: &str = r#"
exec 9>>lock
flock -n 9 || echo overlap >>said
echo "begun $NAME $BELLWETHER_EPOCH $BELLWETHER_ELECTION $BELLWETHER_NAME" >>said
"#;
/// A script that sets traps has this after them, so that a signal that comes right after finds them. Each
/// other script begins with it.
const BEGUN: &str = "begun;";

/// A folder that commands write to.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        File::create(place.path("lock")).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.path("said")).unwrap_or_default()
    }

    /// Waits until a line begins like this.
    fn says(&self, words: &str) {
        let there = || self.said().lines().any(|line| line.starts_with(words)).then_some(());
        assert!(within(PATIENCE, there).is_some(), "no {words:?} in {:?}", self.said());
    }

    /// Whether any process has the lock that can still act. One that was killed and waits for the processor
    /// cannot.
    fn is_free(&self) -> bool {
        let lock = File::open(self.path("lock")).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
            || holders(&self.path("lock")).iter().all(|pid| is_killed(*pid))
    }

    fn becomes_free(&self) {
        assert!(within(PATIENCE, || self.is_free().then_some(())).is_some(), "{}", self.said());
    }

    fn overlapped(&self) -> bool {
        self.said().contains("overlap")
    }
}

/// The processes that have this file open.
fn holders(file: &Path) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |pid: &u32| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.into_iter().any(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == file))
    };
    numbers.filter(|pid| *pid != std::process::id()).filter(has).collect()
}

/// Whether SIGKILL has reached a process: then it runs no instruction of its program again.
fn is_killed(pid: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return true };
    let pending = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        u64::from_str_radix(line.trim(), 16).unwrap_or(0) & (1 << 8) != 0
    };
    pending("SigPnd:") || pending("ShdPnd:")
}

/// `bellwether exec`, until this is dropped.
struct Exec(Child);

impl Exec {
    /// Beside the sidecar of a place.
    fn beside(real: &Real, at: usize, place: &Place, flags: &[&str], script: &str) -> Exec {
        Exec::saying(real, at, place, flags, script, Stdio::inherit())
    }

    fn saying(real: &Real, at: usize, place: &Place, flags: &[&str], script: &str, stderr: Stdio) -> Exec {
        let begins = !script.contains(BEGUN);
        let script = if begins { format!("{WORKER}{script}") } else { script.replace(BEGUN, WORKER) };
        let command = ["--", "sh", "-c", &script];
        let child = Command::new(PROGRAM)
            .arg("exec")
            .args(flags)
            .args(command)
            .current_dir(place.0.path())
            .env("BELLWETHER_URL", format!("http://127.0.0.1:{}", real.ports(at).http))
            .env("NAME", at.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap();
        Exec(child)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    fn end(&mut self) -> ExitStatus {
        within(PATIENCE, || self.0.try_wait().unwrap()).expect("exec does not end")
    }

    fn runs(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        // A command may take as long as its sidecar waits.
        if within(PATIENCE, || self.0.try_wait().unwrap()).is_none() {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// One exec beside each sidecar.
fn beside_all(real: &Real, place: &Place, script: &str) -> Vec<Exec> {
    (0..real.n()).map(|at| Exec::beside(real, at, place, &[], script)).collect()
}

fn begun(now: &Agreement) -> String {
    format!("begun {} {} ", now.leader, now.epoch)
}

const SLEEPS: &str = "exec sleep 600";

/// The only voter: it leads on when its application dies.
fn alone() -> (Real, Agreement) {
    voters_started(1, &["--found", "yes"])
}

/// A command that ends by itself gives another place its turn, and so does an exec that is killed.
#[test]
fn leadership_moves_on_when_the_command_or_exec_dies() {
    for kills_exec in [false, true] {
        let (real, now) = voters_started(3, &NEVER);
        let place = Place::new();
        let mut execs = beside_all(&real, &place, SLEEPS);
        place.says(&begun(&now));
        if kills_exec {
            execs[now.leader].0.kill().unwrap();
            execs[now.leader].0.wait().unwrap();
        } else {
            for pid in holders(&place.path("lock")) {
                let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
                kill_process(pid, Signal::KILL).unwrap();
            }
        }
        let elsewhere = |line: &str| line.starts_with("begun ") && !line.starts_with(&begun(&now));
        let moved = || place.said().lines().any(elsewhere).then_some(());
        assert!(within(PATIENCE, moved).is_some(), "{}", place.said());
        assert!(!place.overlapped(), "{}", place.said());
    }
}

#[test]
fn the_command_runs_beside_the_leader_alone_and_follows_it() {
    let (mut real, mut now) = voters_started(3, &NEVER);
    let place = Place::new();
    let mut execs = beside_all(&real, &place, SLEEPS);
    let name = real.name(now.leader);
    let election = name.rsplit_once('-').unwrap().0;
    place.says(&format!("{}{election} {name}", begun(&now)));
    for cause in [Cause::Resignation, Cause::Crash] {
        let before = now.leader;
        (now, _) = take_down(&mut real, &now, cause).unwrap();
        place.says(&begun(&now));
        bring_back(&mut real, before, &[], &now).unwrap();
    }
    assert!(!place.overlapped(), "{}", place.said());
    // A loss never ends exec.
    assert!(execs.iter_mut().all(Exec::runs));
    drop(execs);
    place.becomes_free();
}

/// Neither a session of its own nor a double fork hides a process, nor does an ignored SIGTERM save it.
#[test]
fn command_and_descendants_have_ended_when_another_process_leads() {
    let (mut real, now) = voters_started(3, &["--preempt", "never", "--stop-wait", "1s"]);
    let place = Place::new();
    let hides = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; \
                 echo hidden >>said; while :; do sleep 600; done' &) ; \
                 while :; do sleep 600; done";
    let _execs = beside_all(&real, &place, hides);
    place.says(&begun(&now));
    place.says("hidden");
    let (next, _) = take_down(&mut real, &now, Cause::Resignation).unwrap();
    assert!(place.is_free() || place.said().contains(&begun(&next)), "{}", place.said());
    place.says(&begun(&next));
    bring_back(&mut real, now.leader, &[], &next).unwrap();
    let (last, _) = take_down(&mut real, &next, Cause::Crash).unwrap();
    place.says(&begun(&last));
    assert!(!place.overlapped(), "{}", place.said());
}

#[test]
fn a_command_that_takes_long_to_stop_is_waited_for() {
    let (real, now) = voters_started(3, &NEVER);
    let place = Place::new();
    let slow = "trap 'sleep 3; echo stopped >>said; exit 0' TERM; begun; while :; do sleep 0.05; done";
    let _execs = beside_all(&real, &place, slow);
    place.says(&begun(&now));
    real.signal(now.leader, Signal::TERM);
    place.says("stopped");
    let next = |line: &str| line.starts_with("begun") && !line.starts_with(&begun(&now));
    assert!(within(PATIENCE, || place.said().lines().any(next).then_some(())).is_some(), "{}", place.said());
    assert!(!place.overlapped(), "{}", place.said());
}

/// Killed, stopped, or gone: without a renewal the command ends, and runs again once its sidecar leads again.
#[test]
fn a_sidecar_that_does_not_answer_ends_the_command_and_not_exec() {
    let (real, now) = voters_started(3, &NEVER);
    let place = Place::new();
    let mut exec = Exec::beside(
        &real,
        now.leader,
        &place,
        &[],
        "trap 'echo told >>said; exit 0' TERM; begun; while :; do sleep 0.05; done",
    );
    place.says(&begun(&now));
    real.signal(now.leader, Signal::STOP);
    place.says("told");
    place.becomes_free();
    real.signal(now.leader, Signal::CONT);
    assert!(exec.runs());
}

#[test]
fn a_reader_of_stderr_that_has_stopped_saves_no_command() {
    let (real, now) = voters_started(3, &NEVER);
    let place = Place::new();
    let (reader, mut writer) = std::io::pipe().unwrap();
    // All that a pipe holds.
    writer.write_all(&[b'.'; 65_536]).unwrap();
    let _exec = Exec::saying(&real, now.leader, &place, &[], SLEEPS, writer.into());
    place.says(&begun(&now));
    // It says that the sidecar is silent, and has to end the command.
    real.signal(now.leader, Signal::STOP);
    place.becomes_free();
    real.signal(now.leader, Signal::CONT);
    drop(reader);
}

#[test]
fn signals_reach_the_command_and_its_code_is_execs() {
    let (real, now) = alone();
    for (signal, script, code) in [
        (Signal::TERM, "trap 'exit 7' TERM; begun; while :; do sleep 0.05; done", 7),
        (Signal::INT, "trap 'exit 8' INT; begun; while :; do sleep 0.05; done", 8),
        (Signal::TERM, SLEEPS, 128 + 15),
    ] {
        let place = Place::new();
        let mut exec = Exec::beside(&real, now.leader, &place, &[], script);
        place.says(&begun(&now));
        exec.signal(signal);
        assert_eq!(exec.end().code(), Some(code), "{script}");
        place.becomes_free();
    }
    let (real, now) = voters_started(3, &NEVER);
    let place = Place::new();
    let script = "trap 'echo reload >>said' HUP; begun; while :; do sleep 0.05; done";
    let mut exec = Exec::beside(&real, now.leader, &place, &[], script);
    place.says(&begun(&now));
    exec.signal(Signal::HUP);
    place.says("reload");
    assert!(exec.runs());
    // Without a command it ends at once.
    let mut idle = Exec::beside(&real, (now.leader + 1) % 3, &place, &[], SLEEPS);
    let watches =
        || real.metric((now.leader + 1) % 3, "bellwether_watchers").filter(|watchers| *watchers > 0.0);
    assert!(within(PATIENCE, watches).is_some());
    idle.signal(Signal::TERM);
    assert_eq!(idle.end().code(), Some(128 + 15));
}

#[test]
fn what_follows_the_commands_own_end() {
    let (real, now) = alone();
    for (flags, code) in [(&["--on-exit", "exit"][..], 3), (&["--once"], 3)] {
        let place = Place::new();
        let mut exec = Exec::beside(&real, now.leader, &place, flags, "exit 3");
        assert_eq!(exec.end().code(), Some(code), "{flags:?}");
    }
    for what in ["restart", "resign"] {
        let place = Place::new();
        let mut exec = Exec::beside(&real, now.leader, &place, &["--on-exit", what], "exit 3");
        let twice = || (place.said().lines().count() >= 2).then_some(());
        assert!(within(PATIENCE, twice).is_some(), "{what}: {}", place.said());
        assert!(exec.runs(), "{what}");
    }
    let (mut real, now) = voters_started(3, &NEVER);
    let place = Place::new();
    let mut exec = Exec::beside(&real, now.leader, &place, &["--once"], SLEEPS);
    place.says(&begun(&now));
    take_down(&mut real, &now, Cause::Resignation).unwrap();
    assert_eq!(exec.end().code(), Some(75));
}

/// What the command leaves behind ends with it, and so does the command with exec.
#[test]
fn nothing_outlives_the_command_or_exec() {
    let (real, now) = alone();
    let place = Place::new();
    let leaves = "(setsid sleep 600 &); exit 0";
    let mut exec = Exec::beside(&real, now.leader, &place, &["--once"], leaves);
    assert_eq!(exec.end().code(), Some(0));
    place.becomes_free();
    let mut exec = Exec::beside(&real, now.leader, &place, &[], SLEEPS);
    place.says(&begun(&now));
    let again = || (place.said().lines().count() == 2).then_some(());
    assert!(within(PATIENCE, again).is_some(), "{}", place.said());
    exec.0.kill().unwrap();
    exec.0.wait().unwrap();
    place.becomes_free();
}

#[test]
fn where_no_hold_is_granted_it_goes_by_is_leader() {
    for (flags, majority) in [
        (&NEVER[..], false),
        (&["--preempt", "never", "--crash-evidence", "release"], true),
        (&["--preempt", "never", "--app-clients", "none"], true),
    ] {
        let (mut real, now) = if majority { voters_started(3, flags) } else { started(3, flags) };
        let place = Place::new();
        let _execs = beside_all(&real, &place, SLEEPS);
        place.says(&format!("begun {} {}", now.leader, now.epoch));
        let (next, _) = take_down(&mut real, &now, Cause::Crash).unwrap();
        place.says(&format!("begun {} {}", next.leader, next.epoch));
    }
}

#[test]
fn what_cannot_be_run_or_can_never_start_says_so() {
    let (real, now) = voters_started(3, &["--preempt", "never", "--hold-max", "500ms"]);
    let url = format!("127.0.0.1:{}", real.ports(now.leader).http);
    for (arguments, code, words) in [
        (&["--", "no-such-program"][..], 127, "no-such-program"),
        (&["--", "/"], 126, "cannot run /"),
        (&[], 2, "CMD"),
        (&["--hold", "571ms", "--", "true"], 2, "--hold of at least 572ms"),
        (&["--hold", "0s", "--", "true"], 2, "--hold"),
    ] {
        let output = Command::new(PROGRAM).args(["exec", "--url", &url]).args(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(code) && error.contains(words), "{arguments:?}: {error}");
    }
    let elsewhere = ["exec", "--url", "198.18.0.1:4040", "--", "true"];
    let output = Command::new(PROGRAM).args(elsewhere).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && error.contains("loopback address"), "{error}");
    // The sidecar's own bound is too short for what is asked.
    let mut exec = Command::new(PROGRAM)
        .args(["exec", "--url", &url, "--", "true"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(exec.stderr.take().unwrap()), &mut line)
        .unwrap();
    assert!(line.contains("does not start") && line.contains("500 ms"), "{line}");
    assert!(exec.try_wait().unwrap().is_none());
    exec.kill().unwrap();
    exec.wait().unwrap();
}

/// A stall ends the command, since its hold may have been over. It runs again at once.
#[test]
fn one_stall_of_exec_keeps_no_command_from_running() {
    let (real, now) = voters_started(3, &NEVER);
    let place = Place::new();
    let exec = Exec::beside(&real, now.leader, &place, &[], SLEEPS);
    place.says(&begun(&now));
    exec.signal(Signal::STOP);
    // No hold of this command is left by then.
    assert!(
        within(PATIENCE, || (real.metric(now.leader, "bellwether_holds") == Some(0.0)).then_some(()))
            .is_some()
    );
    exec.signal(Signal::CONT);
    let again = || (place.said().lines().filter(|line| line.starts_with("begun")).count() == 2).then_some(());
    assert!(within(PATIENCE, again).is_some(), "{}", place.said());
    assert!(!place.overlapped(), "{}", place.said());
}

/// In its pause exec has a hold and no command, and the resignation need not wait for that.
#[test]
fn a_resignation_waits_for_no_command_that_does_not_run() {
    let (mut real, now) = voters_started(3, &["--preempt", "never", "--stop-wait", "1h"]);
    let place = Place::new();
    let _exec = Exec::beside(&real, now.leader, &place, &["--on-exit", "restart"], "exit 3");
    let ended = || (place.said().lines().count() >= 2).then_some(());
    assert!(within(PATIENCE, ended).is_some(), "{}", place.said());
    take_down(&mut real, &now, Cause::Resignation).unwrap();
}

#[test]
fn a_command_that_is_stopped_hears_of_its_end() {
    let (real, now) = voters_started(3, &["--preempt", "never", "--stop-wait", "1h"]);
    let place = Place::new();
    let stops = "trap 'exit 5' TERM; begun; kill -STOP $$; while :; do sleep 0.05; done";
    let mut exec = Exec::beside(&real, now.leader, &place, &[], stops);
    place.says(&begun(&now));
    exec.signal(Signal::TERM);
    assert_eq!(exec.end().code(), Some(5));
}

#[test]
fn two_execs_of_one_pod_and_much_output_hold_up_nothing() {
    let (real, now) = voters_started(3, &NEVER);
    let (one, two) = (Place::new(), Place::new());
    let writes = "yes | head -c 8000000; echo written >>said; exec sleep 600";
    let _one = Exec::beside(&real, now.leader, &one, &[], writes);
    let _two = Exec::beside(&real, now.leader, &two, &[], SLEEPS);
    one.says("written");
    two.says(&begun(&now));
    assert_eq!(one.said().lines().count(), 2, "{}", one.said());
}
