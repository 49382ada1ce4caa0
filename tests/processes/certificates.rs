//! Voters with certificates, and processes that have another voter's.

use crate::authority::{Authority, Issued, p256, write};
use crate::harness::{Real, voters};
use crate::rounds::{self, Cause, PATIENCE};
use crate::wait::within;
use bellwether::channel::{CertificateFiles, Got, Keys, SanPattern, open};
use bellwether::election::{AnnouncedValues, Incarnation, Peer, Priority, ProcessId};
use bellwether::wire::{self, Frame, Hello, Refusal, SafetyCode};
use rustls::pki_types::UnixTime;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use uuid::Uuid;

/// What a voter's certificate names.
const SAN: &str = "{name}.web.default.svc";

/// The flags of a voter whose files are in this folder.
fn flags(folder: &Path) -> [String; 8] {
    let file = |name| folder.join(name).to_str().unwrap().to_owned();
    let [cert, key, ca, san] = ["--peer-cert", "--peer-key", "--peer-ca", "--peer-san"].map(str::to_owned);
    [cert, file("tls.crt"), key, file("tls.key"), ca, file("ca.crt"), san, SAN.to_owned()]
}

fn issue(authority: &Authority, name: &str) -> Issued {
    authority.issue(&p256(), &[&SAN.replace("{name}", name)], |_| {})
}

fn start(real: &mut Real, place: usize, folder: &Path) {
    let flags = flags(folder);
    real.start(place, &flags.each_ref().map(String::as_str)).unwrap();
}

/// Three voters, each with a certificate of its own.
fn voters_with_certificates(authority: &Authority) -> (Real, Vec<TempDir>) {
    let mut real = voters(3, &["--preempt", "never"]);
    let folders: Vec<TempDir> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    for (place, folder) in folders.iter().enumerate() {
        write(folder.path(), &issue(authority, &real.name(place)), &[authority]);
        start(&mut real, place, folder.path());
    }
    (real, folders)
}

#[test]
fn voters_with_certificates_elect_and_fail_over() {
    let authority = Authority::new();
    let (mut real, folders) = voters_with_certificates(&authority);
    let mut now = real.agree(0, PATIENCE).unwrap();
    for cause in [Cause::Crash, Cause::Resignation] {
        let (next, _) = rounds::take_down(&mut real, &now, cause).unwrap();
        let flags = flags(folders[now.leader].path());
        rounds::bring_back(&mut real, now.leader, &flags.each_ref().map(String::as_str), &next).unwrap();
        now = next;
    }
    for place in 0..3 {
        assert_eq!(real.metric(place, "bellwether_authentications_failed_total"), Some(0.0));
        assert!(real.metric(place, "bellwether_peer_certificate_expiry_timestamp_seconds") > Some(1e9));
    }
}

/// Another authority takes over in three steps, and each voter has another certificate in the second.
#[test]
fn another_authority_takes_over_and_no_leader_changes() {
    let (old, new) = (Authority::new(), Authority::new());
    let (real, folders) = voters_with_certificates(&old);
    let now = real.agree(0, PATIENCE).unwrap();
    let keys = |place| {
        let (_, text) = real.answer(place, "/metrics");
        let series = text.lines().filter(|line| line.starts_with("bellwether_peer_key{"));
        series.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut issued: Vec<Issued> = (0..3).map(|place| issue(&old, &real.name(place))).collect();
    let steps: [(bool, &[&Authority]); 3] = [(false, &[&old, &new]), (true, &[&old, &new]), (true, &[&new])];
    for (signed_anew, trusted) in steps {
        let before = [0, 1, 2].map(keys);
        for (place, folder) in folders.iter().enumerate() {
            if signed_anew {
                issued[place] = issue(&new, &real.name(place));
            }
            write(folder.path(), &issued[place], trusted);
        }
        let read = within(PATIENCE, || (0..3).all(|place| keys(place) != before[place]).then_some(()));
        assert!(read.is_some(), "the new files are not read");
        let renewed = within(PATIENCE, || {
            (0..3).all(|place| real.metric(place, "bellwether_peer_links_former") == Some(0.0)).then_some(())
        });
        assert!(renewed.is_some(), "links stay as they were");
        assert_eq!(real.agree(0, PATIENCE).unwrap().epoch, now.epoch, "the leader changed");
    }
    for place in 0..3 {
        assert_eq!(real.metric(place, "bellwether_authentications_failed_total"), Some(0.0));
    }
}

/// One voter of three is up. A process with a certificate of the same authority says that it is another one.
#[test]
fn no_process_votes_in_a_name_that_its_certificate_does_not_have() {
    let authority = Authority::new();
    let mut real = voters(3, &["--stable-margin", "100ms", "--start-timeout", "1s"]);
    let folders: Vec<TempDir> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    for (place, folder) in folders.iter().enumerate() {
        write(folder.path(), &issue(&authority, &real.name(place)), &[&authority]);
    }
    start(&mut real, 0, folders[0].path());
    let at = SocketAddr::from(([127, 0, 0, 1], real.ports(0).peer));
    assert!(within(PATIENCE, || TcpStream::connect(at).ok()).is_some(), "it does not listen");

    let folder = tempfile::tempdir().unwrap();
    let [cert, key, ca] = write(folder.path(), &issue(&authority, "other"), &[&authority]);
    let san: SanPattern = SAN.parse().unwrap();
    let files = CertificateFiles { cert, key, ca, san, name: "other".to_owned() };
    let keys = Arc::new(Keys::of_certificate(&files, UnixTime::now()).unwrap());
    for place in [1, 2] {
        let hello = Hello {
            version_min: wire::VERSION_MIN,
            version_max: wire::VERSION,
            cluster: real.cluster().to_owned(),
            peer: Peer {
                id: ProcessId(Uuid::from_u128(77)),
                incarnation: Incarnation(1),
                name: real.name(place),
                address: SocketAddr::from(([127, 0, 0, 1], real.ports(place).peer)),
                priority: Priority::MAX,
                revision: String::new(),
            },
            announce: AnnouncedValues::default(),
            safety: SafetyCode::Majority,
            token: 1,
        };
        let stream = TcpStream::connect(at).unwrap();
        let channel = open(stream, &keys, Instant::now() + Duration::from_secs(5)).unwrap();
        channel.send(&wire::encode_hello(&hello).unwrap(), || false).unwrap();
        let mut said = Vec::new();
        while let Ok(Got::Bytes) = channel.receive(&mut said) {}
        let (frame, _) = wire::decode(&said, wire::HELLO_BYTES_MAX).unwrap().unwrap();
        assert!(matches!(frame, Frame::Refuse { why: Refusal::Identity, .. }), "{frame:?}");
    }
    real.logged(0, &["the certificate does not name", "other.web.default.svc"]);
    assert!(!real.answer(0, "/members").1.contains(&real.name(1)), "the impostor became a member");

    // A process with another's certificate does not even start, and the true voter makes the majority.
    let wrong = flags(folders[2].path());
    let words = ["is not this member's", "subject alternative name"];
    real.refuses(1, &wrong.each_ref().map(String::as_str), 2, &words);
    start(&mut real, 1, folders[1].path());
    start(&mut real, 2, folders[2].path());
    real.agree(0, PATIENCE).unwrap();
}
