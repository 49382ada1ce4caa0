//! Readable scenarios: each file of tests/scenarios/ is a script and, below `-- trace`, what happens in
//! virtual time. `cargo test --test scenarios late_answer` plays one, by its file's name.
//!
//! A difference fails, and shows it. `BELLWETHER_REWRITE=1 cargo test --test scenarios` writes the traces
//! anew; read the difference that `git diff` shows then: a trace is right only if it is what one wants to see
//! of a cluster.
//!
//! The script, a command a line (`#` begins a comment, a time is `250ms` or `5s`, a list is `p1 p2` or
//! `all`):
//!
//! | command | meaning |
//! | --- | --- |
//! | `cluster 3 variant=paper preempt=never evidence=off expect=3 delay=5ms` | first, and once |
//! | `cluster 3 safety=majority`, `cluster 5 voters=p1,p2,p3` | all vote, or these |
//! | `priority p3 0`, `revision p1 a`, `settings p1 preempt=5s lease=3s` | before its start |
//! | `start p1 p2`, `start p7 at p3` | the latter takes the address of p3 |
//! | `restart p3`, `restart p3 without record`, `restart p3 at 33` | `at`: with the address 198.18.0.33 |
//! | `crash p3`, `vanish p3`, `stop p3`, `pause p3`, `resume p3` | `vanish`: its host is gone, too |
//! | `ask p3 resign`, `ask p3 resign for 60s`, `ask p3 transfer p1`, `ask p2 cordon`, `ask p2 uncordon` | |
//! | `app p1 runs`, `app p1 ends` | one more lifeline of its application is open, or one less |
//! | `partition p1 \| p2 p3`, `heal` | |
//! | `drop next coordinator p3 -> p1`, `duplicate next …`, `delay next … by 1s` | one message each |
//! | `inject p3 -> p1 coordinator epoch 1` | as if p3 had sent it |
//! | `list p1 p2`, `list none` | what discovery finds from now on |
//! | `trace on`, `trace off`, `trace heartbeats` | off at first |
//! | `run 5s`, `run until settled`, `run until settled within 2s` | settled: all agree on a leader that lives |
//! | `expect leader p2 everywhere epoch 2`, `expect leader p1 at p1 p3 [epoch 2]` | |
//! | `expect no leader [at p1]`, `expect changes 1`, `expect elections 0` | since the last `mark` |
//! | `expect answer done`, `expect answer no member has the name p9` | of the latest operation; a part of it is enough |
//! | `expect members p1 p2 at p3`, `expect failed p1 at p3`, `expect gone p3` | `gone`: it does not run |

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use bellwether::election::{
    Body, CrashEvidence, Epoch, Event, ListWanted, Message, Operation, Preempt, Priority, Role, Safety,
    Settings, Sign, State, Variant,
};
use libtest_mimic::{Arguments, Trial};
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::network::{Effect, Rule};
use support::trace::Detail;
use support::world::{Options, World, address, id, number};

const MARK: &str = "-- trace";
/// Fewer files would mean that some are not found.
const SCENARIOS_MIN: usize = 22;
/// How long an operator waits.
const WITHIN: Duration = Duration::from_secs(10);
/// "Until settled" never waits longer.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);

struct Script {
    world: World,
    settings: Settings,
    changes: u64,
    elections: u64,
}

type Verdict = Result<(), String>;

fn time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|e| format!("{text}: {e}"))
}

fn process(text: &str) -> Result<usize, String> {
    text.strip_prefix('p').and_then(|k| k.parse().ok()).ok_or_else(|| format!("{text} is no process"))
}

/// The message that a script injects.
fn injected(name: &str, epoch: &str) -> Result<Message, String> {
    let body = match name {
        "election" => Body::Election,
        "answer" => Body::Answer,
        "declare" => Body::Declare,
        "coordinator" => Body::Coordinator { elected_at_ms: 0 },
        "leader_query" => Body::LeaderQuery { list: ListWanted::Whole },
        other => return Err(format!("cannot inject {other}")),
    };
    let epoch = Epoch(epoch.parse().map_err(|_| format!("{epoch} is no number"))?);
    Ok(Message { epoch, priority: Priority::DEFAULT, body })
}

