//! Operators: `bellwether resign`, `transfer`, `cordon` and `uncordon`, and what happens to callers that may
//! not ask.

use crate::harness::{Real, binary, processes, started, voters_started};
use crate::rounds::{PATIENCE, RESIGNATION_MAX};
use crate::wait::within;
use bellwether::demo::process_cluster::Agreement;
use rustix::process::{Signal, geteuid};
use serde_json::Value;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// Leaders change only as operators say.
const NEVER: [&str; 2] = ["--preempt", "never"];

/// What a process in this place is asked, at the default of its socket.
fn operate(real: &Real, place: usize, args: &[&str]) -> Output {
    let http = format!("127.0.0.1:{}", real.ports(place).http);
    command(args).env("BELLWETHER_HTTP", http).output().unwrap()
}

fn operate_at(socket: &str, args: &[&str]) -> Output {
    command(args).args(["--control-socket", socket]).output().unwrap()
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(args).stdin(Stdio::null()).env_remove("BELLWETHER_CONTROL_SOCKET");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What it prints, when it is done.
fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Asks until it is done: members hear with the next message of a process that it is a candidate again.
fn until_done(real: &Real, place: usize, args: &[&str]) -> String {
    let output =
        within(PATIENCE, || Some(operate(real, place, args)).filter(|output| output.status.success()));
    done(&output.unwrap_or_else(|| operate(real, place, args)))
}

/// It ends with this code, and says why in these words.
fn fails(output: &Output, code: i32, words: &[&str]) {
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(code), ""), "{error}");
    assert!(error.starts_with("error: "), "{error}");
    for word in words {
        assert!(error.contains(word), "no {word:?} in {error}");
    }
}

/// The leader on which all agree, and its epoch.
fn leads(real: &Real) -> (usize, u64) {
    let now = real.agree(0, PATIENCE).unwrap();
    (now.leader, now.epoch)
}

/// A follower of this leader.
fn follower(real: &Real, now: &Agreement) -> usize {
    (0..real.n()).find(|place| *place != now.leader).unwrap()
}

#[test]
fn a_leader_resigns_and_does_not_stand_for_a_while() {
    let (mut real, first) = started(3, &NEVER);
    let table = done(&operate(&real, first.leader, &["resign", "--for", "60s"]));
    let second = real.agree(first.epoch, PATIENCE).unwrap();
    assert_ne!(second.leader, first.leader);
    for words in [&real.name(second.leader), "does not stand for 60s; a restart forgets that", "ASIDE"] {
        assert!(table.contains(words), "no {words} in {table}");
    }
    let me = format!("uid={}", geteuid().as_raw());
    real.logged(first.leader, &["an operator asks: resign", "for_ms=60000.0", &me, "pid="]);
    real.logged(first.leader, &["resign is done", &me]);
    // Of the two that are left, it may not lead.
    real.kill(second.leader);
    real.wait(second.leader, PATIENCE).unwrap();
    let third = real.agree(second.epoch, PATIENCE).unwrap();
    assert!(third.leader != first.leader && third.leader != second.leader);
    fails(
        &operate(&real, third.leader, &["resign"]),
        3,
        &["no process can take over", &real.name(first.leader)],
    );
    // A restart forgets it.
    real.signal(first.leader, Signal::TERM);
    real.wait(first.leader, RESIGNATION_MAX).unwrap();
    real.start(first.leader, &[]).unwrap();
    real.agree(0, PATIENCE).unwrap();
    until_done(&real, third.leader, &["resign"]);
    assert_eq!(real.agree(third.epoch, PATIENCE).unwrap().leader, first.leader);
}

#[test]
fn leadership_is_transferred_to_the_member_that_is_named() {
    for (real, now) in [started(3, &NEVER), voters_started(3, &NEVER)] {
        let mut now = now;
        for _ in 0..4 {
            let to = follower(&real, &now);
            let answer = until_done(&real, now.leader, &["transfer", "--to", &real.name(to), "-o", "json"]);
            let next = real.agree(now.epoch, PATIENCE).unwrap();
            assert_eq!(next.leader, to);
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["leader"]["name"], real.name(to));
            assert_eq!(
                (&answer["done"], &answer["reason"], &answer["epoch"]),
                (&true.into(), &Value::Null, &next.epoch.into())
            );
            done(&operate(&real, now.leader, &["uncordon"]));
            now = next;
        }
        let (leader, other) = (real.name(now.leader), real.name(follower(&real, &now)));
        fails(
            &operate(&real, now.leader, &["transfer", "--to", "web-9"]),
            3,
            &["no member has the name web-9", &other],
        );
        fails(&operate(&real, now.leader, &["transfer", "--to", &leader]), 3, &["leads already"]);
        let from_another = operate(&real, follower(&real, &now), &["transfer", "--to", &other]);
        fails(&from_another, 3, &["does not lead", &leader, "run the command there"]);
        assert_eq!(leads(&real), (now.leader, now.epoch), "what is refused changes nothing");
    }
}

