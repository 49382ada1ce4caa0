//! Members that share a secret, and processes that do not.

use crate::harness::{processes, started, voters_started};
use crate::rounds::{self, Cause, PATIENCE};
use crate::wait::within;
use std::path::{Path, PathBuf};

const ONE: &str = "one-secret-of-at-least-32-random-bytes";
const OTHER: &str = "another-secret-of-at-least-32-bytes-too";

fn secret(folder: &Path, name: &str, lines: &[&str]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, lines.join("\n")).unwrap();
    path
}

#[test]
fn members_with_one_secret_elect_and_fail_over_as_without() {
    let folder = tempfile::tempdir().unwrap();
    let file = secret(folder.path(), "secret", &[ONE]);
    let flags = ["--peer-secret-file", file.to_str().unwrap(), "--preempt", "never"];
    for majority in [false, true] {
        let (mut real, mut now) = if majority { voters_started(3, &flags) } else { started(3, &flags) };
        for cause in [Cause::Crash, Cause::Resignation] {
            rounds::round(&mut real, &mut now, cause).unwrap();
        }
        assert_eq!(real.metric(0, "bellwether_authentications_failed_total"), Some(0.0));
    }
}

/// Neither a process with another secret nor one with none joins, learns anything, or disturbs the others.
#[test]
fn a_process_without_the_secret_stays_outside() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (secret(folder.path(), "one", &[ONE]), secret(folder.path(), "other", &[OTHER]));
    for outside in [&[][..], &["--peer-secret-file", other.to_str().unwrap()]] {
        let mut real = processes(3, &["--stable-margin", "200ms", "--start-timeout", "1s"]);
        let inside = ["--peer-secret-file", one.to_str().unwrap()];
        real.start(0, &inside).unwrap();
        real.start(1, &inside).unwrap();
        let failed = "bellwether_authentications_failed_total";
        real.start(2, &[outside, &["--priority", "1000"]].concat()).unwrap();
        // A process that has just been started may not answer yet.
        let said = |place, path| real.get(place, path).map(|(_, body)| body).unwrap_or_default();
        let zero = format!("{failed} 0\n");
        let counted = within(PATIENCE, || {
            let text = said(0, "/metrics");
            (text.contains(failed) && !text.contains(&zero)).then_some(())
        });
        assert!(counted.is_some(), "{outside:?}: no process tells of it");
        let members = |place| said(place, "/members");
        let together = within(PATIENCE, || {
            let known = [0, 1].map(members);
            known
                .iter()
                .all(|list| list.contains(&real.name(0)) && list.contains(&real.name(1)))
                .then_some(known)
        });
        let known = together.unwrap_or_else(|| panic!("{outside:?}: the members do not find each other"));
        assert!(known.iter().all(|list| !list.contains(&real.name(2))), "{outside:?}: {known:?}");
        if outside.is_empty() {
            real.logged(2, &["peer_refused", "the peer speaks TLS", "the same --peer-secret-file"]);
        }
        if !outside.is_empty() {
            let why = || said(2, "/readyz").contains("no link with 127.0.0.1:").then_some(());
            assert!(
                within(PATIENCE, why).is_some(),
                "its readiness does not name the cause: {}",
                said(2, "/readyz")
            );
        }
        let alone = members(2);
        assert!(!alone.contains(&real.name(0)) && !alone.contains(&real.name(1)), "{outside:?}: {alone}");
    }
}

/// The file changes under running processes, in three steps. Each sees each step by the fingerprints.
#[test]
fn a_rotation_changes_no_leader() {
    let folder = tempfile::tempdir().unwrap();
    let file = secret(folder.path(), "secret", &[ONE]);
    let (mut real, now) = started(3, &["--peer-secret-file", file.to_str().unwrap()]);
    let keys = |real: &crate::harness::Real, place| {
        let (_, text) = real.answer(place, "/metrics");
        let series = text.lines().filter(|line| line.starts_with("bellwether_peer_key{"));
        series.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut before = keys(&real, 0);
    assert_eq!(before.len(), 1);
    for (step, accepted) in [(&[ONE, OTHER][..], 2), (&[OTHER, ONE], 2), (&[OTHER], 1)] {
        secret(folder.path(), "secret", step);
        for place in 0..3 {
            let seen = within(PATIENCE, || {
                let seen = keys(&real, place);
                (seen.len() == accepted && seen != before).then_some(seen)
            });
            assert!(seen.is_some(), "process {place} does not see {accepted} keys");
        }
        before = keys(&real, 0);
        let renewed = within(PATIENCE, || {
            (0..3).all(|place| real.metric(place, "bellwether_peer_links_former") == Some(0.0)).then_some(())
        });
        assert!(renewed.is_some(), "links stay as they were");
        assert_eq!(real.agree(0, PATIENCE).unwrap().epoch, now.epoch, "the leader changed");
    }
    // A file of no use changes nothing, and each process says so beside the keys that still count.
    secret(folder.path(), "secret", &["short"]);
    for place in 0..3 {
        let named = within(PATIENCE, || {
            let (_, text) = real.answer(place, "/members");
            text.contains("\"unusable\":").then_some(text)
        });
        assert!(named.is_some_and(|text| text.contains("line 1 of the file")), "process {place}");
        assert_eq!(keys(&real, place).len(), 1);
    }
    secret(folder.path(), "secret", &[OTHER]);
    // And the last secret is the one that counts for a newcomer.
    let follower = (now.leader + 1) % 3;
    real.kill(follower);
    real.end(follower);
    real.start(follower, &[]).unwrap();
    assert_eq!(real.agree(0, PATIENCE).unwrap().epoch, now.epoch);
}

#[test]
fn a_secret_that_cannot_be_used_ends_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let short = secret(folder.path(), "short", &["too short"]);
    let missing = folder.path().join("missing");
    for (file, words) in [
        (&short, ["line 1 of the file", "head -c 32 /dev/urandom"]),
        (&missing, ["cannot be read", "missing"]),
    ] {
        let mut real = processes(1, &[]);
        real.refuses(0, &["--peer-secret-file", file.to_str().unwrap()], 2, &words);
    }
}
