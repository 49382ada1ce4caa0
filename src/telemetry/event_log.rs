//! The event log: the election's notes as lines for a person on call, and as counts.
//!
//! Notes follow from what peers do, so every kind of line has a limit of its own: no peer can flood the log.

use super::metrics::Metrics;
use super::notification_text;
use crate::base::{LogEvent, RateLimit};
use crate::election::{ElectionOutcome, Moment, Notification};
use std::collections::BTreeMap;
use std::time::Duration;

/// Turns notes into lines and counts, in the order in which they happened.
pub struct EventLog {
    metrics: Metrics,
    /// Since when no leader is known; none while there is one.
    leaderless_since: Option<Moment>,
    /// Since when this process takes part in an election.
    electing_since: Option<Moment>,
    /// By kind of line: as many as [`limit`] names.
    limits: BTreeMap<&'static str, RateLimit>,
}

/// The kinds of elections: after a leader they are news again.
const ELECTIONS: [&str; 3] = ["electing", "ended", "no_candidate"];

impl EventLog {
    /// One that counts in these metrics.
    pub fn new(metrics: Metrics) -> EventLog {
        EventLog { metrics, leaderless_since: None, electing_since: None, limits: BTreeMap::new() }
    }

    /// Takes down what happened at `now`: one line at most, and the counts.
    pub fn note(&mut self, note: &Notification, now: Moment) {
        if let Some((event, text)) = self.line(note, now) {
            event.say(text);
        }
    }

    /// Counts, and says what is to be logged.
    fn line(&mut self, note: &Notification, now: Moment) -> Option<(LogEvent, String)> {
        let lasted = self.counted(note, now);
        let (kind, burst, every_s) = limit(note);
        let new = || RateLimit::new(burst, Duration::from_secs(every_s));
        let held_back = self.limits.entry(kind).or_insert_with(new).allow(now)?;
        if kind == "leader" {
            // Its line was admitted: this cannot lift their limit.
            for kind in ELECTIONS {
                if let Some(limit) = self.limits.get_mut(kind) {
                    limit.reset();
                }
            }
        }
        let (event, text) = notification_text::line(note, lasted);
        Some((event.not_shown(held_back), text))
    }

    /// Counts what happened. If that ended an election or the time without a leader, returns how long it
    /// lasted.
    fn counted(&mut self, note: &Notification, now: Moment) -> Option<Duration> {
        match note {
            Notification::Asking { paused: None, .. } => {
                // This is where the look-out for a leader begins.
                self.leaderless_since.get_or_insert(now);
                self.metrics.leaderless(now, Some(true));
                None
            }
            Notification::Asking { paused: Some(_), .. } => {
                self.metrics.pause();
                None
            }
            Notification::ElectionBegins { .. } => {
                self.electing_since = Some(now);
                None
            }
            Notification::ElectionEnds { outcome } => {
                let lasted = self.electing_since.map(|since| now.since(since));
                // In `majority` the next attempt begins where one fails.
                self.electing_since = (*outcome == ElectionOutcome::Unfinished).then_some(now);
                self.metrics.election(*outcome, lasted);
                lasted
            }
            Notification::Leader { reason, .. } => {
                let gap = self.leaderless_since.take().map(|since| now.since(since));
                self.metrics.leaderless(now, Some(false));
                self.metrics.leader_change(*reason, gap);
                gap
            }
            Notification::Leaderless { since, .. } => {
                self.leaderless_since.get_or_insert(*since);
                self.metrics.leaderless(*since, Some(true));
                None
            }
            _ => None,
        }
    }
}

