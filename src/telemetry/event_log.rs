//! The event log: the election's notes as lines for a person on call, and as counts.
//!
//! Notes follow from what peers do, so every kind of line has a limit of its own: no peer can flood the log.

use super::escape::value;
use super::founding::founding_refused;
use super::metrics::Metrics;
use crate::base::RateLimit;
use crate::election::{
    Denial, ElectionOutcome, Epoch, MEMBERS_MAX, Moment, Notification, Peer, Reason, Stage, VoterConfig,
};
use log::Level;
use std::time::Duration;

/// How many hexadecimal digits of an id people are shown; enough to tell the members of a cluster apart.
const ID_DIGITS: usize = 8;

/// Turns notes into lines and counts, in the order in which they happened.
pub struct EventLog {
    metrics: Metrics,
    /// Since when no leader is known; none while there is one.
    leaderless_since: Option<Moment>,
    /// Since when this process takes part in an election.
    electing_since: Option<Moment>,
    limits: Limits,
}

/// The limits by kind of line. Elections come by the dozen where no process can win, so all but the first few
/// of them tell nothing new. A whole cluster may come or go at once, and that is worth its lines.
struct Limits {
    asking: RateLimit,
    electing: RateLimit,
    ended: RateLimit,
    no_candidate: RateLimit,
    leader: RateLimit,
    member: RateLimit,
    refused: RateLimit,
    voting: RateLimit,
    differs: RateLimit,
    operated: RateLimit,
}

/// A line, and which limit it falls under.
struct Line<'a> {
    limit: &'a mut RateLimit,
    level: Level,
    text: String,
}

impl EventLog {
    /// One that counts in these metrics.
    pub fn new(metrics: Metrics) -> EventLog {
        let minute = Duration::from_secs(60);
        let limits = Limits {
            asking: RateLimit::new(5, minute),
            electing: RateLimit::new(3, minute),
            ended: RateLimit::new(3, minute),
            no_candidate: RateLimit::new(3, minute),
            leader: RateLimit::new(20, minute / 5),
            member: RateLimit::new(64, minute / 30),
            refused: RateLimit::new(5, minute),
            voting: RateLimit::new(10, minute / 5),
            differs: RateLimit::new(5, minute),
            operated: RateLimit::new(20, minute / 5),
        };
        EventLog { metrics, leaderless_since: None, electing_since: None, limits }
    }

    /// Takes down what happened at `now`: one line at most, and the counts.
    pub fn note(&mut self, note: &Notification, now: Moment) {
        if let Some((level, text)) = self.line(note, now) {
            log::log!(level, "{text}");
        }
    }

    /// Counts, and says what is to be logged.
    fn line(&mut self, note: &Notification, now: Moment) -> Option<(Level, String)> {
        let line = self.told(note, now);
        let held_back = line.limit.allow(now)?;
        let (level, mut text) = (line.level, line.text);
        if held_back > 0 {
            text += &format!(" not_shown={held_back}");
        }
        if matches!(note, Notification::Leader { .. } | Notification::Leaderless { .. }) {
            // Elections after a change are news again. The change was admitted, so this cannot lift their
            // limit.
            self.limits.electing.reset();
            self.limits.ended.reset();
            self.limits.no_candidate.reset();
        }
        Some((level, text))
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
                self.electing_since.get_or_insert(now);
                None
            }
            Notification::ElectionEnds { outcome } => {
                let lasted = self.electing_since.take().map(|since| now.since(since));
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

    /// Counts what happened, and words its line.
    fn told(&mut self, note: &Notification, now: Moment) -> Line<'_> {
        let lasted = self.counted(note, now);
        let limits = &mut self.limits;
        let (limit, level, text) = match note {
            Notification::Asking { paused: None, expect } => {
                (&mut limits.asking, Level::Info, asking(*expect))
            }
            Notification::Asking { paused: Some(paused), .. } => {
                (&mut limits.asking, Level::Warn, asking_after_a_pause(*paused))
            }
            Notification::ElectionBegins { reason } => {
                (&mut limits.electing, Level::Info, election_begins(*reason))
            }
            Notification::ElectionEnds { outcome } => {
                (&mut limits.ended, Level::Info, election_ends(*outcome, lasted))
            }
            Notification::NoCandidate => {
                let text =
                    "no process can lead: all live members have priority 0; give one another --priority";
                (&mut limits.no_candidate, Level::Warn, text.to_owned())
            }
            Notification::Leader { peer, epoch, reason, me } => {
                (&mut limits.leader, Level::Info, leader_line(peer, *epoch, *reason, *me, lasted))
            }
            Notification::Leaderless { former, epoch, reason, me, .. } => {
                let (level, text) = leaderless_line(former, *epoch, *reason, *me);
                (&mut limits.leader, level, text)
            }
            Notification::MemberUp(peer) => (&mut limits.member, Level::Info, member_up(peer)),
            Notification::MemberFailed { peer, reason } => {
                (&mut limits.member, Level::Warn, member_failed(peer, *reason))
            }
            Notification::MemberGone(peer) => (&mut limits.member, Level::Info, member_gone(peer)),
            Notification::SameName { known, other } => {
                (&mut limits.refused, Level::Warn, same_name(known, other))
            }
            Notification::LeadsAlone { others } => (&mut limits.leader, Level::Warn, leads_alone(*others)),
            Notification::TooManyMembers(peer) => (&mut limits.refused, Level::Warn, too_many_members(peer)),
            Notification::StandsAside { aside } => (&mut limits.operated, Level::Warn, stands_aside(*aside)),
            Notification::StandsAgain => (&mut limits.operated, Level::Info, stands_again()),
            Notification::Resigning { successor, reason } => {
                (&mut limits.leader, Level::Info, resigning(successor.as_ref(), *reason))
            }
            Notification::Recovering => {
                let text = "this voter has no vote yet: it asks the other voters what it may have forgotten";
                (&mut limits.voting, Level::Warn, text.to_owned())
            }
            Notification::Recovered(epoch) => {
                (&mut limits.voting, Level::Info, format!("this voter votes from now on epoch={epoch}"))
            }
            Notification::FoundingRefused(founding) => {
                (&mut limits.voting, Level::Error, founding_refused(*founding))
            }
            Notification::RestartGrace(wait) => (&mut limits.voting, Level::Info, restart_grace(*wait)),
            Notification::Denied { voter, stage, denial } => {
                (&mut limits.electing, Level::Debug, denied(voter, *stage, *denial))
            }
            Notification::VotersChanged(config) => (&mut limits.voting, Level::Info, voters_changed(config)),
            Notification::LeaseInUse { lease_ms, bound_ms, given_ms } => {
                let text = lease_in_use(*lease_ms, *bound_ms, *given_ms);
                if lease_ms == given_ms {
                    (&mut limits.voting, Level::Info, text)
                } else {
                    (&mut limits.differs, Level::Warn, text)
                }
            }
            Notification::VotersDiffer(peer) => (&mut limits.differs, Level::Warn, voters_differ(peer)),
        };
        Line { limit, level, text }
    }
}

