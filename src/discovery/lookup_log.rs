//! Says in the log how the look-ups go: once a change, and never in a flood.

use super::{Lookup, LookupResult, NameAnswer};
use crate::base::LogEvent;
use std::time::{Duration, Instant};

/// The most lines in one [`WINDOW`]. A name server that answers differently every time must not fill a disk.
const LINES_MAX: u32 = 10;
/// The time that [`LINES_MAX`] counts for.
const WINDOW: Duration = Duration::from_secs(60);
/// The most names that one line spells out.
const NAMES_MAX: usize = 3;
/// That no peer is published is no news at a start. After this time it is a fault.
const PUBLISHED_WITHIN: Duration = Duration::from_secs(10);

/// What has been said.
#[derive(Debug)]
pub(super) struct LookupLog {
    said: Option<String>,
    window: Option<Instant>,
    lines: u32,
    /// When none was published first.
    empty_since: Option<Instant>,
    /// Whether a look-up has ever found one.
    found: bool,
}

impl LookupLog {
    pub(super) fn new() -> LookupLog {
        LookupLog { said: None, window: None, lines: 0, empty_since: None, found: false }
    }

    /// Logs what `lookup`, which ended `now`, says that the last line did not. Returns what it warns of,
    /// logged now or before.
    pub(super) fn tell(&mut self, lookup: &Lookup, now: Instant) -> Option<String> {
        let (text, well) = self.state(lookup, now);
        if let Some(line) = self.line(&text, now) {
            let event = if well { LogEvent::info("discovery") } else { LogEvent::warn("discovery") };
            say(event, lookup, line);
        }
        (!well).then_some(text)
    }

    /// What to say of a look-up, and whether all is well.
    fn state(&mut self, lookup: &Lookup, now: Instant) -> (String, bool) {
        match self.waits(lookup, now) {
            Some(early) => (describe_empty(&lookup.names, early), early),
            None => (describe(lookup), lookup.complete && lookup.left_out == 0),
        }
    }

    /// Whether that no peer is published is no fault yet; none: one is, or it is not known.
    fn waits(&mut self, lookup: &Lookup, now: Instant) -> Option<bool> {
        match lookup.result {
            LookupResult::Found(_) => {
                self.found = true;
                None
            }
            LookupResult::Empty if !lookup.names.is_empty() => {
                let since = *self.empty_since.get_or_insert(now);
                Some(!self.found && now.saturating_duration_since(since) < PUBLISHED_WITHIN)
            }
            _ => None,
        }
    }

    /// The line for `text`; none: it has been said, or there were too many.
    fn line(&mut self, text: &str, now: Instant) -> Option<String> {
        if self.said.as_deref() == Some(text) {
            return None;
        }
        let over = |began: Instant| now.saturating_duration_since(began) >= WINDOW;
        if self.window.is_none_or(over) {
            self.window = Some(now);
            self.lines = 0;
        }
        self.lines += 1;
        if self.lines > LINES_MAX {
            // Not logged yet: a state that lasts is logged once the window is over.
            return None;
        }
        let line = if self.lines == LINES_MAX {
            let window = WINDOW.as_secs();
            format!("{text} (the answers change often: nothing more of it within {window} s)")
        } else {
            text.to_owned()
        };
        self.said = Some(text.to_owned());
        Some(line)
    }
}

fn say(event: LogEvent, lookup: &Lookup, line: String) {
    let found = match &lookup.result {
        LookupResult::Found(addresses) => Some(addresses.len()),
        _ => None,
    };
    let left_out = (lookup.left_out > 0).then_some(lookup.left_out);
    event.with_some("addresses", found).with_some("left_out", left_out).say(line);
}

fn describe(lookup: &Lookup) -> String {
    let troubles = troubles(&lookup.names);
    match &lookup.result {
        LookupResult::Found(addresses) => {
            let count = addresses.len();
            let noun = if count == 1 { "address" } else { "addresses" };
            let mut text = format!("{count} {noun} where peers may be");
            if lookup.left_out > 0 {
                text += &format!(", which is the limit; {} more are left out", lookup.left_out);
            }
            if !troubles.is_empty() {
                text += &format!("; kept what was known of {troubles}");
            }
            text
        }
        LookupResult::Empty => "nowhere to look for peers: neither a Service nor peers were given".into(),
        LookupResult::Unknown { .. } => {
            format!("cannot find out where peers are; kept what was known of {troubles}")
        }
    }
}

fn describe_empty(names: &[NameAnswer], early: bool) -> String {
    let all: Vec<&str> = names.iter().take(NAMES_MAX).map(|name| name.name.as_str()).collect();
    let more = if early {
        "a name server names a new process within seconds"
    } else {
        "is there a headless Service of that name, with publishNotReadyAddresses, that selects these pods?"
    };
    format!("no peer is published under {}; {more}", all.join(", "))
}

/// The names that have not answered well, and why.
fn troubles(names: &[NameAnswer]) -> String {
    let all: Vec<String> = names.iter().filter_map(trouble).collect();
    let mut text = all.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
    if all.len() > NAMES_MAX {
        text += &format!(" and {} more names", all.len() - NAMES_MAX);
    }
    text
}