/// The kind of a line, how many of it may come at once, and after how many seconds each time one more may.
/// Elections come by the dozen where no process can win, so all but the first few of them tell nothing new.
/// A whole cluster may come or go at once, and that is worth its lines. So is each leader, for many changes
/// in a row.
fn limit(note: &Notification) -> (&'static str, u32, u64) {
    match note {
        Notification::Asking { .. } => ("asking", 5, 60),
        Notification::ElectionBegins { .. } | Notification::Denied { .. } => ("electing", 3, 60),
        Notification::ElectionEnds { .. } => ("ended", 3, 60),
        Notification::NoCandidate => ("no_candidate", 3, 60),
        Notification::Leader { .. } => ("leader", 64, 12),
        Notification::Leaderless { .. } => ("leaderless", 64, 12),
        Notification::LeadsAlone { .. }
        | Notification::WaitsForHolds { .. }
        | Notification::Resigning { .. } => ("leading", 20, 12),
        Notification::MemberUp(_) | Notification::MemberFailed { .. } | Notification::MemberGone(_) => {
            ("member", 64, 2)
        }
        Notification::SameName { .. } | Notification::TooManyMembers(_) => ("refused", 5, 60),
        Notification::StandsAside { .. } | Notification::StandsAgain => ("operated", 20, 12),
        Notification::AwaitsApplication { .. } | Notification::Application { .. } => ("application", 20, 12),
        Notification::LeaseInUse { lease_ms, given_ms, .. } if lease_ms != given_ms => ("differs", 5, 60),
        Notification::VotersChanged { config, given } if config.voters != *given => ("differs", 5, 60),
        Notification::VotersDiffer { .. } | Notification::VoterRecovers(_) => ("differs", 5, 60),
        Notification::Recovering
        | Notification::NoVoteYet(_)
        | Notification::Recovered(_)
        | Notification::FoundingRefused(_)
        | Notification::RestartGrace(_)
        | Notification::VotersChanged { .. }
        | Notification::LeaseInUse { .. } => ("voting", 10, 12),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::election::{Candidacy, Epoch, Incarnation, Peer, Priority, ProcessId, Reason, Role, Status};

    fn at(ms: u64) -> Moment {
        Moment(Duration::from_millis(ms))
    }

    fn peer(name: &str) -> Peer {
        Peer {
            id: ProcessId(uuid::Uuid::from_u128(0xabcdef01_0000_4000_8000_000000000000)),
            incarnation: Incarnation(1),
            name: name.to_owned(),
            address: "10.0.0.2:4041".parse().unwrap(),
            priority: Priority(100),
            revision: String::new(),
        }
    }

    fn leader(name: &str, reason: Reason) -> Notification {
        Notification::Leader { peer: peer(name), epoch: Epoch(8), reason, me: false }
    }

    fn lost(name: &str) -> Notification {
        Notification::Leaderless {
            former: peer(name),
            epoch: Epoch(7),
            reason: Reason::Crash,
            me: false,
            since: Moment(Duration::from_secs(1)),
        }
    }

    fn event_log() -> EventLog {
        EventLog::new(Metrics::new("web"))
    }

    #[test]
    fn counts_what_it_tells() {
        let mut event_log = event_log();
        for (note, ms) in [
            (Notification::Asking { paused: None, expect: 0 }, 1000),
            (Notification::ElectionBegins { reason: Reason::Start }, 2000),
            (Notification::ElectionEnds { outcome: ElectionOutcome::Unfinished }, 3000),
            (Notification::ElectionEnds { outcome: ElectionOutcome::Lost }, 3500),
            (leader("web-2", Reason::Start), 4000),
            (Notification::Asking { paused: Some(Duration::from_secs(9)), expect: 0 }, 5000),
        ] {
            event_log.line(&note, at(ms)).unwrap();
        }
        let status = Status {
            cluster: "web".to_owned(),
            me: peer("web-0"),
            role: Role::Following,
            epoch: Epoch(8),
            leader: None,
            members: Vec::new(),
            valid_until: None,
            voting: None,
            cut_off: false,
            holds: 0,
            candidacy: Candidacy::default(),
            answer_ttl: Duration::from_secs(1),
            lease: None,
            worst_delay: None,
            lease_reason: None,
        };
        let text = event_log.metrics.encode(&status, at(6000), at(6000));
        for line in [
            "bellwether_leaderless_seconds_total 3",
            r#"bellwether_leader_changes_total{reason="start"} 1"#,
            r#"bellwether_elections_total{outcome="unfinished"} 1"#,
            r#"bellwether_elections_total{outcome="lost"} 1"#,
            "bellwether_election_duration_seconds_count 2",
            "bellwether_election_duration_seconds_sum 1.5",
            "bellwether_pauses_total 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn elections_without_a_winner_are_told_a_few_times_and_then_once_a_minute() {
        let mut event_log = event_log();
        let again = Notification::ElectionBegins { reason: Reason::Silence };
        let told = |event_log: &mut EventLog, from_s: u64| -> Vec<String> {
            (from_s..from_s + 90)
                .filter_map(|s| event_log.line(&again, at(s * 1000)))
                .map(|(event, _)| event.to_string())
                .collect()
        };
        let first = told(&mut event_log, 0);
        assert_eq!(first.len(), 4);
        assert!(first[3].ends_with("not_shown=Number(57)"), "{}", first[3]);
        event_log.line(&leader("web-2", Reason::Silence), at(90_000)).unwrap();
        assert_eq!(told(&mut event_log, 91).len(), 4);
    }

    #[test]
    fn each_of_many_changes_of_leader_is_told() {
        let mut event_log = event_log();
        let changes =
            (0..60u64).flat_map(|s| [(lost("a"), s * 1000), (leader("b", Reason::Lapse), s * 1000)]);
        for (note, ms) in changes {
            assert!(event_log.line(&note, at(ms)).is_some(), "{ms}");
        }
    }

    #[test]
    fn no_note_floods_the_log() {
        let notes = [
            Notification::Asking { paused: None, expect: 0 },
            Notification::Asking { paused: Some(Duration::from_secs(2)), expect: 0 },
            Notification::ElectionBegins { reason: Reason::Crash },
            Notification::ElectionEnds { outcome: ElectionOutcome::Unfinished },
            Notification::NoCandidate,
            leader("a", Reason::Superseded),
            lost("a"),
            Notification::MemberUp(peer("a")),
            Notification::MemberFailed { peer: peer("a"), reason: Some(Reason::Crash) },
            Notification::MemberGone(peer("a")),
            Notification::SameName { known: peer("a"), other: peer("a") },
            Notification::TooManyMembers(peer("a")),
            Notification::Resigning { successor: None, reason: Reason::Resign },
        ];
        // All of them, ten times a second, for an hour.
        let mut event_log = event_log();
        let lines = (0..36_000u64)
            .flat_map(|i| notes.iter().map(move |note| (note, i * 100)))
            .filter(|(note, ms)| event_log.line(note, at(*ms)).is_some())
            .count();
        let a_minute = lines / 60;
        assert!(a_minute < 120, "{a_minute} lines a minute");
    }
}
