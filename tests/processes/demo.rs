//! `bellwether demo`, run as a program: what it exits with, and that it leaves nothing behind.

use crate::harness::{binary, processes};
use crate::rounds::PATIENCE;
use crate::wait::within;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A demo under way, with the sidecars that it has named so far.
struct Demo {
    child: Child,
    out: BufReader<ChildStdout>,
    sidecars: Vec<String>,
}

impl Demo {
    /// Starts it and reads the ids of its first sidecars.
    fn start(args: &[&str]) -> Demo {
        let mut child = Command::new(binary())
            .arg("demo")
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut sidecars = Vec::new();
        while sidecars.len() < 3 {
            let mut line = String::new();
            assert!(out.read_line(&mut line).unwrap() > 0, "the demo ended before it had named its sidecars");
            sidecars.extend(pids(&line));
        }
        Demo { child, out, sidecars }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Its exit code, and the rest of what it says.
    fn end(&mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        self.sidecars.extend(pids(&rest));
        (self.child.wait().unwrap().code(), rest)
    }

    fn leaves_nothing_behind(&self) {
        for pid in &self.sidecars {
            let gone = within(PATIENCE, || (!runs(pid)).then_some(()));
            assert!(gone.is_some(), "the sidecar {pid} has outlived its demo");
        }
    }
}

/// The numbers after the word.
fn pids(text: &str) -> Vec<String> {
    let digits = |after: &str| after.chars().take_while(char::is_ascii_digit).collect();
    text.split("pid ").skip(1).map(digits).collect()
}

/// Whether it is still one of ours: the number may be another process's by now. One that has ended, and that
/// its new parent has not reaped yet, has no command line any more.
fn runs(pid: &str) -> bool {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&command).contains("bellwether")
}

#[test]
fn once_it_shows_both_failovers_and_leaves_nothing_behind() {
    let mut demo = Demo::start(&["--once"]);
    let (code, said) = demo.end();
    assert_eq!(code, Some(0), "{said}");
    for words in ["crash (SIGKILL)", "resignation (SIGTERM)", "without an election"] {
        assert!(said.contains(words), "{said}");
    }
    assert!(demo.sidecars.len() >= 5, "{:?}", demo.sidecars);
    demo.leaves_nothing_behind();
}

#[test]
fn interrupted_or_killed_it_leaves_nothing_behind() {
    for (signal, expected) in [(Signal::INT, Some(0)), (Signal::TERM, Some(0)), (Signal::KILL, None)] {
        let mut demo = Demo::start(&[]);
        demo.signal(signal);
        let (code, said) = demo.end();
        assert_eq!(code, expected, "{signal:?}: {said}");
        demo.leaves_nothing_behind();
    }
}

#[test]
fn a_port_that_is_taken_is_named() {
    let real = processes(1, &[]);
    // Two ports of ours that no other cluster takes; the demo wants six from the first on.
    let port = real.ports(0).peer;
    let _taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let out =
        Command::new(binary()).args(["demo", "--once", "--base-port", &port.to_string()]).output().unwrap();
    let error = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1), "{error}");
    assert!(error.contains(&port.to_string()) && error.contains("--base-port"), "{error}");
}

/// Ends what a terminal has started, whatever becomes of the test.
struct Terminal(Child);

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// The README's three sidecars by hand. Each block is pasted into a shell of its own, with ports that are
/// free here.
#[test]
fn the_three_terminals_of_the_readme_elect_one_leader() {
    let real = processes(3, &[]);
    let readme = include_str!("../../README.md");
    let blocks: Vec<&str> = readme.split("```").filter(|block| block.trim().starts_with("PEERS=")).collect();
    assert_eq!(blocks.len(), 3, "the README has three terminals");
    let here = |text: &str| {
        let mut text = text.replace("target/release/bellwether", binary().to_str().unwrap());
        for place in 0..3 {
            let ports = real.ports(place);
            for (shown, free) in [(5041 + place, ports.peer), (4041 + place, ports.http)] {
                text = text.replace(&format!("127.0.0.1:{shown}"), &format!("127.0.0.1:{free}"));
            }
        }
        text
    };
    let _terminals: Vec<Terminal> = blocks
        .iter()
        .map(|block| {
            let mut shell = Command::new("bash");
            shell.args(["-c", &here(block)]).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
            for (variable, _) in std::env::vars_os() {
                if variable.to_string_lossy().starts_with("BELLWETHER_") {
                    shell.env_remove(variable);
                }
            }
            Terminal(shell.spawn().unwrap())
        })
        .collect();
    let leader = |place| {
        let (status, body) = real.answer(place, "/leader");
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        (status == 200).then(|| body["leader"]["name"].as_str().map(str::to_owned)).flatten()
    };
    let agreed = within(PATIENCE, || {
        let first = leader(0)?;
        (leader(1).as_ref() == Some(&first) && leader(2).as_ref() == Some(&first)).then_some(first)
    });
    let agreed = agreed.expect("the three do not agree");
    assert!(["one", "two", "three"].contains(&agreed.as_str()), "{agreed} leads");
}
