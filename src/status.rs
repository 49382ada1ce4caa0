//! `bellwether status`: asks a running process for the leader and the members, over its status API.
//!
//! The answer comes from a network, so it is bounded in time and size. What it holds is printed with every
//! invisible character spelled out.

use crate::config::{Output, StatusArgs};
use crate::telemetry::escape::{escaped, shortened};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use ureq::http::Uri;

/// How long one question may take, the look-up of the host's name included.
const ASKING_LONGEST: Duration = Duration::from_secs(2);
/// The longest reply that is read: several times that of a full cluster with the longest names.
const REPLY_BYTES_MAX: u64 = 1024 * 1024;
/// How much of a text that should not be there is shown in an error.
const SHOWN_BYTES_MAX: usize = 200;
/// The port of `--http` where nothing else is said.
const PORT_DEFAULT: u16 = 4040;
/// How many hexadecimal digits of an id people are shown.
const ID_DIGITS: usize = 8;

/// "The process answers, but knows no leader."
const EXIT_NO_LEADER: u8 = 3;
/// "There is something wrong with the flags."
const EXIT_BAD_CONFIGURATION: u8 = 2;

/// Why there is nothing to print. Nothing has been printed before.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("--url {0:?} is not a plain HTTP address; write it like 127.0.0.1:4040, without a path")]
    BadUrl(String),
    #[error(
        "no answer from {url}: {why}; is bellwether running there? Its address is its --http; give it with \
         --url http://HOST:PORT"
    )]
    Unreachable { url: String, why: String },
    #[error(
        "{url} answered with status {status}: {body:?}; is that bellwether's status API? Give it with --url"
    )]
    Status { url: String, status: u16, body: String },
    #[error("{url} answered what bellwether does not: {why}; give the address of its --http with --url")]
    Garbage { url: String, why: String },
}

