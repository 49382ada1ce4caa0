//! The discovery against a real name server, dnsmasq, in a network namespace that each test makes for itself.
//!
//! `cargo test --test dns -- --ignored`. What is under test is `examples/resolve.rs`, one process of its own
//! inside the namespace: its resolver reads the namespace's `/etc/resolv.conf`, as it would read a pod's.
#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests are tests.

#[path = "dns/lab.rs"]
mod lab;
mod namespace;

use lab::{Dnsmasq, Namespace, Resolve, example, static_example};
use std::time::{Duration, Instant};

/// The headless Service's name, as Kubernetes would call it.
const SERVICE: &str = "app.ns.svc.cluster.local";
/// What a pod's resolv.conf has, but for timeouts short enough for a test (the default is two times 5 s).
const RESOLV_CONF: &str = "nameserver 198.18.0.53\noptions timeout:1 attempts:1\n";
/// Between two look-ups.
const REFRESH: &str = "100ms";

/// Pods 1 to n of the Service, as lines of a hosts file.
fn pods(count: u8) -> String {
    (1..=count).map(|n| format!("198.18.1.{n} {SERVICE}\n")).collect()
}

/// What the discovery prints for them, less "complete" or "partial".
fn found(count: u8) -> String {
    let addresses: String = (1..=count).map(|n| format!(" 198.18.1.{n}:4041")).collect();
    format!("found{addresses}")
}

#[test]
#[ignore = "needs root, iproute2 and dnsmasq"]
fn follows_the_name_server_and_tells_empty_from_unknown() {
    let namespace = Namespace::new(RESOLV_CONF);
    let server = Dnsmasq::authority(&namespace, &pods(3));
    let mut resolve = Resolve::start(namespace.run(&example()), &[REFRESH, &format!("{SERVICE}.")]);
    let unknown = format!("unknown {SERVICE}. (A): Temporary failure in name resolution");

    resolve.wait_for(&found(3));
    server.serve(&pods(5));
    resolve.wait_for(&found(5));
    server.serve(&pods(2));
    resolve.wait_for(&found(2));
    server.pause();
    resolve.wait_for(&unknown);
    server.resume();
    resolve.wait_for(&found(2));
    server.serve("");
    resolve.wait_for("empty");
    server.serve(&pods(2));
    resolve.wait_for(&found(2));
    drop(server);
    resolve.wait_for(&unknown);
    let server = Dnsmasq::servfail(&namespace, &pods(4));
    server.wait_for_queries(6);
    drop(server);
    let _server = Dnsmasq::authority(&namespace, &pods(3));
    resolve.wait_for(&found(3));

    // Nothing came between: no failure was ever taken for an answer, not for an empty one either.
    let wanted = [
        found(3),
        found(5),
        found(2),
        unknown.clone(),
        found(2),
        "empty".into(),
        found(2),
        unknown,
        found(3),
    ];
    assert_eq!(resolve.changes(), wanted);
}

#[test]
#[ignore = "needs root, iproute2 and dnsmasq"]
fn merges_both_families_and_survives_the_failure_of_one() {
    let namespace = Namespace::new(RESOLV_CONF);
    let name = format!("{SERVICE}.");
    let both = format!("{}fd00::1 {SERVICE}\nfd00::2 {SERVICE}\n", pods(2));
    let server = Dnsmasq::authority(&namespace, &both);
    let mut resolve = Resolve::start(namespace.run(&example()), &[REFRESH, &name]);
    let merged = format!("{} [fd00::1]:4041 [fd00::2]:4041", found(2));
    resolve.wait_for(&merged);
    assert!(resolve.last().starts_with("found complete "), "{}", resolve.last());
    drop(server);
    // It knows A records only, and no server to ask for the rest: AAAA is refused. What was known of them
    // stays.
    let _server = Dnsmasq::forwarder(&namespace, &pods(1));
    let kept = format!("{} [fd00::1]:4041 [fd00::2]:4041", found(1));
    resolve.wait_for(&kept);
    assert!(resolve.last().starts_with("found partial "), "{}", resolve.last());
}

#[test]
#[ignore = "needs root, iproute2 and dnsmasq"]
fn asks_for_the_name_as_given() {
    let search = "search ns.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n";
    let namespace = Namespace::new(&format!("{RESOLV_CONF}{search}"));
    let service = SERVICE.to_owned();
    let searched = |name: &str| {
        let domains = ["ns.svc.cluster.local", "svc.cluster.local", "cluster.local"];
        let mut names: Vec<String> = domains.iter().map(|domain| format!("{name}.{domain}")).collect();
        names.push(name.to_owned());
        names
    };
    // The name, and the questions for A and AAAA. The search ends at the first name that has such a record,
    // so a question for AAAA goes all the way where there is none.
    for (name, a, aaaa) in [
        (format!("{SERVICE}."), vec![service.clone()], vec![service.clone()]),
        ("app".to_owned(), vec![service.clone()], searched("app")),
        (service.clone(), searched(SERVICE), searched(SERVICE)),
    ] {
        let server = Dnsmasq::authority(&namespace, &pods(3));
        // Once only: the next look-up would be a minute away.
        let mut resolve = Resolve::start(namespace.run(&example()), &["1m", &name]);
        resolve.wait_for(&found(3));
        assert_eq!(server.questions("A"), a, "{name}");
        assert_eq!(server.questions("AAAA"), aaaa, "{name}");
    }
    // "app." is absolute: no search list makes it the Service.
    let server = Dnsmasq::authority(&namespace, &pods(3));
    let mut resolve = Resolve::start(namespace.run(&example()), &["1m", "app."]);
    resolve.wait_for("unknown app. (A): Temporary failure in name resolution");
    assert_eq!(server.questions("A"), ["app"]);
}

#[test]
#[ignore = "needs root, iproute2 and dnsmasq"]
fn a_silent_name_server_holds_nothing_up() {
    // A look-up blocks for a minute here.
    let namespace = Namespace::new("nameserver 198.18.0.53\noptions timeout:30 attempts:2\n");
    let server = Dnsmasq::authority(&namespace, &pods(3));
    server.pause();
    let name = format!("{SERVICE}.");
    let mut resolve = Resolve::start(namespace.run(&example()), &[REFRESH, &name, "198.18.7.7:5000"]);
    resolve.wait_for("found 198.18.7.7:5000");
    let began = Instant::now();
    resolve.stop();
    assert!(began.elapsed() < Duration::from_secs(2), "took {:?}", began.elapsed());
    assert_eq!(resolve.changes(), ["found 198.18.7.7:5000"]);
}

#[test]
#[ignore = "needs root, iproute2 and dnsmasq"]
fn a_static_binary_resolves_in_an_otherwise_empty_image() {
    let namespace = Namespace::new(RESOLV_CONF);
    let _server = Dnsmasq::authority(&namespace, &pods(3));
    let image = tempfile::tempdir().unwrap();
    std::fs::create_dir(image.path().join("etc")).unwrap();
    std::fs::write(image.path().join("etc/resolv.conf"), RESOLV_CONF).unwrap();
    std::fs::write(image.path().join("etc/hosts"), "198.18.5.5 by-hosts\n").unwrap();
    std::fs::copy(static_example(), image.path().join("resolve")).unwrap();
    let mut command = namespace.run("chroot".as_ref());
    command.arg(image.path());
    let name = format!("{SERVICE}.");
    let mut resolve = Resolve::start(command, &["/resolve", REFRESH, &name, "by-hosts:5000"]);
    resolve.wait_for(&format!("{} 198.18.5.5:5000", found(3)));
}
