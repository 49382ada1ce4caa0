//! `bellwether status`: asks a running process for the leader and the members, over its status API.
//!
//! The answer comes from a network, so it is bounded in time and size. What it holds is printed with every
//! invisible character spelled out.

use crate::client::api::{Api, Trouble};
use crate::client::{EXIT_BAD_CONFIGURATION, failed};
use crate::config::{Output, StatusArgs};
use crate::telemetry::escape::escaped;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// How long one question may take, the look-up of the host's name included.
const ASKING_LONGEST: Duration = Duration::from_secs(2);
/// How many hexadecimal digits of an id people are shown.
const ID_DIGITS: usize = 8;

/// "The process answers, but knows no leader."
const EXIT_NO_LEADER: u8 = 3;
/// "It does not answer, or what it answers makes no sense."
const EXIT_NO_ANSWER: u8 = 1;

/// Asks, prints and says by the exit code whether there is a leader, or whether the process is healthy.
pub fn run(args: &StatusArgs) -> ExitCode {
    match Api::at(args.url.as_deref()).and_then(|api| answer(args, &api)) {
        Ok((text, code)) => {
            // A reader that has gone needs no message, and the exit code still says it.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::from(code)
        }
        Err(trouble @ Trouble::BadUrl(_)) => failed(&trouble, EXIT_BAD_CONFIGURATION),
        Err(trouble) => failed(&trouble, EXIT_NO_ANSWER),
    }
}

/// What to print, and the exit code.
fn answer(args: &StatusArgs, api: &Api) -> Result<(String, u8), Trouble> {
    if args.healthz {
        api.ask("/healthz", &[200], ASKING_LONGEST)?;
        return Ok(("healthy\n".to_owned(), 0));
    }
    let record = api.json("/leader", &[200, 503], ASKING_LONGEST)?;
    let members = api.json("/members", &[200], ASKING_LONGEST)?;
    let leader: Record = api.understood("/leader", &record)?;
    let list: Members = api.understood("/members", &members)?;
    let not_ready = not_ready(api)?;
    let code = if leader.leader.is_some() { 0 } else { EXIT_NO_LEADER };
    let text = match args.output {
        Output::Table => table(&leader, &list, not_ready.as_deref()),
        Output::Json => merged(record, members, not_ready),
    };
    Ok((text, code))
}

/// Why the process is not ready, or knows no leader.
fn not_ready(api: &Api) -> Result<Option<String>, Trouble> {
    const PATH: &str = "/readyz?leader=known";
    let reply: Readiness = api.understood(PATH, &api.json(PATH, &[200, 503], ASKING_LONGEST)?)?;
    Ok(reply.error.map(|error| error.message))
}

/// What is read of `/leader`.
#[derive(Deserialize)]
struct Record {
    leader: Option<Leader>,
    epoch: u64,
    /// With `--safety majority`, where a leader is known.
    valid_for_ms: Option<u64>,
    /// This process leads no more for its applications, and waits for their holds.
    #[serde(default)]
    resigning: bool,
}

#[derive(Deserialize)]
struct Leader {
    id: String,
    name: String,
    address: String,
}

/// What is read of `/readyz`.
#[derive(Deserialize)]
struct Readiness {
    error: Option<Detail>,
}

#[derive(Deserialize)]
struct Detail {
    message: String,
}

/// What is read of `/members`.
#[derive(Deserialize)]
struct Members {
    members: Vec<Member>,
    /// With `--safety majority`, once the voters are known.
    voters: Option<Voters>,
    /// An operator has cordoned the process that answers.
    #[serde(default)]
    cordoned: bool,
    /// The application beside the process that answers is not healthy.
    #[serde(default)]
    unhealthy: bool,
    /// What says so.
    #[serde(default)]
    complaints: Vec<String>,
    /// The process that answers has resigned, and this is left of the time that it was told.
    resigned_for_ms: Option<u64>,
    /// Where members prove themselves: the fingerprints of this process's credentials.
    peer_keys: Option<PeerKeys>,
    /// Why the process that answers does not learn where all its peers are.
    discovery_warning: Option<String>,
}

#[derive(Deserialize)]
struct PeerKeys {
    sent: String,
    accepted: Vec<String>,
    /// Why the files on its disk cannot be used now.
    unusable: Option<String>,
}

#[derive(Deserialize)]
struct Voters {
    epoch: u64,
    version: u64,
    names: Vec<String>,
}

#[derive(Deserialize)]
struct Member {
    id: String,
    name: String,
    address: String,
    priority: u16,
    state: String,
    leader: bool,
    me: bool,
    last_heard_ms: Option<u64>,
    round_trip_ms: Option<f64>,
    /// With `--safety majority`, once the voters are known.
    voter: Option<bool>,
}

/// One object: the leader's record with the members and `not_ready`, every text in it made harmless.
fn merged(mut record: Map<String, Value>, members: Map<String, Value>, not_ready: Option<String>) -> String {
    record.extend(members);
    record.insert("not_ready".to_owned(), not_ready.into());
    let mut value = Value::Object(record);
    make_harmless(&mut value);
    format!("{value:#}\n")
}

