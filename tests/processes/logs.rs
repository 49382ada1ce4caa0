//! JSON lines as docs/logs.md promises them.

use crate::harness::started;
use crate::log_table::{check, documented};
use crate::rounds::PATIENCE;
use crate::wait::within;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn json_lines_have_their_documented_keys_through_a_resignation() {
    let (mut real, now) = started(3, &["--log-format", "json", "--log", "trace"]);
    real.signal(now.leader, Signal::TERM);
    real.end(now.leader);
    let followers: Vec<usize> = (0..3).filter(|place| *place != now.leader).collect();
    let after = real.agree_among(&followers, now.epoch, PATIENCE).unwrap();
    let table = documented();
    let seen: BTreeSet<String> = (0..3).flat_map(|place| check(&real.log(place), &table)).collect();
    for event in ["started", "asking", "leader_elected", "leader_lost", "resigning", "stopped", "member_gone"]
    {
        assert!(seen.contains(event), "no {event} among {seen:?}");
    }
    // One line says that the former leader has left, and none that it is back.
    let left = real.name(now.leader);
    let next_leader = format!(r#""leader":"{}""#, real.name(after.leader));
    for place in followers {
        let about_it = || {
            let log = real.log(place);
            // A follower that hears of the next leader first is not told that it has lost the former one.
            let lines = log.lines().skip_while(|line| {
                !line.contains(r#""event":"leader_lost""#) && !line.contains(&next_leader)
            });
            let about = |line: &&str| line.contains(&format!(r#""name":"{left}""#));
            lines.filter(about).map(str::to_owned).collect::<Vec<_>>()
        };
        within(PATIENCE, || (!about_it().is_empty()).then_some(())).unwrap();
        // Whatever follows the end of the process has followed it by now.
        real.agree(after.epoch - 1, PATIENCE).ok();
        let lines = about_it();
        assert_eq!(lines.len(), 1, "{lines:#?}");
        assert!(lines[0].contains(r#""event":"member_gone""#), "{lines:#?}");
    }
}

#[test]
fn the_table_of_events_names_what_the_code_logs_and_no_more() {
    let mut logged: BTreeSet<(String, String)> = BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
                let calls = text.split("LogEvent::").skip(1);
                let named = calls.filter_map(|rest| {
                    let (level, rest) = rest.split_once("(\"")?;
                    let known = ["error", "warn", "info", "debug", "trace"].contains(&level);
                    known.then(|| (rest.split('"').next().unwrap().to_owned(), level.to_owned()))
                });
                logged.extend(named);
                assert!(!text.contains("log::warn!") && !text.contains("log::info!"), "{}", path.display());
            }
        }
    }
    let table = documented().into_iter();
    let table: BTreeSet<_> = table
        .flat_map(|(event, held)| held.levels.into_iter().map(move |level| (event.clone(), level)))
        .collect();
    let pairs = |one: &BTreeSet<_>, other: &BTreeSet<_>| one.difference(other).cloned().collect::<Vec<_>>();
    assert!(pairs(&logged, &table).is_empty(), "not in docs/logs.md: {:?}", pairs(&logged, &table));
    assert!(pairs(&table, &logged).is_empty(), "only in docs/logs.md: {:?}", pairs(&table, &logged));
}