fn operation(words: &[&str]) -> Result<Operation, String> {
    Ok(match words {
        ["resign"] => Operation::Resign { stand_aside: None },
        ["resign", "for", aside] => Operation::Resign { stand_aside: Some(time(aside)?) },
        ["transfer", to] => Operation::Transfer { to: (*to).to_owned() },
        ["cordon"] => Operation::Cordon,
        ["uncordon"] => Operation::Uncordon,
        _ => return Err("no such operation".to_owned()),
    })
}

fn set(settings: &mut Settings, options: &mut Options, word: &str) -> Verdict {
    let (key, value) = word.split_once('=').ok_or_else(|| format!("{word}: expected key=value"))?;
    match (key, value) {
        ("variant", "optimized") => settings.variant = Variant::Optimized,
        ("variant", "announcer") => settings.variant = Variant::Announcer,
        ("variant", "paper") => settings.variant = Variant::Paper,
        ("variant", "detector") => settings.variant = Variant::Detector,
        ("preempt", "always") => settings.preempt = Preempt::Always,
        ("preempt", "never") => settings.preempt = Preempt::Never,
        ("preempt", delay) => settings.preempt = Preempt::After(time(delay)?),
        ("evidence", "off") => {
            settings.crash_evidence = CrashEvidence::Off;
            options.evidence = false;
        }
        ("evidence", "release") => settings.crash_evidence = CrashEvidence::Release,
        ("safety", "majority") => settings.safety = Safety::Majority { voters: BTreeSet::new() },
        ("voters", names) => {
            settings.safety = Safety::Majority { voters: names.split(',').map(str::to_owned).collect() };
        }
        ("expect", n) => settings.expect = n.parse().map_err(|_| format!("{n} is no number"))?,
        ("lease", lease) => settings.failure_timeout = time(lease)?,
        ("delay", delay) => options.delay = time(delay)?,
        _ => return Err(format!("{word}: no such setting")),
    }
    Ok(())
}

