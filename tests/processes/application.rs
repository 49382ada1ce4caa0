//! Candidacy that depends on the application: its probe, its word (`/alive`), and its lifeline.

use crate::harness::{Real, processes, voters};
use crate::rounds::PATIENCE;
use crate::wait::within;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;

/// An application that answers each request with the status of the moment.
struct App {
    status: Arc<AtomicU16>,
    url: String,
}

impl App {
    fn answering(status: u16) -> App {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}/healthz", listener.local_addr().unwrap());
        let status = Arc::new(AtomicU16::new(status));
        let answers = Arc::clone(&status);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 1024]);
                let status = answers.load(Ordering::Relaxed);
                let _ = write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
            }
        });
        App { status, url }
    }

    fn is(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }
}

fn leads(real: &Real, place: usize) -> bool {
    real.get(place, "/is-leader").is_ok_and(|(status, _)| status == 200)
}

/// The only process that leads, if there is one.
fn leader(real: &Real, n: usize) -> Option<usize> {
    let leaders: Vec<usize> = (0..n).filter(|place| leads(real, *place)).collect();
    if let [one] = leaders[..] { Some(one) } else { None }
}

fn members(real: &Real, place: usize) -> Value {
    serde_json::from_str(&real.answer(place, "/members").1).unwrap()
}

fn post(real: &Real, place: usize, target: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, real.ports(place).http)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "POST {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    (stream, String::from_utf8(head).unwrap())
}

fn lifeline(real: &Real, place: usize) -> TcpStream {
    let (stream, head) = post(real, place, "/lifeline");
    assert!(head.starts_with("HTTP/1.1 200 ") && !head.contains("Content-Length"), "{head}");
    stream
}

/// A cluster of three, in clear and with votes.
fn clusters(flags: &[&str]) -> [Real; 2] {
    [processes(3, flags), voters(3, flags)]
}

#[test]
fn leadership_goes_where_the_application_is_healthy() {
    for mut real in clusters(&["--app-health-interval", "50ms", "--app-health-failures", "2"]) {
        let apps = [500, 200, 500].map(App::answering);
        for (place, app) in apps.iter().enumerate() {
            real.start(place, &["--app-health", &app.url]).unwrap();
        }
        let only = |place| within(PATIENCE, || leader(&real, 3).filter(|leader| *leader == place));
        assert!(only(1).is_some(), "it is the only healthy one");
        assert_eq!(members(&real, 0)["unhealthy"], true);
        apps[2].is(302);
        let healthy = || (members(&real, 2)["unhealthy"] != true).then_some(());
        assert!(within(PATIENCE, healthy).is_some(), "a redirect is an answer");
        apps[1].is(404);
        assert!(only(2).is_some(), "the healthy one takes over");
        // No member is left that is healthy: the leader stays.
        apps[2].is(503);
        assert!(within(PATIENCE, || (members(&real, 2)["unhealthy"] == true).then_some(())).is_some());
        assert!(leads(&real, 2));
        apps[0].is(200);
        assert!(only(0).is_some(), "it hands over once there is one");
        real.logged(2, &["application_unhealthy"]);
        real.logged(2, &["application_probe", "status 503"]);
    }
}

#[test]
fn where_none_is_healthy_none_leads_if_the_operator_says_so() {
    let mut real = voters(3, &["--app-health-interval", "50ms", "--when-all-sick", "none"]);
    let apps = [200; 3].map(App::answering);
    for (place, app) in apps.iter().enumerate() {
        real.start(place, &["--app-health", &app.url, "--app-health-failures", "1"]).unwrap();
    }
    assert!(within(PATIENCE, || leader(&real, 3)).is_some());
    apps.iter().for_each(|app| app.is(500));
    let none = || (0..3).all(|place| !leads(&real, place) && members(&real, place)["unhealthy"] == true);
    assert!(within(PATIENCE, || none().then_some(())).is_some());
    apps[1].is(200);
    assert!(within(PATIENCE, || leader(&real, 3).filter(|leader| *leader == 1)).is_some());
}

#[test]
fn the_end_of_the_last_lifeline_is_the_application_s_death() {
    for mut real in clusters(&["--preempt", "never"]) {
        (0..3).for_each(|place| real.start(place, &[]).unwrap());
        let first = within(PATIENCE, || leader(&real, 3)).unwrap();
        let (one, two) = (lifeline(&real, first), lifeline(&real, first));
        drop(one);
        let (_, head) = post(&real, first, "/alive?ttl=60s");
        assert!(head.starts_with("HTTP/1.1 204 "), "{head}");
        assert!(leads(&real, first), "another one is open");
        // Only its half of the connection: that is an end too.
        two.shutdown(Shutdown::Write).unwrap();
        let next = within(PATIENCE, || leader(&real, 3).filter(|leader| *leader != first));
        assert!(next.is_some(), "another process leads");
        assert_eq!(members(&real, first)["unhealthy"], true);
        let again = lifeline(&real, first);
        assert!(within(PATIENCE, || (members(&real, first)["unhealthy"] != true).then_some(())).is_some());
        drop(again);
    }
}

#[test]
fn a_required_lifeline_is_waited_for() {
    let mut real = voters(3, &["--require-lifeline"]);
    (0..3).for_each(|place| real.start(place, &[]).unwrap());
    real.logged(1, &["application_awaited"]);
    let unhealthy =
        || (0..3).all(|place| real.get(place, "/members").is_ok_and(|(_, m)| m.contains("unhealthy")));
    assert!(within(PATIENCE, || unhealthy().then_some(())).is_some());
    let line = lifeline(&real, 1);
    assert!(within(PATIENCE, || leader(&real, 3).filter(|leader| *leader == 1)).is_some());
    drop(line);
}

#[test]
fn an_application_that_says_nothing_more_leads_no_more() {
    for mut real in clusters(&["--preempt", "never"]) {
        (0..3).for_each(|place| real.start(place, &[]).unwrap());
        let first = within(PATIENCE, || leader(&real, 3)).unwrap();
        let url = format!("127.0.0.1:{}", real.ports(first).http);
        let said = Command::new(env!("CARGO_BIN_EXE_bellwether"))
            .args(["alive", "--ttl", "300ms", "--url", &url])
            .status();
        assert!(said.unwrap().success());
        assert!(within(PATIENCE, || leader(&real, 3).filter(|leader| *leader != first)).is_some());
    }
}

#[test]
fn there_are_places_for_a_few_lifelines() {
    let mut real = processes(1, &["--stable-margin", "200ms"]);
    real.start(0, &[]).unwrap();
    real.agree(0, PATIENCE).unwrap();
    let mut open: Vec<TcpStream> = (0..16).map(|_| lifeline(&real, 0)).collect();
    let (_, head) = post(&real, 0, "/lifeline");
    assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("Retry-After"), "{head}");
    // What is sent on it is thrown away.
    open[0].write_all(&[b'x'; 100_000]).unwrap();
    drop(open.pop());
    let opens = || post(&real, 0, "/lifeline").1.starts_with("HTTP/1.1 200 ").then_some(());
    assert!(within(PATIENCE, opens).is_some());
}