#[test]
fn a_cordoned_process_runs_on_and_does_not_lead() {
    for (mut real, first) in [started(2, &NEVER), voters_started(3, &NEVER)] {
        let cordoned = first.leader;
        let answer = done(&operate(&real, cordoned, &["cordon", "--output", "json"]));
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((&answer["operation"], &answer["cordoned"]), (&"cordon".into(), &true.into()));
        let second = real.agree(first.epoch, PATIENCE).unwrap();
        assert_ne!(second.leader, cordoned);
        let candidate = |place| real.metric(place, "bellwether_candidate");
        assert_eq!((candidate(cordoned), candidate(second.leader)), (Some(0.0), Some(1.0)));
        let says = |place| done(&operate(&real, place, &["status"])).contains("\ncordoned: this process ");
        assert_eq!((says(cordoned), says(second.leader)), (true, false));
        let back = ["transfer", "--to", &real.name(cordoned), "-o", "json"];
        let refused = operate(&real, second.leader, &back);
        assert_eq!((refused.status.code(), text(&refused.stderr).as_str()), (Some(3), ""));
        let refused: Value = serde_json::from_slice(&refused.stdout).unwrap();
        assert_eq!((&refused["done"], &refused["reason"]), (&false.into(), &"unfit_successor".into()));
        assert!(refused["message"].as_str().unwrap().contains("cordoned"), "{refused}");
        done(&operate(&real, cordoned, &["uncordon"]));
        until_done(&real, second.leader, &back);
        let third = real.agree(second.epoch, PATIENCE).unwrap();
        assert_eq!(third.leader, cordoned);
        // A restart forgets it, too.
        done(&operate(&real, second.leader, &["uncordon"]));
        until_done(&real, cordoned, &["cordon"]);
        let fourth = real.agree(third.epoch, PATIENCE).unwrap();
        real.signal(cordoned, Signal::TERM);
        real.wait(cordoned, RESIGNATION_MAX).unwrap();
        real.start(cordoned, &[]).unwrap();
        real.agree(0, PATIENCE).unwrap();
        until_done(&real, fourth.leader, &back);
        assert_eq!(real.agree(fourth.epoch, PATIENCE).unwrap().leader, cordoned);
    }
}

#[test]
fn a_leader_without_a_successor_leads_on() {
    let (real, now) = started(1, &["--stable-margin", "0ms"]);
    for args in [&["resign"][..], &["cordon"]] {
        fails(
            &operate(&real, 0, args),
            3,
            &["no process can take over", "knows no other member", "nothing has changed"],
        );
    }
    fails(&operate(&real, 0, &["transfer", "--to", "web-1"]), 3, &["knows no other member"]);
    assert_eq!(leads(&real), (now.leader, now.epoch));
    let (real, now) = voters_started(3, &NEVER);
    for place in (0..3).filter(|place| *place != now.leader) {
        real.signal(place, Signal::STOP);
    }
    let begun = Instant::now();
    let refused = operate(&real, now.leader, &["resign", "--timeout", "300ms"]);
    fails(&refused, 3, &["could not win", "leads on"]);
    assert!(begun.elapsed() < PATIENCE / 2, "{:?}", begun.elapsed());
}

/// Nothing that is asked over HTTP has an effect, whatever Host or Origin it names.
#[test]
fn http_is_no_way_in() {
    let (real, now) = started(2, &NEVER);
    let http = format!("http://127.0.0.1:{}", real.ports(now.leader).http);
    let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
    for path in ["/resign", "/transfer?to=web-1", "/cordon", "/uncordon", "/leader"] {
        let reply = agent.post(format!("{http}{path}")).header("Host", "evil.example").send_empty().unwrap();
        assert!([404, 405].contains(&reply.status().as_u16()), "{path}: {}", reply.status());
    }
    assert_eq!(leads(&real), (now.leader, now.epoch));
    let place = now.leader;
    assert!(!real.log(place).contains("an operator asks"));
}