impl Script {
    fn open(line: &str) -> Result<Script, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["cluster", n, rest @ ..] = &words[..] else {
            return Err("a script begins with `cluster N`".to_string());
        };
        let n = n.parse().map_err(|_| format!("{n} is no number"))?;
        let (mut settings, mut options) = (Settings::default(), Options::default());
        for word in rest {
            set(&mut settings, &mut options, word)?;
        }
        if settings.safety == (Safety::Majority { voters: BTreeSet::new() }) {
            settings.safety = Safety::Majority { voters: (1..=n).map(|k| format!("p{k}")).collect() };
        }
        let world = World::new(n, &settings, options);
        Ok(Script { world, settings, changes: 0, elections: 0 })
    }

    fn list(&self, words: &[&str]) -> Result<Vec<usize>, String> {
        match words {
            ["all"] => Ok(self.world.nodes.keys().copied().collect()),
            _ => words.iter().map(|w| process(w)).collect(),
        }
    }

    fn elections(&self) -> u64 {
        self.world.sent_of(&["election"])
    }

    fn command(&mut self, line: &str) -> Verdict {
        let words: Vec<&str> = line.split_whitespace().collect();
        match &words[..] {
            ["priority", p, priority] => {
                let priority = priority.parse().map_err(|_| format!("{priority} is no number"))?;
                self.world.node_mut(process(p)?).priority = Priority(priority);
            }
            ["revision", p, revision] => {
                self.world.node_mut(process(p)?).revision = (*revision).to_string();
            }
            ["settings", p, rest @ ..] => {
                for word in rest {
                    let mut none = Options::default();
                    set(&mut self.world.node_mut(process(p)?).settings, &mut none, word)?;
                }
            }
            ["start", p, "at", other] => {
                let address = self.world.node(process(other)?).address;
                self.start_at(process(p)?, address);
            }
            ["start", list @ ..] => {
                for k in self.list(list)? {
                    self.world.start(k, true);
                }
            }
            ["restart", p] => self.world.start(process(p)?, true),
            ["restart", p, "without", "record"] => self.world.start(process(p)?, false),
            ["restart", p, "at", place] => {
                let k = process(p)?;
                self.restart_at(k, place.parse().map_err(|_| format!("{place} is no number"))?);
            }
            ["crash", list @ ..] => self.list(list)?.into_iter().for_each(|k| self.world.crash(k)),
            ["vanish", list @ ..] => self.list(list)?.into_iter().for_each(|k| self.world.vanish(k)),
            ["stop", list @ ..] => self.list(list)?.into_iter().for_each(|k| self.world.stop(k)),
            ["pause", list @ ..] => self.list(list)?.into_iter().for_each(|k| self.world.pause(k)),
            ["resume", list @ ..] => self.list(list)?.into_iter().for_each(|k| self.world.resume(k)),
            ["ask", p, what @ ..] => self.ask(process(p)?, what)?,
            ["app", p, what] => self.application(process(p)?, what)?,
            ["partition", groups @ ..] => {
                let groups: Result<Vec<_>, _> = groups.split(|w| *w == "|").map(|g| self.list(g)).collect();
                self.world.partition(&groups?);
            }
            ["heal"] => self.world.heal(),
            ["drop", "next", name, from, "->", to] => self.rule(name, from, to, Effect::Drop)?,
            ["duplicate", "next", name, from, "->", to] => self.rule(name, from, to, Effect::Duplicate)?,
            ["delay", "next", name, from, "->", to, "by", by] => {
                self.rule(name, from, to, Effect::Delay(time(by)?))?;
            }
            ["inject", from, "->", to, name, "epoch", epoch] => {
                let message = injected(name, epoch)?;
                self.world.trace.line(self.world.now, &format!("+ {line}"));
                self.world.tell(process(to)?, Event::Received { from: id(process(from)?), message });
            }
            ["list", "none"] => self.world.listed.clear(),
            ["list", list @ ..] => {
                let listed = self.list(list)?.into_iter().map(|k| self.world.node(k).address).collect();
                self.world.listed = listed;
            }
            ["trace", "on"] => self.world.trace.detail = Detail::On,
            ["trace", "off"] => self.world.trace.detail = Detail::Off,
            ["trace", "heartbeats"] => self.world.trace.detail = Detail::Heartbeats,
            ["run", "until", "settled"] => self.settle(SETTLED_WITHIN)?,
            ["run", "until", "settled", "within", limit] => self.settle(time(limit)?)?,
            ["run", span] => self.world.run(time(span)?),
            ["mark"] => (self.changes, self.elections) = (self.world.leader_changes, self.elections()),
            ["expect", what @ ..] => self.expect(what)?,
            _ => return Err("no such command".to_string()),
        }
        Ok(())
    }

    fn ask(&mut self, k: usize, what: &[&str]) -> Verdict {
        self.world.trace.line(self.world.now, &format!("+ ask p{k} {}", what.join(" ")));
        let (operation, within) = (operation(what)?, WITHIN);
        self.world.tell(k, Event::Operation { number: 0, operation, within });
        Ok(())
    }

    fn application(&mut self, k: usize, what: &str) -> Verdict {
        let sign = match what {
            "runs" => Sign::LifelineOpened,
            "ends" => Sign::LifelineEnded,
            _ => return Err(format!("{what} is neither runs nor ends")),
        };
        self.world.trace.line(self.world.now, &format!("+ app p{k} {what}"));
        self.world.tell(k, Event::Application(sign));
        Ok(())
    }

    /// A new process starts at an address that another has, or had.
    fn start_at(&mut self, k: usize, address: SocketAddr) {
        self.world.place(k, address, &self.settings);
        self.world.start(k, false);
    }

    /// A process moves, and discovery finds it at its new address alone.
    fn restart_at(&mut self, k: usize, place: usize) {
        let moved = address(place);
        let old = std::mem::replace(&mut self.world.node_mut(k).address, moved);
        self.world.listed.remove(&old);
        self.world.listed.insert(moved);
        self.world.start(k, true);
    }

    fn rule(&mut self, name: &str, from: &str, to: &str, effect: Effect) -> Verdict {
        let (from, to) = (process(from)?, process(to)?);
        self.world.next(Rule { from, to, name: name.to_string(), effect });
        Ok(())
    }

    fn settle(&mut self, within: Duration) -> Verdict {
        let before = self.world.now;
        if !self.world.run_until(within, |w| w.agreed().is_some()) {
            return Err(format!("not settled within {within:?}"));
        }
        let (leader, epoch) = self.world.agreed().unwrap();
        let took = self.world.now - before;
        let text = format!("= settled after {took:?}: p{leader} leads epoch {epoch}");
        self.world.trace.line(self.world.now, &text);
        Ok(())
    }

    fn expect(&mut self, what: &[&str]) -> Verdict {
        match what {
            ["leader", p, "everywhere"] => self.expect_agreed(process(p)?, None),
            ["leader", p, "everywhere", "epoch", epoch] => {
                self.expect_agreed(process(p)?, epoch.parse().ok())
            }
            ["leader", p, "at", list @ .., "epoch", epoch] => {
                self.expect_leader(process(p)?, list, epoch.parse().ok())
            }
            ["leader", p, "at", list @ ..] => self.expect_leader(process(p)?, list, None),
            ["answer", text @ ..] => {
                let (said, expected) = (self.world.answers.last(), text.join(" "));
                let found = said.is_some_and(|said| said.contains(&expected));
                if found { Ok(()) } else { Err(format!("the latest answer is {said:?}")) }
            }
            ["no", "leader"] => self.expect_none(&self.world.live()),
            ["no", "leader", "at", list @ ..] => self.expect_none(&self.list(list)?),
            ["changes", n] => same("changes", n, self.world.leader_changes - self.changes),
            ["elections", n] => same("elections", n, self.elections() - self.elections),
            ["members", list @ .., "at", p] => {
                let mut expected = self.list(list)?;
                expected.sort_unstable();
                let members = self.world.status(process(p)?).members;
                let mut found: Vec<usize> = members.iter().map(|m| number(m.peer.id)).collect();
                found.sort_unstable();
                if found == expected { Ok(()) } else { Err(format!("the members are {found:?}")) }
            }
            ["failed", p, "at", other] => {
                let member = id(process(p)?);
                let members = self.world.status(process(other)?).members;
                let failed = members.iter().any(|m| m.peer.id == member && m.state == State::Failed);
                if failed { Ok(()) } else { Err(format!("{p} is not held failed")) }
            }
            ["gone", p] => {
                let gone = !self.world.live().contains(&process(p)?);
                if gone { Ok(()) } else { Err(format!("{p} runs")) }
            }
            _ => Err("no such expectation".to_string()),
        }
    }

    fn expect_agreed(&self, leader: usize, epoch: Option<u64>) -> Verdict {
        match self.world.agreed() {
            Some((l, e)) if l == leader && epoch.is_none_or(|epoch| e == Epoch(epoch)) => Ok(()),
            other => Err(format!("agreed is {other:?}")),
        }
    }

    fn expect_leader(&self, leader: usize, at: &[&str], epoch: Option<u64>) -> Verdict {
        for k in self.list(at)? {
            let status = self.world.status(k);
            let role = if k == leader { Role::Leading } else { Role::Following };
            let known = status.leader.as_ref().map(|l| number(l.peer.id));
            let epoch_is = epoch.is_none_or(|e| status.epoch == Epoch(e));
            if known != Some(leader) || status.role != role || !epoch_is {
                return Err(format!("p{k} has {known:?}, is {}, epoch {}", status.role.name(), status.epoch));
            }
        }
        Ok(())
    }

    fn expect_none(&self, at: &[usize]) -> Verdict {
        match at.iter().find(|k| self.world.status(**k).leader.is_some()) {
            None => Ok(()),
            Some(k) => Err(format!("p{k} has a leader")),
        }
    }
}