fn asking(expect: usize) -> String {
    let wait = if expect > 1 { format!(" waits_for={expect}") } else { String::new() };
    format!("asking the peers who leads{wait}")
}

fn asking_after_a_pause(paused: Duration) -> String {
    format!(
        "this process did not run for a while, and asks the peers who leads before it answers again \
         paused={}",
        took(paused)
    )
}

fn election_begins(reason: Reason) -> String {
    format!("election begins reason={}", reason.name())
}

fn election_ends(outcome: ElectionOutcome, lasted: Option<Duration>) -> String {
    let lasted = lasted.map_or_else(String::new, |lasted| format!(" duration={}", took(lasted)));
    format!("election ends outcome={}{lasted}", outcome.name())
}

fn leader_line(peer: &Peer, epoch: Epoch, reason: Reason, me: bool, gap: Option<Duration>) -> String {
    let what = if me { "this process leads now" } else { "there is a leader" };
    let gap = gap.map_or_else(String::new, |gap| format!(" leaderless={}", took(gap)));
    format!("{what} {} epoch={epoch} reason={}{gap}", process(peer), reason.name())
}

fn leaderless_line(former: &Peer, epoch: Epoch, reason: Reason, me: bool) -> (Level, String) {
    let planned = matches!(reason, Reason::Resign | Reason::Transfer | Reason::Superseded | Reason::Start);
    let (level, what) = match (me, planned) {
        (true, true) => (Level::Info, "this process leads no longer"),
        (true, false) => (Level::Warn, "this process leads no longer"),
        (false, true) => (Level::Info, "the leader has stepped down"),
        (false, false) => (Level::Warn, "the leader is lost"),
    };
    (level, format!("{what} {} epoch={epoch} reason={}", process(former), reason.name()))
}

fn leads_alone(others: usize) -> String {
    format!(
        "this process leads alone: no process has answered at the other addresses where peers may be \
         others={others}"
    )
}

fn resigning(successor: Option<&Peer>, reason: Reason) -> String {
    let what = match reason {
        Reason::Transfer => "transferring leadership to another member",
        _ if successor.is_some() => "told to stop, and handing over",
        _ => "told to stop, and no member can succeed it",
    };
    successor.map_or_else(|| what.to_owned(), |s| format!("{what} {}", process(s)))
}

fn stands_aside(aside: Option<Duration>) -> String {
    match aside {
        None => "this process is cordoned: it does not lead before `bellwether uncordon`, or its restart"
            .to_owned(),
        Some(aside) => {
            format!(
                "this process has resigned and does not stand for a while, or before its restart for={}",
                took(aside)
            )
        }
    }
}

fn stands_again() -> String {
    "this process is a candidate again".to_owned()
}

fn member_up(peer: &Peer) -> String {
    format!("member is up {} priority={}", process(peer), peer.priority.0)
}

fn member_failed(peer: &Peer, reason: Option<Reason>) -> String {
    let reason = reason.map_or("told_by_the_leader", Reason::name);
    format!("member failed {} reason={reason}", process(peer))
}

fn member_gone(peer: &Peer) -> String {
    format!("member is gone {}", process(peer))
}