fn trouble(name: &NameAnswer) -> Option<String> {
    let why = match name.unknown() {
        Some((family, reason)) => format!("{}: {reason}", family.record()),
        None if name.found() => return None,
        None => "no address is published".into(),
    };
    Some(format!("{} ({why})", name.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::Resolution;
    use core::net::SocketAddr;

    fn found(count: u8) -> Resolution {
        Resolution::Found((0..count).map(|n| SocketAddr::from(([198, 18, 0, n], 0))).collect())
    }

    fn lookup(answer: Resolution) -> Lookup {
        let result = match &answer {
            Resolution::Found(addresses) => LookupResult::Found(addresses.clone()),
            Resolution::Empty => LookupResult::Empty,
            Resolution::Unknown(reason) => LookupResult::Unknown { reason: reason.clone() },
        };
        Lookup {
            complete: matches!(result, LookupResult::Found(_)),
            result,
            left_out: 0,
            names: vec![NameAnswer { name: "app.".into(), v4: answer, v6: Resolution::Empty }],
            warning: None,
        }
    }

    fn line_of(log: &mut LookupLog, lookup: &Lookup, now: Instant) -> Option<String> {
        let (text, _) = log.state(lookup, now);
        log.line(&text, now)
    }

    #[test]
    fn says_each_change_once() {
        let mut log = LookupLog::new();
        let now = Instant::now();
        let again = || Resolution::Unknown("try again".into());
        let steps = [
            (found(3), Some("3 addresses where peers may be")),
            (found(3), None),
            (found(2), Some("2 addresses where peers may be")),
            (again(), Some("cannot find out where peers are; kept what was known of app. (A: try again)")),
            (again(), None),
            (
                Resolution::Empty,
                Some(
                    "no peer is published under app.; is there a headless Service of that name, with \
                     publishNotReadyAddresses, that selects these pods?",
                ),
            ),
            (Resolution::Empty, None),
            (found(1), Some("1 address where peers may be")),
            (found(2), Some("2 addresses where peers may be")),
        ];
        for (answer, line) in steps {
            assert_eq!(line_of(&mut log, &lookup(answer), now).as_deref(), line);
        }
    }

    #[test]
    fn says_what_is_left_out_and_which_names_had_no_answer() {
        let mut partial = lookup(found(2));
        partial.left_out = 7;
        partial.names[0].v6 = Resolution::Unknown("refused".into());
        let names = (0..5).map(|n| NameAnswer {
            name: format!("n{n}"),
            v4: Resolution::Empty,
            v6: Resolution::Empty,
        });
        partial.names.extend(names);
        assert_eq!(
            line_of(&mut LookupLog::new(), &partial, Instant::now()).unwrap(),
            "2 addresses where peers may be, which is the limit; 7 more are left out; kept what \
             was known of app. (AAAA: refused), n0 (no address is published), n1 (no address is published) \
             and 3 more names",
        );
    }

    #[test]
    fn that_none_is_published_is_a_fault_when_it_lasts() {
        let (mut log, began) = (LookupLog::new(), Instant::now());
        let empty = lookup(Resolution::Empty);
        let line = |log: &mut LookupLog, after: Duration| line_of(log, &empty, began + after);
        let early = line(&mut log, Duration::ZERO).unwrap();
        assert!(early.contains("within seconds"), "{early}");
        assert_eq!(line(&mut log, PUBLISHED_WITHIN / 2), None);
        let late = line(&mut log, PUBLISHED_WITHIN).unwrap();
        assert!(late.contains("is there a headless Service"), "{late}");
        assert_eq!(line(&mut log, WINDOW), None);
        assert_eq!(log.tell(&empty, began + WINDOW), Some(late));
    }

    #[test]
    fn warns_as_long_as_it_lasts() {
        let (mut log, now) = (LookupLog::new(), Instant::now());
        assert_eq!(log.tell(&lookup(Resolution::Empty), now), None);
        assert_eq!(log.tell(&lookup(found(2)), now), None);
        let silent = lookup(Resolution::Unknown("refused".into()));
        let warned = log.tell(&silent, now).unwrap();
        assert!(warned.starts_with("cannot find out where peers are"), "{warned}");
        assert_eq!(log.tell(&silent, now), Some(warned));
        assert_eq!(log.tell(&lookup(found(2)), now), None);
    }

    #[test]
    fn cannot_be_made_to_flood_and_says_a_lasting_state_later() {
        let mut log = LookupLog::new();
        let began = Instant::now();
        let flapping = (0..1000u32).map(|n| lookup(found(if n % 2 == 0 { 3 } else { 2 })));
        let lines: Vec<String> = flapping.filter_map(|lookup| line_of(&mut log, &lookup, began)).collect();
        assert_eq!(lines.len(), LINES_MAX as usize);
        assert!(lines[LINES_MAX as usize - 1].contains("change often"), "{lines:?}");
        let lasting = lookup(found(9));
        assert_eq!(line_of(&mut log, &lasting, began + WINDOW / 2), None);
        assert!(line_of(&mut log, &lasting, began + WINDOW).is_some());
        assert_eq!(line_of(&mut log, &lasting, began + WINDOW), None);
    }
}