fn same(what: &str, expected: &str, found: u64) -> Verdict {
    if expected.parse() == Ok(found) { Ok(()) } else { Err(format!("{what}: {found}")) }
}

/// Runs a script, and says what its trace is.
fn play(input: &str) -> Result<Vec<String>, String> {
    let lines = input.lines().enumerate().map(|(n, l)| (n + 1, l.split('#').next().unwrap_or("").trim()));
    let mut commands = lines.filter(|(_, line)| !line.is_empty());
    let (_, first) = commands.next().ok_or("the script is empty")?;
    let mut script = Script::open(first)?;
    for (number, line) in commands {
        script.command(line).map_err(|e| {
            let trace = script.world.trace.lines.join("\n");
            format!("line {number}, `{line}`: {e}; the trace up to there:\n{trace}")
        })?;
    }
    if let [rule, ..] = script.world.unmet() {
        return Err(format!("no message met {rule:?}"));
    }
    Ok(script.world.trace.lines)
}

/// The lines that differ, with those around them left out.
fn difference(expected: &[&str], found: &[String]) -> String {
    let first = expected.iter().zip(found).position(|(e, f)| *e != f.as_str());
    let first = first.unwrap_or(expected.len().min(found.len()));
    let mut text = format!("the trace differs from its line {}:\n", first + 1);
    for line in expected.iter().skip(first).take(12) {
        text += &format!("- {line}\n");
    }
    for line in found.iter().skip(first).take(12) {
        text += &format!("+ {line}\n");
    }
    text
}