/// Asks, prints and says by the exit code whether there is a leader, or whether the process is healthy.
pub fn run(args: &StatusArgs) -> ExitCode {
    match base_url(args.url.as_deref()).and_then(|base| answer(args, &base)) {
        Ok((text, code)) => {
            // A reader that has gone needs no message, and the exit code still says it.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::from(code)
        }
        Err(trouble) => {
            eprintln!("error: {}", escaped(&trouble.to_string()));
            match trouble {
                Trouble::BadUrl(_) => ExitCode::from(EXIT_BAD_CONFIGURATION),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// What to print, and the exit code.
fn answer(args: &StatusArgs, base: &str) -> Result<(String, u8), Trouble> {
    if args.healthz {
        ask(base, "/healthz", &[200])?;
        return Ok(("healthy\n".to_owned(), 0));
    }
    let record = json(base, "/leader", &[200, 503])?;
    let members = json(base, "/members", &[200])?;
    let leader: Record = understood(base, "/leader", &record)?;
    let list: Members = understood(base, "/members", &members)?;
    let not_ready = not_ready(base)?;
    let code = if leader.leader.is_some() { 0 } else { EXIT_NO_LEADER };
    let text = match args.output {
        Output::Table => table(&leader, &list, not_ready.as_deref()),
        Output::Json => merged(record, members, not_ready),
    };
    Ok((text, code))
}

/// Why the process is not ready, or knows no leader.
fn not_ready(base: &str) -> Result<Option<String>, Trouble> {
    const PATH: &str = "/readyz?leader=known";
    let reply: Readiness = understood(base, PATH, &json(base, PATH, &[200, 503])?)?;
    Ok(reply.error.map(|error| error.message))
}

/// Where to ask: what is given, else where this machine's own process answers by its environment, else the
/// default.
fn base_url(given: Option<&str>) -> Result<String, Trouble> {
    let Some(given) = given else {
        let http = std::env::var("BELLWETHER_HTTP").ok();
        return Ok(format!("http://{}", own_address(http.as_deref())));
    };
    let bad = || Trouble::BadUrl(shortened(given.to_owned(), SHOWN_BYTES_MAX));
    let uri: Uri = given.parse().map_err(|_| bad())?;
    let plain = matches!(uri.path(), "" | "/") && uri.query().is_none();
    let authority = uri.authority().filter(|a| plain && !a.host().is_empty()).ok_or_else(bad)?;
    // A port that is no number of 16 bits is none.
    if authority.port().is_none() && authority.as_str() != authority.host() {
        return Err(bad());
    }
    match (uri.scheme_str(), authority.port()) {
        (Some("http"), _) | (None, Some(_)) => Ok(format!("http://{authority}")),
        (None, None) => Ok(format!("http://{authority}:{PORT_DEFAULT}")),
        (Some(_), _) => Err(bad()),
    }
}

/// Where a process that was given this as `--http` is reached from its own machine.
fn own_address(http: Option<&str>) -> SocketAddr {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    match http.and_then(|http| http.parse::<SocketAddr>().ok()) {
        Some(http) if http.ip().is_unspecified() => SocketAddr::new(loopback, http.port()),
        Some(http) => http,
        None => SocketAddr::new(loopback, PORT_DEFAULT),
    }
}

/// The body of a reply with one of these statuses.
fn ask(base: &str, path: &str, expected: &[u16]) -> Result<Vec<u8>, Trouble> {
    let url = format!("{base}{path}");
    let unreachable = |error: ureq::Error| Trouble::Unreachable { url: url.clone(), why: error.to_string() };
    let agent = ureq::Agent::config_builder()
        .proxy(None) // A proxy for the wide world has no business between a process and its sidecar.
        .timeout_global(Some(ASKING_LONGEST))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .build()
        .new_agent();
    let reply = agent.get(&url).call().map_err(unreachable)?;
    let status = reply.status().as_u16();
    let body =
        reply.into_body().into_with_config().limit(REPLY_BYTES_MAX).read_to_vec().map_err(unreachable)?;
    if !expected.contains(&status) {
        let body = shortened(String::from_utf8_lossy(&body).trim().to_owned(), SHOWN_BYTES_MAX);
        return Err(Trouble::Status { url, status, body });
    }
    Ok(body)
}

fn json(base: &str, path: &str, expected: &[u16]) -> Result<Map<String, Value>, Trouble> {
    let body = ask(base, path, expected)?;
    serde_json::from_slice(&body).map_err(|error| garbage(base, path, &error))
}

fn understood<T: serde::de::DeserializeOwned>(
    base: &str,
    path: &str,
    record: &Map<String, Value>,
) -> Result<T, Trouble> {
    serde_json::from_value(Value::Object(record.clone())).map_err(|error| garbage(base, path, &error))
}

fn garbage(base: &str, path: &str, error: &serde_json::Error) -> Trouble {
    Trouble::Garbage { url: format!("{base}{path}"), why: shortened(error.to_string(), SHOWN_BYTES_MAX) }
}

/// What is read of `/leader`.
#[derive(Deserialize)]
struct Record {
    leader: Option<Leader>,
    epoch: u64,
    /// With `--safety majority`, where a leader is known.
    valid_for_ms: Option<u64>,
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
    /// Where members prove themselves: the fingerprints of this process's credentials.
    peer_keys: Option<PeerKeys>,
}

#[derive(Deserialize)]
struct PeerKeys {
    sent: String,
    accepted: Vec<String>,
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

/// The first line names the leader. Lines for what applies follow: why the process is not ready, the voters,
/// the peer keys. The rest are the members.
fn table(record: &Record, list: &Members, not_ready: Option<&str>) -> String {
    let mut text = match &record.leader {
        Some(leader) => {
            let (name, id, address) = (escaped(&leader.name), short(&leader.id), escaped(&leader.address));
            format!("leader: {name} ({id}, {address}), epoch {}", record.epoch)
        }
        None => format!("no leader, epoch {}", record.epoch),
    };
    if let Some(ms) = record.valid_for_ms {
        text += &format!(", for {ms}ms more unless renewed");
    }
    if let Some(why) = not_ready {
        text += &format!("\nnot ready: {}", escaped(why));
    }
    if let Some(Voters { epoch, version, names }) = &list.voters {
        let alive = |name: &String| list.members.iter().any(|m| m.name == *name && m.state == "alive");
        let each = names.iter().map(|name| match alive(name) {
            true => escaped(name),
            false => format!("{} (missing)", escaped(name)),
        });
        text += &format!("\nvoters: {}; configuration {epoch}.{version}", Vec::from_iter(each).join(", "));
    }
    if let Some(PeerKeys { sent, accepted }) = &list.peer_keys {
        let accepted = Vec::from_iter(accepted.iter().map(|key| escaped(key))).join(", ");
        text += &format!("\npeer keys: sends {}, accepts {accepted}", escaped(sent));
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
    fn asks_where_it_is_told() {
        for (given, base) in [
            ("http://127.0.0.1:4040", Some("http://127.0.0.1:4040")),
            ("http://[::1]:4040/", Some("http://[::1]:4040")),
            ("http://web-0.web", Some("http://web-0.web")),
            ("https://web-0.web", None),
            ("127.0.0.1:4040", Some("http://127.0.0.1:4040")),
            ("[::1]:8080", Some("http://[::1]:8080")),
            ("web-0", Some("http://web-0:4040")),
            ("[::1]", Some("http://[::1]:4040")),
            ("::1", None),
            ("web-0/leader", None),
            ("web-0:99999", None),
            ("http://web-0:99999", None),
            ("/leader", None),
            ("user@", None),
            ("http://web-0/leader", None),
            ("http://web-0/?a", None),
            ("http://", None),
            ("http://:4040", None),
            ("", None),
        ] {
            assert_eq!(base_url(Some(given)).ok().as_deref(), base, "{given}");
        }
    }

    #[test]
    fn asks_where_its_own_process_answers() {
        for (http, address) in [
            (None, "127.0.0.1:4040"),
            (Some(""), "127.0.0.1:4040"),
            (Some("[::]:8080"), "127.0.0.1:8080"),
            (Some("0.0.0.0:8080"), "127.0.0.1:8080"),
            (Some("[::1]:8080"), "[::1]:8080"),
        ] {
            assert_eq!(own_address(http).to_string(), address, "{http:?}");
        }
    }

    #[test]
    fn makes_texts_harmless_wherever_they_are() {
        let object = r#"{"a\u009b":["\u202e",{"b":"\u001b[2J"}],"c":7}"#;
        let merged = merged(serde_json::from_str(object).unwrap(), Map::new(), Some("\u{202e}".to_owned()));
        assert!(!merged.chars().any(|c| c == '\u{202e}' || (c.is_control() && c != '\n')), "{merged:?}");
    }
}