#[test]
fn where_no_process_listens_the_command_says_what_it_tried() {
    let real = processes(1, &[]);
    let port = real.ports(0).http;
    let unreached = operate(&real, 0, &["resign"]);
    fails(&unreached, 1, &[&format!("@bellwether-{port}"), "is bellwether running here", "--control-socket"]);
    fails(&operate_at("/nowhere/a.sock", &["cordon"]), 1, &["/nowhere/a.sock", "No such file"]);
    fails(&operate_at("none", &["cordon"]), 1, &["none"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("silent.sock");
    let _silent = UnixListener::bind(&path).unwrap();
    let waits = operate_at(path.to_str().unwrap(), &["resign", "--timeout", "1ms"]);
    fails(&waits, 1, &["has not answered", "bellwether status"]);
}

#[test]
fn a_path_is_made_replaced_and_removed() {
    let mut real = processes(1, &["--stable-margin", "0ms"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let flags = ["--control-socket", path.to_str().unwrap()];
    let answers = |socket: &Path| {
        let answered = || operate_at(socket.to_str().unwrap(), &["uncordon"]).status.success().then_some(());
        within(PATIENCE, answered).unwrap();
    };
    real.start(0, &flags).unwrap();
    answers(&path);
    fails(&operate(&real, 0, &["uncordon"]), 1, &["no process is reached"]);
    real.kill(0);
    real.wait(0, PATIENCE).unwrap();
    assert!(path.exists(), "a killed process removes nothing");
    real.start(0, &flags).unwrap();
    answers(&path);
    real.signal(0, Signal::TERM);
    real.wait(0, RESIGNATION_MAX).unwrap();
    assert!(!path.exists());

    // What is another's stays, and the process says so.
    let other = UnixListener::bind(&path).unwrap();
    real.refuses(0, &flags, 2, &["--control-socket", "another process listens"]);
    drop(other);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "kept").unwrap();
    real.refuses(0, &flags, 2, &["--control-socket", "a file, and no socket"]);
    assert_eq!(std::fs::read(&path).unwrap(), b"kept");
    real.refuses(0, &["--control-socket", "/nowhere/a.sock"], 2, &["--control-socket", "/nowhere/a.sock"]);
}

/// Another container of the pod may take the name first. That must not keep the sidecar from its start.
#[test]
fn a_default_that_is_taken_keeps_no_process_from_its_start() {
    let mut real = processes(1, &["--stable-margin", "0ms"]);
    let name = format!("bellwether-{}", real.ports(0).http);
    let _squatter = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    real.start(0, &[]).unwrap();
    real.agree(0, PATIENCE).unwrap();
    real.logged(0, &["no operator reaches this process", &name]);
    let at_it = ["--control-socket", &format!("@{name}")];
    real.signal(0, Signal::TERM);
    real.wait(0, RESIGNATION_MAX).unwrap();
    real.refuses(0, &at_it, 2, &["another process listens", &name]);
}

#[test]
fn callers_that_say_nothing_hold_no_place_for_long() {
    let (real, now) = started(2, &NEVER);
    let name = format!("bellwether-{}", real.ports(now.leader).http);
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let silent: Vec<UnixStream> = (0..32).map(|_| UnixStream::connect_addr(&address).unwrap()).collect();
    fails(&operate(&real, now.leader, &["resign"]), 3, &["ask again"]);
    let resigned = || operate(&real, now.leader, &["resign"]).status.success().then_some(());
    within(PATIENCE, resigned).unwrap();
    assert_ne!(real.agree(now.epoch, PATIENCE).unwrap().leader, now.leader);
    drop(silent);
}

#[test]
fn other_users_may_not_ask() {
    if !geteuid().is_root() {
        eprintln!("SKIPPED: other_users_may_not_ask needs root, to ask as another user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (foreign, path) = (65_534, folder.path().join("control.sock"));
    // The program may be where other users see nothing.
    let copy = folder.path().join("bellwether");
    std::fs::copy(binary(), &copy).unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let ask = |socket: &str, uid: u32| {
        let mut command = Command::new(&copy);
        command
            .args(["resign", "--control-socket", socket])
            .uid(uid)
            .gid(uid)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let (mut real, now) = started(2, &NEVER);
    let name = format!("@bellwether-{}", real.ports(now.leader).http);
    fails(&ask(&name, foreign), 3, &["only root and the user of the sidecar"]);
    real.logged(now.leader, &["a process of another user is refused", &format!("uid={foreign}")]);
    assert_eq!(leads(&real), (now.leader, now.epoch));
    done(&ask(&name, 0));

    real.signal(0, Signal::TERM);
    real.wait(0, RESIGNATION_MAX).unwrap();
    real.start(0, &["--control-socket", path.to_str().unwrap()]).unwrap();
    within(PATIENCE, || path.exists().then_some(())).unwrap();
    let denied = within(PATIENCE, || {
        let output = ask(path.to_str().unwrap(), foreign);
        text(&output.stderr).contains("Permission denied").then_some(output)
    });
    fails(&denied.unwrap(), 1, &["permission denied", "only root and the user of the sidecar"]);

    // A process of another user may have taken the name: it is not asked, but by root.
    let port = processes(1, &[]).ports(0).http;
    let mut other = Command::new(&copy)
        .args(["run", "--listen", "127.0.0.1:0", "--http", &format!("127.0.0.1:{port}")])
        .uid(foreign)
        .gid(foreign)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let name = format!("bellwether-{port}");
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let listens = within(PATIENCE, || UnixStream::connect_addr(&address).ok());
    let (by_another, by_root) = (ask(&format!("@{name}"), foreign - 1), ask(&format!("@{name}"), 0));
    let _ = other.kill();
    other.wait().unwrap();
    assert!(listens.is_some());
    fails(&by_another, 1, &["a process of another user (uid 65534) listens there"]);
    fails(&by_root, 3, &["does not lead"]);
}