fn same_name(known: &Peer, other: &Peer) -> String {
    format!(
        "two live processes have one name, and people cannot tell them apart; give one of them another \
         --name {} other_id={} other_address={}",
        process(known),
        id(other),
        other.address
    )
}

fn too_many_members(peer: &Peer) -> String {
    format!("the cluster is full, and a peer is not taken in most={MEMBERS_MAX} {}", process(peer))
}

fn restart_grace(wait: Duration) -> String {
    format!(
        "this voter was restarted and may have forgotten a promise: it votes for no process before that is \
         over, or before it hears from a leader wait={}",
        took(wait)
    )
}

fn denied(voter: &Peer, stage: Stage, denial: Denial) -> String {
    format!("vote denied {} asked={} denial={}", process(voter), stage.name(), denial.name())
}

fn voters_changed(config: &VoterConfig) -> String {
    let names: Vec<&str> = config.voters.iter().map(String::as_str).collect();
    format!(
        "voters={} config_epoch={} config_version={}",
        names.join(","),
        config.version.epoch,
        config.version.version
    )
}

fn lease_in_use(lease_ms: u32, bound_ms: u32, given_ms: u32) -> String {
    let what = if lease_ms == given_ms {
        "the voters' lease"
    } else {
        "this process was started with another --lease than the voters use; the lease changes when a \
         majority of them has the same other one"
    };
    format!("{what} lease={lease_ms}ms bound={bound_ms}ms given={given_ms}ms")
}

fn voters_differ(peer: &Peer) -> String {
    format!(
        "a peer was started with other --voters; the voters change when a majority of them agrees {}",
        process(peer)
    )
}

/// A peer as key-value pairs.
fn process(peer: &Peer) -> String {
    format!("name={} id={} address={}", value(&peer.name), id(peer), peer.address)
}

/// The beginning of its id.
fn id(peer: &Peer) -> String {
    peer.id.to_string().chars().take(ID_DIGITS).collect()
}

/// A duration with the digits that tell something: failovers take milliseconds, outages seconds.
fn took(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{:.1}ms", duration.as_secs_f64() * 1000.0)
    } else {
        format!("{:.3}s", duration.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::election::{Candidacy, Incarnation, Priority, ProcessId, Role, Status};

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
    fn tells_a_failover() {
        let mut event_log = event_log();
        let mut tell = |note: &Notification, ms: u64| event_log.line(note, at(ms)).unwrap();
        let process = "name=web-2 id=abcdef01 address=10.0.0.2:4041";
        assert_eq!(
            tell(&leader("web-2", Reason::Start), 0),
            (Level::Info, format!("there is a leader {process} epoch=8 reason=start"))
        );
        assert_eq!(
            tell(&lost("web-2"), 1000),
            (Level::Warn, format!("the leader is lost {process} epoch=7 reason=crash"))
        );
        assert_eq!(
            tell(&Notification::ElectionBegins { reason: Reason::Crash }, 1001).1,
            "election begins reason=crash"
        );
        assert_eq!(
            tell(&Notification::ElectionEnds { outcome: ElectionOutcome::Won }, 1013).1,
            "election ends outcome=won duration=12.0ms"
        );
        let won =
            Notification::Leader { peer: peer("web-1"), epoch: Epoch(8), reason: Reason::Crash, me: true };
        assert_eq!(
            tell(&won, 1014).1,
            "this process leads now name=web-1 id=abcdef01 address=10.0.0.2:4041 epoch=8 reason=crash \
             leaderless=14.0ms"
        );
    }

    #[test]
    fn a_name_cannot_pass_for_more() {
        let (_, line) = event_log().line(&Notification::MemberUp(peer("a epoch=9\nERROR")), at(0)).unwrap();
        assert!(line.starts_with(r#"member is up name="a epoch=9\nERROR" id="#), "{line}");
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
            candidacy: Candidacy::default(),
            answer_ttl: Duration::from_secs(1),
        };
        let text = event_log.metrics.encode(&status, at(6000), at(6000));
        for line in [
            "bellwether_leaderless_seconds_total 3",
            r#"bellwether_leader_changes_total{reason="start"} 1"#,
            r#"bellwether_elections_total{outcome="unfinished"} 1"#,
            r#"bellwether_elections_total{outcome="lost"} 1"#,
            "bellwether_election_duration_seconds_count 1",
            "bellwether_election_duration_seconds_sum 1",
            "bellwether_pauses_total 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn elections_that_nobody_wins_are_told_a_few_times_and_then_once_a_minute() {
        let mut event_log = event_log();
        let again = Notification::ElectionBegins { reason: Reason::Silence };
        let told = |event_log: &mut EventLog, from_s: u64| -> Vec<String> {
            (from_s..from_s + 90)
                .filter_map(|s| event_log.line(&again, at(s * 1000)))
                .map(|line| line.1)
                .collect()
        };
        let first = told(&mut event_log, 0);
        assert_eq!(first.len(), 4);
        assert_eq!(first[3], "election begins reason=silence not_shown=57");
        event_log.line(&leader("web-2", Reason::Silence), at(90_000)).unwrap();
        assert_eq!(told(&mut event_log, 91).len(), 4);
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