fn check(file: &Path, rewrite: bool) -> Verdict {
    let text = fs::read_to_string(file).map_err(|e| e.to_string())?;
    let (input, expected) = text.split_once(MARK).unwrap_or((&text, ""));
    let found = play(input)?;
    let expected: Vec<&str> = expected.trim_start_matches('\n').lines().collect();
    if found.iter().map(String::as_str).eq(expected.iter().copied()) {
        return Ok(());
    }
    if rewrite {
        let text = format!("{}\n\n{MARK}\n{}\n", input.trim_end(), found.join("\n"));
        return fs::write(file, text).map_err(|e| e.to_string());
    }
    Err(difference(&expected, &found))
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|e| e == "txt")).collect();
    files.sort();
    files
}

/// One test for each file, by the file's name, and the two tests of this harness itself.
fn main() {
    let rewrite = std::env::var_os("BELLWETHER_REWRITE").is_some();
    let scenario = |file: PathBuf| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Trial::test(name, move || {
            check(&file, rewrite)
                .map_err(|why| format!("{why}\nBELLWETHER_REWRITE=1 writes the trace anew").into())
        })
    };
    let mut tests: Vec<Trial> = files().into_iter().map(scenario).collect();
    assert!(tests.len() >= SCENARIOS_MIN, "{} scenarios", tests.len());
    let own: [(&str, fn()); 2] = [
        ("a_difference_is_found", a_difference_is_found),
        ("a_broken_expectation_is_found", a_broken_expectation_is_found),
    ];
    tests.extend(own.map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    }));
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

fn a_difference_is_found() {
    let found = play("cluster 1\ntrace on\nstart all\nrun 2s").unwrap();
    assert!(found.iter().any(|l| l.contains("LEADS epoch 1")));
    let text = difference(&["something else"], &found);
    assert!(text.contains("- something else") && text.contains("+ ") && text.contains("start p1"), "{text}");
}

fn a_broken_expectation_is_found() {
    for (expectation, why) in [
        ("expect leader p2 everywhere", "agreed is Some((3, Epoch(1)))"),
        ("expect leader p3 everywhere epoch 2", "agreed is Some((3, Epoch(1)))"),
        ("expect leader p2 at p1", "p1 has Some(3)"),
        ("expect no leader", "p1 has a leader"),
        ("expect changes 0", "changes: 1"),
        ("expect elections 1", "elections: 0"),
        ("expect members p1 p2 at p3", "the members are [1, 2, 3]"),
        ("expect failed p1 at p3", "not held failed"),
        ("expect gone p3", "p3 runs"),
        ("expect answer done", "the latest answer is None"),
        ("ask p3 stumble", "no such operation"),
        ("expect nothing", "no such expectation"),
        ("drop next election p1 -> p2", "no message met"),
        ("stumble p1", "no such command"),
        ("crash p3\nrun until settled within 0s", "not settled"),
    ] {
        let said = play(&format!("cluster 3\nstart all\nrun until settled\n{expectation}")).unwrap_err();
        assert!(said.contains(why), "{expectation}: {said}");
    }
}
