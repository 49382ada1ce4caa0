//! The table of events in docs/logs.md, and whether a line of a log keeps to it.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

const COMMON: [&str; 6] = ["ts", "level", "target", "election", "event", "msg"];
const ANY: &str = "not_shown";

/// What a line of one event holds.
#[derive(Debug)]
pub struct Documented {
    pub levels: BTreeSet<String>,
    always: BTreeSet<String>,
    sometimes: BTreeSet<String>,
}

/// The events of docs/logs.md by name.
pub fn documented() -> BTreeMap<String, Documented> {
    let text = include_str!("../../docs/logs.md");
    let rows = text.split("## Events").nth(1).unwrap().lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let of_row = cells.flat_map(|cells| {
        let keys = cells[3].split(", ").filter(|key| !key.is_empty());
        let (sometimes, always): (Vec<_>, Vec<_>) = keys.partition(|key| key.starts_with('('));
        let plain = |keys: &[&str]| keys.iter().map(|key| key.trim_matches(['(', ')', '`']).into()).collect();
        let levels = || cells[2].split(", ").map(str::to_owned).collect();
        let events = cells[1].split(", ").map(|event| {
            let held = Documented { levels: levels(), always: plain(&always), sometimes: plain(&sometimes) };
            (event.trim_matches('`').to_owned(), held)
        });
        events.collect::<Vec<_>>()
    });
    of_row.collect()
}

/// Fails unless each line is an object that holds what the table says. Returns the events that were seen.
pub fn check(log: &str, table: &BTreeMap<String, Documented>) -> BTreeSet<String> {
    log.lines().map(|line| check_line(line, table).unwrap_or_else(|why| panic!("{why}: {line}"))).collect()
}

fn check_line(line: &str, table: &BTreeMap<String, Documented>) -> Result<String, String> {
    let fields: Map<String, Value> = serde_json::from_str(line).map_err(|e| e.to_string())?;
    let text = |key: &str| fields.get(key).and_then(Value::as_str).ok_or_else(|| format!("no {key}"));
    for key in COMMON {
        text(key)?;
    }
    let (event, level) = (text("event")?, text("level")?.to_lowercase());
    let held = table.get(event).ok_or("an event that the table does not name")?;
    if !held.levels.contains(&level) {
        return Err(format!("not of {:?}", held.levels));
    }
    let others = || fields.keys().map(String::as_str).filter(|key| !COMMON.contains(key) && *key != ANY);
    if let Some(key) = others().find(|key| !held.always.contains(*key) && !held.sometimes.contains(*key)) {
        return Err(format!("{key} is not documented"));
    }
    match held.always.iter().find(|key| !fields.contains_key(*key)) {
        Some(key) => Err(format!("{key} is missing")),
        None => Ok(event.to_owned()),
    }
}
