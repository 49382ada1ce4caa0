//! `bellwether demo`, run as a program: what it exits with, and that it leaves nothing behind.

use crate::harness::{binary, processes};
use crate::rounds::PATIENCE;
use crate::wait::within;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
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
