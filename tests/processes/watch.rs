//! `/watch` of real processes: what their clients see of an election.

use crate::harness::{Real, started, voters_started};
use crate::rounds::{Cause, PATIENCE, take_down};
use crate::usage::Usage;
use crate::wait::within;
use crate::watch_client::Client;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};

const NEVER: [&str; 2] = ["--preempt", "never"];
const CROWD: usize = 300;
/// What the sidecar's own memory may be, with a crowd that watches.
const ANONYMOUS_KIB_MAX: u64 = 8 * 1024;

fn follow(real: &Real, place: usize) -> Client {
    Client::follows(SocketAddr::from((Ipv4Addr::LOCALHOST, real.ports(place).http)), "/watch", "")
}

/// Reads on until a state is of this kind. All versions differ, and their numbers follow one another.
fn read_until(client: &mut Client, last: &mut Value, what: impl Fn(&Value) -> bool) {
    let number = |state: &Value| -> u64 {
        let version = state["version"].as_str().unwrap();
        version.rsplit('-').next().unwrap().parse().unwrap()
    };
    while !what(last) {
        let (_, next) = client.event();
        assert_eq!(number(&next), number(last) + 1, "{next}");
        *last = next;
    }
}

#[test]
fn each_change_of_an_election_is_told() {
    let (mut real, now) = voters_started(3, &NEVER);
    let mut clients: Vec<(Client, Value)> = (0..3)
        .map(|place| {
            let mut client = follow(&real, place);
            let first = client.event().1;
            (client, first)
        })
        .collect();
    let (next, _) = take_down(&mut real, &now, Cause::Resignation).unwrap();
    let name = real.name(next.leader);
    for (place, (client, last)) in clients.iter_mut().enumerate() {
        if place == now.leader {
            assert_eq!(last["is_leader"], json!(true));
            read_until(client, last, |state| state["is_leader"] == json!(false));
            assert!(client.ended(), "the stream of a process that has ended goes on");
        } else {
            read_until(client, last, |state| state["leader"]["name"] == json!(name));
            assert_eq!(last["is_leader"], json!(place == next.leader));
        }
    }
}

#[test]
fn a_crowd_that_watches_is_told_and_costs_no_probe() {
    let crowd = CROWD.to_string();
    let (mut real, now) = started(2, &[&NEVER[..], &["--watchers-max", &crowd]].concat());
    let place = 1 - now.leader;
    let mut clients: Vec<Client> = (0..CROWD).map(|_| follow(&real, place)).collect();
    let mut states: Vec<Value> = clients.iter_mut().map(|client| client.event().1).collect();
    assert_eq!(real.metric(place, "bellwether_watchers"), Some(CROWD as f64));
    for _ in 0..100 {
        assert_eq!(real.answer(place, "/healthz").0, 200);
    }
    take_down(&mut real, &now, Cause::Crash).unwrap();
    for (client, state) in clients.iter_mut().zip(&mut states) {
        read_until(client, state, |state| state["is_leader"] == json!(true));
    }
    let versions: BTreeSet<&str> = states.iter().map(|state| state["version"].as_str().unwrap()).collect();
    assert_eq!(versions.len(), 1, "{versions:?}");
    let memory = Usage::of(real.pid(place).unwrap()).unwrap().anonymous_kib;
    assert!(memory <= ANONYMOUS_KIB_MAX, "{memory} KiB; {ANONYMOUS_KIB_MAX} are allowed");
    drop(clients);
    let left = crate::wait::within(crate::rounds::PATIENCE, || {
        (real.metric(place, "bellwether_watchers") == Some(0.0)).then_some(())
    });
    assert!(left.is_some(), "places are not free again");
}

/// What a process says of members, and of the lease in use.
fn members(real: &Real, place: usize) -> Value {
    let (_, body) = real.get(place, "/members").unwrap();
    serde_json::from_str(&body).unwrap()
}

/// The lease in use at a process, in milliseconds.
fn lease_in_use(real: &Real, place: usize) -> u64 {
    members(real, place)["lease_in_use_ms"].as_u64().unwrap_or(0)
}

/// Also under the next leader, whose application has watched before.
#[test]
fn leases_are_long_enough_for_an_application_that_acts_on_validities() {
    let (mut real, now) = voters_started(3, &NEVER);
    within(PATIENCE, || (lease_in_use(&real, now.leader) < 900).then_some(())).unwrap();
    let path = "/watch?every=200ms&valid_for=600ms";
    let follow = |place| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, real.ports(place).http));
        let mut client = Client::follows(address, path, "");
        // It reads as long as its sidecar lives, or this test.
        std::thread::spawn(move || while client.next_event().is_some() {});
    };
    (0..3).for_each(follow);
    within(PATIENCE, || (lease_in_use(&real, now.leader) >= 900).then_some(())).unwrap();
    assert_eq!(members(&real, now.leader)["lease_reason"], "application");
    assert_eq!(members(&real, (now.leader + 1) % 3)["lease_reason"], Value::Null, "a follower");
    let (next, _) = take_down(&mut real, &now, Cause::Resignation).unwrap();
    let first = within(PATIENCE, || Some(lease_in_use(&real, next.leader)).filter(|ms| *ms > 0));
    assert!(first >= Some(900), "{first:?}");
}
