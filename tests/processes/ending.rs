//! SIGTERM: exit code 0 within a second, whatever the process is in the middle of.

use crate::harness::{binary, processes, started};
use crate::rounds::{PATIENCE, RESIGNATION_MAX};
use crate::wait::within;
use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Instant;

/// How often a process that is cut short is woken before it has ended: a few threads, one after the other.
const LATE_WAKINGS: u32 = 10;

#[test]
fn alone_it_ends_at_once() {
    let (mut real, now) = started(1, &["--stable-margin", "0ms"]);
    real.signal(now.leader, Signal::TERM);
    assert_eq!(real.wait(0, RESIGNATION_MAX).unwrap().code(), Some(0));
    real.logged(0, &["told to stop, and no member can succeed it"]);
}

#[test]
fn while_it_asks_its_peers_it_ends_at_once() {
    let mut real = processes(3, &["--expect", "3"]);
    real.start(0, &[]).unwrap();
    real.logged(0, &["this process asks its peers for the leader"]);
    real.signal(0, Signal::TERM);
    assert_eq!(real.wait(0, RESIGNATION_MAX).unwrap().code(), Some(0));
}

/// Before it watches for signals, the kernel ends it, as any program. After that its exit code is 0, however
/// far it has come with its start.
#[test]
fn at_any_moment_of_its_start_it_ends_at_once() {
    let mut real = processes(1, &[]);
    let (mut orderly, mut wait_ms) = (0, 0);
    // On a slow machine it watches for signals later.
    while wait_ms < 60 || orderly == 0 && wait_ms < 1_000 {
        real.start(0, &[]).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait_ms));
        real.signal(0, Signal::TERM);
        let status = real.wait(0, RESIGNATION_MAX).unwrap();
        assert!(status.code() == Some(0) || status.signal() == Some(15), "{status}");
        orderly += u32::from(status.code() == Some(0));
        wait_ms += 2;
    }
    assert!(orderly > 0, "none of them came as far as watching for signals");
}

/// The others are there, but nothing that is sent to them has an effect: first before any process has
/// noticed, then after.
#[test]
fn cut_off_from_all_others_it_ends_within_its_second() {
    let (mut real, now) = started(3, &[]);
    let others: Vec<usize> = (0..3).filter(|place| *place != now.leader).collect();
    for place in &others {
        real.signal(*place, Signal::STOP);
    }
    real.signal(now.leader, Signal::TERM);
    assert_eq!(real.wait(now.leader, RESIGNATION_MAX).unwrap().code(), Some(0));
    for place in &others {
        real.signal(*place, Signal::CONT);
    }

    let next = real.agree(now.epoch, PATIENCE).unwrap();
    let follower = others.into_iter().find(|place| *place != next.leader).unwrap();
    real.signal(next.leader, Signal::STOP);
    real.logged(follower, &["the leader is lost", "reason=silence"]);
    real.signal(follower, Signal::TERM);
    assert_eq!(real.wait(follower, RESIGNATION_MAX).unwrap().code(), Some(0));
}

#[test]
fn a_second_signal_ends_a_resignation() {
    // No process answers this resignation: it would take until it is cut short.
    let (mut real, now) = started(3, &["--answer-timeout", "5s", "--coordinator-timeout", "6s"]);
    for place in (0..3).filter(|place| *place != now.leader) {
        real.signal(place, Signal::STOP);
    }
    real.signal(now.leader, Signal::TERM);
    real.logged(now.leader, &["told to stop, and handing over"]);
    real.signal(now.leader, Signal::TERM);
    assert_eq!(real.wait(now.leader, RESIGNATION_MAX).unwrap().code(), Some(0));
    real.logged(now.leader, &["asked a second time to stop"]);
}

#[test]
fn a_resignation_that_takes_too_long_is_cut_short() {
    let (mut real, now) = started(2, &["--answer-timeout", "5s", "--coordinator-timeout", "6s"]);
    real.signal(1 - now.leader, Signal::STOP);
    let began = Instant::now();
    real.signal(now.leader, Signal::TERM);
    // It is cut short after nine tenths of its second. How late a busy machine wakes it, this thread shows.
    let cut_short = RESIGNATION_MAX * 9 / 10;
    let woken = std::thread::spawn(move || {
        std::thread::sleep(cut_short);
        began.elapsed() - cut_short
    });
    assert_eq!(real.wait(now.leader, PATIENCE).unwrap().code(), Some(0));
    let (took, lateness) = (began.elapsed(), woken.join().unwrap());
    assert!(
        took <= RESIGNATION_MAX + LATE_WAKINGS * lateness,
        "it took {took:?}, on a machine late by {lateness:?}"
    );
    real.logged(now.leader, &["the resignation took too long"]);
}

#[test]
fn an_interrupt_at_the_terminal_does_the_same() {
    let (mut real, now) = started(1, &["--stable-margin", "0ms"]);
    real.signal(now.leader, Signal::INT);
    assert_eq!(real.wait(0, RESIGNATION_MAX).unwrap().code(), Some(0));
    real.logged(0, &["stopping:", "signal=SIGINT"]);
}

#[test]
#[ignore = "needs root: makes a PID namespace"]
fn as_the_first_process_of_a_container_it_hears_sigterm() {
    // Only for its ports, which stay reserved.
    let real = processes(1, &[]);
    let http = real.ports(0).http;
    let mut unshare = Command::new("unshare")
        // A variable of the tests is none of a sidecar's, which refuses it.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
        .arg(binary())
        .args(["run", "--stable-margin", "0ms", "--listen", &format!("127.0.0.1:{}", real.ports(0).peer)])
        .args(["--http", &format!("127.0.0.1:{http}")])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    within(PATIENCE, || TcpStream::connect(("127.0.0.1", http)).ok()).unwrap();
    let id = unshare.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let child = Pid::from_raw(children.trim().parse().unwrap()).unwrap();
    kill_process(child, Signal::TERM).unwrap();
    let status = within(RESIGNATION_MAX, || unshare.try_wait().unwrap());
    let _ = unshare.kill();
    assert_eq!(status.and_then(|s| s.code()), Some(0));
}
