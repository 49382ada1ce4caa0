//! The clients in `examples/`: each says that it leads beside the leader, and nowhere else.

use crate::harness::{Real, started, voters_started};
use crate::rounds::{Cause, PATIENCE, bring_back, take_down};
use bellwether::demo::process_cluster::Agreement;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

const NEVER: [&str; 2] = ["--preempt", "never"];

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

/// A test that passes because a tool is missing would say nothing.
fn needs(tool: &str) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&path).any(|folder| folder.join(tool).is_file());
    assert!(there, "there is no {tool}, which this test needs");
}

fn compile(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?} ended with {status}");
}

/// One copy of a client beside each process, and all that they say.
struct Copies {
    children: Vec<Child>,
    lines: Receiver<(usize, String)>,
    said: Vec<(usize, String)>,
    /// Which process led, and in which epoch.
    led: Vec<(usize, u64)>,
}

impl Copies {
    fn beside(real: &Real, program: &[&str]) -> Copies {
        let (sender, lines) = channel();
        let mut copies = Copies { children: Vec::new(), lines, said: Vec::new(), led: Vec::new() };
        for place in 0..real.n() {
            let mut child = Command::new(program[0])
                .args(&program[1..])
                .env("BELLWETHER_URL", format!("http://127.0.0.1:{}", real.ports(place).http))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                // A group of its own: a shell has children, which end with it.
                .process_group(0)
                .spawn()
                .unwrap();
            read(&mut child, place, sender.clone());
            copies.children.push(child);
        }
        copies
    }

    /// What the copy of a place has said last.
    fn last(&self, place: usize) -> Option<&str> {
        self.said.iter().rev().find(|(at, _)| *at == place).map(|(_, line)| line.as_str())
    }

    /// Waits until the copy beside the leader says that it leads, and the one beside the last leader no
    /// longer does. A client on a busy machine may stop in between, and lead again.
    fn follow(&mut self, now: &Agreement) {
        let wanted = format!("leads epoch={}", now.epoch);
        let old = self.led.last().map(|(place, _)| *place);
        self.led.push((now.leader, now.epoch));
        let deadline = Instant::now() + PATIENCE;
        while self.last(now.leader) != Some(&wanted) || old.is_some_and(|old| self.last(old) != Some("stops"))
        {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.said.push(line),
                Err(_) => panic!("{} should say {wanted:?}, {old:?} \"stops\": {:?}", now.leader, self.said),
            }
        }
    }

    /// When the copy of a place said this first, as a position among all that was said.
    fn position(&self, place: usize, line: &str) -> usize {
        self.said.iter().position(|said| *said == (place, line.to_owned())).unwrap()
    }

    /// No copy has said that it leads where its process did not, and each stops before it leads again.
    fn check(&mut self) {
        self.said.extend(self.lines.try_iter());
        for place in 0..self.children.len() {
            let mut leads = false;
            for (_, line) in self.said.iter().filter(|(at, _)| *at == place) {
                let epoch = line.strip_prefix("leads epoch=").map(|epoch| epoch.parse().unwrap());
                match epoch {
                    Some(epoch) => assert!(self.led.contains(&(place, epoch)), "{place}: {:?}", self.said),
                    None => assert_eq!(line, "stops"),
                }
                assert_ne!(leads, epoch.is_some(), "{place}: {:?}", self.said);
                leads = epoch.is_some();
            }
        }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
            let _ = child.wait();
        }
    }
}

fn read(child: &mut Child, place: usize, into: Sender<(usize, String)>) {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| into.send((place, line))));
}

/// Through a resignation and a crash of voters. After the crash the old leader's copy stops before the new
/// one's begins: the validity that it had was a part of the lease.
fn majority(program: &[&str]) {
    let (mut real, mut now) = voters_started(3, &NEVER);
    let mut copies = Copies::beside(&real, program);
    copies.follow(&now);
    for cause in [Cause::Resignation, Cause::Crash] {
        let (next, _) = take_down(&mut real, &now, cause).unwrap();
        let before = copies.said.len();
        copies.follow(&next);
        if cause == Cause::Crash {
            let begins = copies.position(next.leader, &format!("leads epoch={}", next.epoch));
            let stops =
                copies.said[before..begins].iter().any(|said| *said == (now.leader, "stops".to_owned()));
            assert!(stops, "two lead at a time: {:?}", copies.said);
        }
        bring_back(&mut real, now.leader, &[], &next).unwrap();
        now = next;
    }
    copies.check();
}

/// Without a validity a broken stream says that the copy no longer leads, and so does silence.
fn classic(program: &[&str]) {
    let (mut real, now) = started(3, &NEVER);
    let mut copies = Copies::beside(&real, program);
    copies.follow(&now);
    let (next, _) = take_down(&mut real, &now, Cause::Crash).unwrap();
    copies.follow(&next);
    bring_back(&mut real, now.leader, &[], &next).unwrap();
    // It goes on only after its copy has stopped: silence alone has told the copy.
    let others: Vec<usize> = (0..3).filter(|place| *place != next.leader).collect();
    real.signal(next.leader, Signal::STOP);
    let last = real.agree_among(&others, next.epoch, PATIENCE).unwrap();
    copies.follow(&last);
    real.signal(next.leader, Signal::CONT);
    // A copy that stops early has the process go on before it has missed a lease: as the highest it leads on.
    let settled = real.agree(last.epoch - 1, PATIENCE).unwrap();
    if settled.epoch != last.epoch {
        copies.follow(&settled);
    }
    copies.check();
}

fn both(program: &[&str]) {
    majority(program);
    classic(program);
}

#[test]
#[ignore = "needs Python"]
fn python() {
    needs("python3");
    both(&["python3", example("watch.py").to_str().unwrap()]);
}

#[test]
#[ignore = "needs Go"]
fn go() {
    needs("go");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("watch");
    compile(Command::new("go").arg("build").arg("-o").arg(&program).arg(example("watch.go")));
    both(&[program.to_str().unwrap()]);
}

#[test]
#[ignore = "needs Node"]
fn node() {
    needs("node");
    both(&["node", example("watch.mjs").to_str().unwrap()]);
}

#[test]
#[ignore = "needs a JDK"]
fn java() {
    needs("javac");
    needs("java");
    let folder = tempfile::tempdir().unwrap();
    compile(Command::new("javac").arg("-d").arg(folder.path()).arg(example("Watch.java")));
    both(&["java", "-cp", folder.path().to_str().unwrap(), "Watch"]);
}

#[test]
#[ignore = "needs curl and jq"]
fn shell() {
    needs("curl");
    needs("jq");
    both(&["sh", example("watch.sh").to_str().unwrap()]);
}