/// JSON escapes some control characters, but not all that a terminal acts on. The depth is bounded by the
/// parser's.
fn make_harmless(value: &mut Value) {
    match value {
        Value::String(text) => *text = escaped(text),
        Value::Array(values) => values.iter_mut().for_each(make_harmless),
        Value::Object(object) => {
            let pairs = std::mem::take(object).into_iter();
            *object = pairs
                .map(|(key, mut value)| {
                    make_harmless(&mut value);
                    (escaped(&key), value)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The first line names the leader. Lines for what applies follow: why the process is not ready, finds no
/// peers or may not lead, the voters, the peer keys. The rest are the members.
fn table(record: &Record, list: &Members, not_ready: Option<&str>) -> String {
    let mut text = match &record.leader {
        Some(leader) => {
            let (name, id, address) = (escaped(&leader.name), short(&leader.id), escaped(&leader.address));
            format!("leader: {name} ({id}, {address}), epoch {}", record.epoch)
        }
        None => format!("no leader, epoch {}", record.epoch),
    };
    if record.resigning {
        text += "\nresigning: this process waits for the holds of its applications, for --stop-wait at most";
    } else if let Some(ms) = record.valid_for_ms {
        text += &format!(", for {ms}ms more unless renewed");
    }
    if let Some(why) = not_ready {
        text += &format!("\nnot ready: {}", escaped(why));
    }
    if let Some(warning) = &list.discovery_warning {
        text += &format!("\ndiscovery: {}", escaped(warning));
    }
    text += &candidacy(list);
    if let Some(voters) = &list.voters {
        text += &voters_line(voters, &list.members);
    }
    if let Some(PeerKeys { sent, accepted, unusable }) = &list.peer_keys {
        let accepted = Vec::from_iter(accepted.iter().map(|key| escaped(key))).join(", ");
        text += &format!("\npeer keys: sends {}, accepts {accepted}", escaped(sent));
        if let Some(why) = unusable {
            text += "\npeer keys: those from before count, and the files cannot be used; write their content \
                     back: ";
            text += &escaped(why);
        }
    }
    let voting = list.voters.is_some();
    let mut head = vec!["", "NAME", "ID", "ADDRESS", "PRIORITY", "STATE", "HEARD", "RTT"];
    head.extend(voting.then_some("VOTER"));
    let mut rows: Vec<Vec<String>> = vec![head.into_iter().map(str::to_owned).collect()];
    rows.extend(list.members.iter().map(|member| {
        let mut row = vec![
            if member.leader { "*" } else { "" }.to_owned(),
            format!("{}{}", escaped(&member.name), if member.me { " (here)" } else { "" }),
            short(&member.id),
            escaped(&member.address),
            member.priority.to_string(),
            escaped(&member.state),
            member.last_heard_ms.map_or_else(|| "-".to_owned(), heard_ago),
            member.round_trip_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.2}ms")),
        ];
        row.extend(voting.then(|| if member.voter == Some(true) { "yes" } else { "no" }.to_owned()));
        row
    }));
    text += "\n\n";
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    if list.members.iter().any(|member| member.priority == 0) {
        text += "\npriority 0: that member does not lead; its own status says why, or its --priority is 0\n";
    }
    text
}

/// The voters, which of them are missing, and where some are, how many have to be there.
fn voters_line(Voters { epoch, version, names }: &Voters, members: &[Member]) -> String {
    let alive = |name: &String| members.iter().any(|m| m.name == *name && m.state == "alive");
    let each = names.iter().map(|name| match alive(name) {
        true => escaped(name),
        false => format!("{} (missing)", escaped(name)),
    });
    let mut line = format!("\nvoters: {}; configuration {epoch}.{version}", Vec::from_iter(each).join(", "));
    if !names.iter().all(alive) {
        line += &format!("; more than half of the {} have to be alive", names.len());
    }
    line
}

/// A line for each thing that keeps the process from leading.
fn candidacy(list: &Members) -> String {
    let mut text = String::new();
    if list.cordoned {
        text += "\ncordoned: this process does not lead before bellwether uncordon, or its restart (by an \
                 operator, or by the preStop hook of a pod that drains)";
    }
    if list.unhealthy {
        let leads = list.members.iter().any(|member| member.me && member.leader);
        text += "\nunhealthy: the application here is not healthy, ";
        text += if leads {
            "and this process leads on while no other member can take over; complaints: "
        } else {
            "so this process does not stand; complaints: "
        };
        text += &escaped(&list.complaints.join(", "));
    }
    if let Some(ms) = list.resigned_for_ms {
        text += &format!("\nresigned: this process does not lead for {}s more", ms.div_ceil(1000));
    }
    text
}

/// Milliseconds while they tell something, then seconds.
fn heard_ago(ms: u64) -> String {
    if ms < 10_000 { format!("{ms}ms ago") } else { format!("{}s ago", ms / 1000) }
}

/// The beginning of an id.
fn short(id: &str) -> String {
    escaped(&id.chars().take(ID_DIGITS).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_texts_harmless_wherever_they_are() {
        let object = r#"{"a\u009b":["\u202e",{"b":"\u001b[2J"}],"c":7}"#;
        let merged = merged(serde_json::from_str(object).unwrap(), Map::new(), Some("\u{202e}".to_owned()));
        assert!(!merged.chars().any(|c| c == '\u{202e}' || (c.is_control() && c != '\n')), "{merged:?}");
    }
}
