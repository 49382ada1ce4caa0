//! The rules that hold for the sources as text: which part may use which, what the election must not touch,
//! and house rules that no compiler checks. Each rule is a function from text to complaints, and each is
//! shown bad text once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A file longer than this is more than one concept.
const LINES_MAX: usize = 800;
/// A function longer than this does more than one thing.
const FUNCTION_LINES_MAX: usize = 70;
/// The longest line, in characters, of code, comments and prose.
const COLUMNS_MAX: usize = 110;

/// Words that the field has other words for, and those words. Only whole words count, in any case and any
/// number.
const RETIRED: [(&str, &str); 15] = [
    ("handover", "transfer, or resignation"),
    ("farewell", "resignation"),
    ("roster", "members"),
    ("sounding", "pre-vote"),
    ("fruitless", "round_failed"),
    ("letter_of_the_paper", "strict_paper"),
    ("chronicle", "event log"),
    ("line_queue", "log_writer"),
    ("viewstamp", "ConfigVersion"),
    ("recollection", "RecoveredState"),
    ("nobody", "no process, or another named subject"),
    ("somebody", "a process, or another named subject"),
    ("everybody", "every process, or another named subject"),
    ("whoever", "the process that, or another named subject"),
    ("whom", "a named object"),
];

/// Which folder may use which. `base` and `net` are bases, `election` the vocabulary; arrows only point up
/// this list.
const MAY_USE: [(&str, &[&str]); 20] = [
    ("election", &[]),
    ("base", &["election"]),
    ("net", &["base", "election"]),
    ("wire", &["base", "election"]),
    ("store", &["base", "election"]),
    ("discovery", &["base", "election"]),
    ("telemetry", &["base", "election"]),
    ("channel", &[]),
    ("transport", &["base", "channel", "election", "net", "wire"]),
    ("http", &["base", "election", "net", "telemetry"]),
    ("config", &["base", "channel", "election", "telemetry"]),
    ("control", &["base", "config", "election", "net", "telemetry"]),
    (
        "node",
        &[
            "base",
            "channel",
            "config",
            "control",
            "discovery",
            "election",
            "http",
            "net",
            "store",
            "telemetry",
            "transport",
            "wire",
        ],
    ),
    ("client", &["base", "config", "election", "telemetry"]),
    ("build", &[]),
    ("status", &["client", "config", "telemetry"]),
    ("demo", &["base", "config", "election", "http", "net", "telemetry"]),
    ("sim", &["base", "config", "election"]),
    ("inject", &["config", "election", "telemetry"]),
    ("lib", &["client", "config", "control", "demo", "inject", "node", "sim", "status", "telemetry"]),
];

/// What the election must not touch, as it stands in sources, and why.
const IMPURE: [(&str, &str); 16] = [
    ("std::net", "sockets; core::net has the addresses"),
    ("Instant", "a clock; the time is an argument"),
    ("SystemTime", "a clock; the time is an argument"),
    ("std::thread", "threads"),
    ("std::sync", "threads; std::sync::Arc shares data that never changes"),
    ("std::fs", "files"),
    ("std::io", "input and output"),
    ("std::env", "the environment"),
    ("env!", "the environment"),
    ("std::process", "other processes"),
    ("log::", "a log; Action::Notification says what is worth a line"),
    ("print!", "a terminal"),
    ("println!", "a terminal"),
    ("rand", "randomness"),
    ("new_v4", "randomness"),
    ("HashMap", "an order that differs from run to run"),
];

/// A file of the program: where it is under src/, with `/`, and what is in it.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Source {
        Source { path: path.to_string(), text: text.to_string() }
    }

    /// The part of the program that it belongs to: the folder or file directly under src/.
    fn part(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or("");
        let first = first.strip_suffix(".rs").unwrap_or(first);
        if first == "main" { "lib" } else { first }
    }

    /// Whether all of it is tests.
    fn is_test(&self) -> bool {
        self.path.ends_with("tests.rs") || self.path.contains("/tests/")
    }

    /// Its lines with their numbers, without comments and the contents of strings, and without what stands
    /// below `#[cfg(test)] mod`, which is at the end of a file by custom.
    fn code(&self) -> Vec<(usize, String)> {
        let mut code = Vec::new();
        let mut lines = self.text.lines().enumerate().peekable();
        while let Some((number, line)) = lines.next() {
            let next = lines.peek().map_or("", |(_, next)| next.trim_start());
            if line.trim() == "#[cfg(test)]" && next.starts_with("mod ") && next.ends_with('{') {
                break;
            }
            code.push((number + 1, without_comment(line)));
        }
        code
    }
}

/// A line without its comment and with strings emptied. Strings of several lines are not known to it.
fn without_comment(line: &str) -> String {
    let mut code = String::new();
    let (mut in_string, mut escaped) = (false, false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        if in_string {
            in_string = escaped || letter != '"';
            escaped = !escaped && letter == '\\';
            if !in_string {
                code.push(letter);
            }
            continue;
        }
        match letter {
            '"' => in_string = true,
            '/' if letters.peek() == Some(&'/') => break,
            // A quotation mark as a character.
            '\'' if line.contains("'\"'") && letters.peek() == Some(&'"') => {
                letters.next();
            }
            _ => {}
        }
        code.push(letter);
    }
    code
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Whether the line has the text, and not as a part of a longer word.
fn has_word(line: &str, text: &str) -> bool {
    line.match_indices(text).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(is_word);
        let after = line[at + text.len()..].chars().next().is_some_and(is_word);
        let open_end = !text.chars().next_back().is_some_and(is_word);
        !before && (open_end || !after)
    })
}

/// The parts that a line names after `crate::`, braces and all.
fn used_parts(text: &str) -> Vec<(usize, String)> {
    let mut used = Vec::new();
    for prefix in ["crate::", "bellwether::"] {
        for (at, _) in text.match_indices(prefix) {
            if text[..at].chars().next_back().is_some_and(is_word) {
                continue;
            }
            let line = text[..at].matches('\n').count() + 1;
            let rest = &text[at + prefix.len()..];
            let mut add = |name: &str| {
                let word: String = name.trim().chars().take_while(|c| is_word(*c)).collect();
                if !word.is_empty() {
                    used.push((line, word));
                }
            };
            match rest.strip_prefix('{') {
                None => add(rest),
                Some(list) => outermost(list).iter().for_each(|name| add(name)),
            }
        }
    }
    used
}

/// The items of a list in braces, up to its end; those in inner braces belong to their item.
fn outermost(list: &str) -> Vec<String> {
    let (mut items, mut depth) = (vec![String::new()], 0);
    for letter in list.chars() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => items.push(String::new()),
            _ => {}
        }
        if let Some(last) = items.last_mut().filter(|_| letter != ',' || depth > 0) {
            last.push(letter);
        }
    }
    items
}

/// Folders use only what stands in the table.
fn dependencies(source: &Source) -> Vec<String> {
    let part = source.part();
    let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == part) else {
        return vec![format!("src/{}: {part} is not in the table of tests/tidy.rs", source.path)];
    };
    let known = |name: &str| MAY_USE.iter().any(|(part, _)| *part == name);
    let code: Vec<String> = source.code().into_iter().map(|(_, line)| line).collect();
    let used = used_parts(&code.join("\n")).into_iter();
    let wrong = used.filter(|(_, name)| known(name) && name != part && !allowed.contains(&name.as_str()));
    wrong.map(|(line, name)| format!("src/{}:{line}: {part} must not use {name}", source.path)).collect()
}

/// The election touches nothing but data.
fn purity(source: &Source) -> Vec<String> {
    if source.part() != "election" {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for (number, line) in source.code() {
        for (impure, why) in IMPURE {
            let line = match impure {
                "std::net" => line.replace("core::net", ""),
                "std::sync" => line.replace("std::sync::Arc;", ""),
                _ => line.clone(),
            };
            let named = if impure == "rand" { line.contains("fastrand") } else { false };
            if named || has_word(&line, impure) || in_braces(&line, impure) {
                complaints.push(format!("src/{}:{number}: {impure}: {why}", source.path));
            }
        }
    }
    complaints
}

/// `use std::{io, fs}` names std::io, too.
fn in_braces(line: &str, path: &str) -> bool {
    let Some((root, name)) = path.split_once("::").filter(|(_, name)| !name.is_empty()) else {
        return false;
    };
    let list = line.split_once(&format!("{root}::{{")).map_or("", |(_, list)| list);
    outermost(list).iter().any(|item| has_word(item, name))
}

/// No panic by the way: `unwrap` and `expect` only with an `#[allow]` and a comment near it, and nothing
/// unfinished.
fn panics(source: &Source) -> Vec<String> {
    if source.is_test() {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    let all: Vec<&str> = source.text.lines().collect();
    for (number, line) in source.code() {
        for unfinished in ["todo!", "unimplemented!", "dbg!"] {
            if has_word(&line, unfinished) {
                complaints.push(format!("src/{}:{number}: {unfinished}", source.path));
            }
        }
        if line.contains(".unwrap()") || line.contains(".expect(") || line.contains(".expect_err(") {
            let near = &all[number.saturating_sub(12)..number];
            let allowed = near.iter().any(|l| l.contains("#[allow(clippy::") && l.contains("_used)]"));
            let comment = near.iter().any(|l| l.trim_start().starts_with("//"));
            if !allowed || !comment {
                complaints.push(format!(
                    "src/{}:{number}: unwrap or expect without #[allow] and a comment that proves it",
                    source.path
                ));
            }
        }
    }
    complaints
}

/// Every file says at its head what it is.
fn header(source: &Source) -> Vec<String> {
    let first = source.text.lines().next().unwrap_or("");
    if first.strip_prefix("//! ").is_some_and(|text| !text.trim().is_empty()) {
        return Vec::new();
    }
    vec![format!("src/{}: the first line is no `//!` that says what this file is", source.path)]
}

/// One concept a file.
fn length(source: &Source) -> Vec<String> {
    let lines = source.text.lines().count();
    if lines <= LINES_MAX {
        return Vec::new();
    }
    vec![format!("{}: {lines} lines; at most {LINES_MAX}", source.path)]
}

/// One thing a function. Its end is the brace in the column of its beginning, which rustfmt sees to.
fn function_length(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    let lines: Vec<&str> = source.text.lines().collect();
    for (begin, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let Some(name) = function(line) else { continue };
        let closing = format!("{:indent$}}}", "");
        let length = lines[begin..].iter().position(|line| *line == closing).map_or(1, |end| end + 1);
        if length > FUNCTION_LINES_MAX && !line.trim_end().ends_with(';') {
            let place = format!("{}:{}", source.path, begin + 1);
            complaints.push(format!("{place}: fn {name} has {length} lines; at most {FUNCTION_LINES_MAX}"));
        }
    }
    complaints
}

/// The name of the function that begins in this line.
fn function(line: &str) -> Option<&str> {
    let (_, item) = without_visibility(line);
    let name = item.strip_prefix("const ").unwrap_or(item).strip_prefix("fn ")?;
    name.split(['(', '<']).next()
}

/// Whether this line makes an item public, and the line from the item's kind on.
fn without_visibility(line: &str) -> (bool, &str) {
    let item = line.trim_start();
    let Some(rest) = item.strip_prefix("pub") else { return (false, item) };
    let rest = rest.strip_prefix('(').map_or(rest, |rest| rest.split_once(')').map_or("", |(_, rest)| rest));
    rest.strip_prefix(' ').map_or((false, item), |item| (true, item))
}

/// Lines fit beside each other on a screen. Tables and addresses cannot be broken.
fn columns(source: &Source) -> Vec<String> {
    let long = source.text.lines().enumerate().filter(|(_, line)| {
        let content = line.trim_start().trim_start_matches(['/', '!']).trim_start();
        line.chars().count() > COLUMNS_MAX && !content.starts_with('|') && !line.contains("://")
    });
    let complain = |(number, line): (usize, &str)| {
        let columns = line.chars().count();
        format!("{}:{}: {columns} columns; at most {COLUMNS_MAX}", source.path, number + 1)
    };
    long.map(complain).collect()
}

/// One word for one thing. This file names the retired ones.
fn words(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        let lower = line.to_lowercase();
        for (retired, instead) in RETIRED {
            if has_word(&lower, retired) || has_word(&lower, &format!("{retired}s")) {
                complaints.push(format!("{}:{}: {retired}: write {instead}", source.path, number + 1));
            }
        }
    }
    complaints
}

/// Files that a text names in backquotes exist. What has a letter in capitals or a glob in it is an example.
fn references(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        let comment = line.trim_start().starts_with("//") || source.path.ends_with(".md");
        for name in line.split('`').skip(1).step_by(2).filter(|_| comment) {
            let path = name.split([':', ' ']).next().unwrap_or("").trim_end_matches('/');
            let ours = FOLDERS.iter().any(|folder| path.starts_with(&format!("{folder}/")));
            let example = path.contains(|c: char| c.is_uppercase() || "*{<$…".contains(c));
            let made = path.starts_with("tests/k8s/rig/"); // What the rig makes there.
            if ours && !example && !made && !Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists() {
                complaints.push(format!("{}:{}: there is no {path}", source.path, number + 1));
            }
        }
    }
    complaints
}

/// What holds in `src/`.
const RULES: [fn(&Source) -> Vec<String>; 4] = [dependencies, purity, panics, header];

/// What holds in every source, and (the last three) in every document.
const LIMITS: [fn(&Source) -> Vec<String>; 5] = [length, function_length, columns, words, references];

/// Where sources and documents are.
const FOLDERS: [&str; 8] = ["src", "tests", "benches", "examples", "fuzz", "docs", "deploy", "helm"];

fn read(folder: &Path, prefix: &str, into: &mut Vec<Source>) {
    read_ending(folder, prefix, &[".rs"], into);
}

fn read_ending(folder: &Path, prefix: &str, endings: &[&str], into: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            // What is built is no text of ours.
            if name != "target" {
                read_ending(&entry.path(), &format!("{prefix}{name}/"), endings, into);
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            let text = fs::read_to_string(entry.path()).unwrap();
            into.push(Source { path: format!("{prefix}{name}"), text });
        }
    }
}

fn sources() -> Vec<Source> {
    let mut sources = Vec::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut sources);
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(sources.len() > 20, "the sources are found");
    sources
}

#[test]
fn the_sources_keep_the_rules() {
    let mut complaints = Vec::new();
    for source in sources() {
        for rule in RULES {
            complaints.extend(rule(&source));
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// A client that a reader copies fits on a screen.
#[test]
fn a_client_has_at_most_40_lines() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let clients = ["watch.py", "watch.go", "watch.mjs", "Watch.java", "watch.sh"];
    for client in clients {
        let lines = fs::read_to_string(folder.join(client)).unwrap().lines().count();
        assert!(lines <= 40, "{client}: {lines} lines");
    }
}

#[test]
fn sources_and_documents_keep_to_the_limits() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for folder in FOLDERS {
        read_ending(&root.join(folder), &format!("{folder}/"), &[".rs", ".md"], &mut all);
    }
    for entry in fs::read_dir(root).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") {
            all.push(Source::new(&name, &fs::read_to_string(root.join(&name)).unwrap()));
        }
    }
    let mut complaints = Vec::new();
    for source in all.iter().filter(|source| source.path != "tests/tidy.rs") {
        let code = source.path.ends_with(".rs");
        let limits = LIMITS.iter().skip(if code { 0 } else { 2 });
        limits.for_each(|limit| complaints.extend(limit(source)));
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// The module that a file is: its path from the crate's root.
fn module(source: &Source) -> Vec<String> {
    let path = source.path.trim_end_matches(".rs").trim_end_matches("/mod");
    path.split('/').map(str::to_owned).collect()
}

/// The modules that a file names, by `crate::` and `super::`. A module that contains the file is none: it has
/// the type that its files add methods to.
fn imports(source: &Source, known: &BTreeSet<Vec<String>>) -> BTreeSet<Vec<String>> {
    let own = module(source);
    let code: Vec<String> = source.code().into_iter().map(|(_, line)| line).collect();
    let code = code.join("\n");
    let mut found = BTreeSet::new();
    for (prefix, base) in [("crate::", &[][..]), ("super::", &own[..own.len() - 1])] {
        for (at, _) in code.match_indices(prefix) {
            // What stands before `super::super::` was looked at with the first of them.
            if code[..at].ends_with("::") || code[..at].chars().next_back().is_some_and(is_word) {
                continue;
            }
            let (mut base, mut rest) = (base.to_vec(), &code[at + prefix.len()..]);
            while let Some(above) = rest.strip_prefix("super::") {
                base.pop();
                rest = above;
            }
            for path in paths(rest) {
                let whole = [base.clone(), path].concat();
                let longest =
                    (1..=whole.len()).rev().map(|n| whole[..n].to_vec()).find(|m| known.contains(m));
                found.extend(longest.filter(|module| !own.starts_with(module)));
            }
        }
    }
    found
}

/// The paths at the beginning of a text, those in braces one by one.
fn paths(text: &str) -> Vec<Vec<String>> {
    if let Some(list) = text.strip_prefix('{') {
        return outermost(list).iter().flat_map(|item| paths(item.trim())).collect();
    }
    let name: String = text.chars().take_while(|c| is_word(*c)).collect();
    match text[name.len()..].strip_prefix("::") {
        _ if name.is_empty() => Vec::new(),
        None => vec![vec![name]],
        Some(rest) => {
            let below = paths(rest);
            let with = |path: Vec<String>| [vec![name.clone()], path].concat();
            if below.is_empty() { vec![vec![name]] } else { below.into_iter().map(with).collect() }
        }
    }
}

/// A module that reaches itself through others, if there is one.
fn circle(imports: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>) -> Option<Vec<String>> {
    imports.keys().find_map(|start| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![start]);
        while let Some(module) = next.pop() {
            for import in imports.get(module).into_iter().flatten() {
                if import == start {
                    return Some(start.clone());
                }
                if seen.insert(import) {
                    next.push(import);
                }
            }
        }
        None
    })
}

/// The name of the item that this line makes public.
fn public(line: &str) -> Option<&str> {
    let (true, item) = without_visibility(line) else { return None };
    let kinds = ["const fn ", "fn ", "struct ", "enum ", "trait ", "type ", "const "];
    let name = kinds.iter().find_map(|kind| item.strip_prefix(kind))?;
    name.split(|letter| !is_word(letter)).next()
}

/// The public items that no code but their own definition names. What is public, the compiler reports no
/// more.
fn unused(sources: &[Source]) -> Vec<String> {
    let code: Vec<(&Source, Vec<(usize, String)>)> = sources.iter().map(|s| (s, s.code())).collect();
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for word in code.iter().flat_map(|(_, lines)| lines).flat_map(|(_, line)| line.split(|l| !is_word(l))) {
        *named.entry(word).or_default() += 1;
    }
    let mut complaints = Vec::new();
    for (source, lines) in &code {
        let before = std::iter::once("").chain(lines.iter().map(|(_, line)| line.trim()));
        for ((number, line), before) in lines.iter().zip(before) {
            let Some(name) = public(line).filter(|name| named.get(name) == Some(&1)) else { continue };
            if before != "#[cfg(test)]" {
                complaints.push(format!("src/{}:{number}: no part of the program uses {name}", source.path));
            }
        }
    }
    complaints
}

#[test]
fn what_is_public_is_used() {
    let sources: Vec<Source> = sources().into_iter().filter(|source| !source.is_test()).collect();
    let complaints = unused(&sources);
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    let one = |text: &str| unused(&[Source::new("net/a.rs", text)]).len();
    assert_eq!(one("pub fn a() {}\npub(super) struct B;\npub const fn c() {}"), 3);
    assert_eq!(one("pub fn a() {}\nfn b() { a() }\n// c\n#[cfg(test)]\npub(crate) fn c() {}"), 0);
}

#[test]
fn no_file_imports_in_a_circle() {
    let sources: Vec<Source> = sources().into_iter().filter(|source| !source.is_test()).collect();
    let known: BTreeSet<Vec<String>> = sources.iter().map(module).collect();
    let imported = sources.iter().map(|source| (module(source), imports(source, &known)));
    let imported: BTreeMap<_, _> = imported.collect();
    assert!(imported.values().map(BTreeSet::len).sum::<usize>() > 100, "the imports are seen");
    assert_eq!(circle(&imported), None, "{:#?}", circle(&imported).map(|module| &imported[&module]));
}

#[test]
fn circles_are_seen() {
    let see = |a: &str, b: &str| {
        let sources = [Source::new("net/a.rs", a), Source::new("net/b.rs", b), Source::new("net/mod.rs", "")];
        let known: BTreeSet<Vec<String>> = sources.iter().map(module).collect();
        let imported = sources.iter().map(|source| (module(source), imports(source, &known)));
        circle(&imported.collect()).is_some()
    };
    assert!(see("use super::b::B;", "use crate::net::{a::A, c};"));
    assert!(see("fn f() { super::b::f() }", "use super::{Net, a};"));
    assert!(!see("use super::b::B;", "use super::Net;\n// super::a::A"));
}

/// An arrow back would let two parts use each other.
#[test]
fn the_table_has_no_circle() {
    let table: BTreeMap<&str, &[&str]> = MAY_USE.into_iter().collect();
    assert_eq!(table.len(), MAY_USE.len(), "no part twice");
    let mut done = BTreeSet::new();
    for (part, uses) in MAY_USE {
        assert!(uses.iter().all(|used| table.contains_key(used)), "{part} uses what is not in the table");
        assert!(uses.iter().all(|used| done.contains(used)), "{part} uses a part that stands below it");
        done.insert(part);
    }
}

#[test]
fn dependencies_are_seen() {
    for (path, text) in [
        ("wire/frame.rs", "use crate::store::Store;"),
        ("wire/frame.rs", "use bellwether::store::Store;"),
        ("election/core/mod.rs", "use crate::wire::encode;"),
        ("http/mod.rs", "use crate::{election::Status, transport};"),
        ("http/mod.rs", "use crate::{\n    election::{Status, Role},\n    node::Node,\n};"),
        ("store/mod.rs", "fn f() { crate::discovery::look_up() }"),
        ("config/flags.rs", "use crate::node;"),
        ("config.rs", "use crate::node;"),
        ("transport/mod.rs", "use crate::http::Route;"),
        ("elsewhere/mod.rs", ""),
    ] {
        assert_eq!(dependencies(&Source::new(path, text)).len(), 1, "{path}: {text}");
    }
    for (path, text) in [
        ("wire/frame.rs", "use crate::election::Epoch;\nuse crate::wire::Frame;"),
        ("http/mod.rs", "use crate::{election::{Status, Role}, telemetry};"),
        ("http/mod.rs", "// not crate::node\nconst A: &str = \"crate::node\";"),
        ("main.rs", "fn main() { bellwether::config::main() }"),
        ("wire/frame.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::store::Store;\n}"),
    ] {
        assert_eq!(dependencies(&Source::new(path, text)), [""; 0], "{path}: {text}");
    }
}

#[test]
fn impurity_is_seen() {
    for text in [
        "use std::net::TcpStream;",
        "use std::{collections::BTreeMap, net::TcpStream};",
        "let now = std::time::Instant::now();",
        "use std::time::{Duration, SystemTime};",
        "std::thread::spawn(f);",
        "use std::sync::Mutex;",
        "use std::sync::{Arc, Mutex};",
        "use std::fs;",
        "use std::{fs, io};",
        "log::info!(\"hello\");",
        "println!(\"hello\");",
        "eprint!(\"hello\"); print!(\"\")",
        "fastrand::u64(..)",
        "rand::random()",
        "Uuid::new_v4()",
        "std::env::var(\"A\")",
        "use std::collections::HashMap;",
    ] {
        assert!(!purity(&Source::new("election/roster.rs", text)).is_empty(), "{text}");
        assert!(purity(&Source::new("store/mod.rs", text)).is_empty(), "elsewhere it is allowed: {text}");
    }
    for text in [
        "use core::net::SocketAddr;",
        "use std::time::Duration;",
        "use std::sync::Arc;",
        "// std::net",
        "let operand = 1;",
        "Some(\"println!\")",
        "use std::collections::{BTreeMap, BTreeSet};",
    ] {
        assert_eq!(purity(&Source::new("election/roster.rs", text)), [""; 0], "{text}");
    }
}

#[test]
fn panics_are_seen() {
    let bad = [
        "let a = b.unwrap();",
        "let a = b.expect(\"c\");",
        "#[allow(clippy::unwrap_used)]\nlet a = b.unwrap();",
        "// It cannot fail.\nlet a = b.unwrap();",
        "todo!()",
        "unimplemented!(\"later\")",
        "dbg!(a);",
    ];
    for text in bad {
        assert_eq!(panics(&Source::new("node/mod.rs", text)).len(), 1, "{text}");
        assert!(panics(&Source::new("node/tests.rs", text)).is_empty());
        let tests = format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{text}\n}}");
        assert!(panics(&Source::new("node/mod.rs", &tests)).is_empty());
    }
    let good =
        "// Four bytes were checked above.\n#[allow(clippy::expect_used)]\nlet a = b.expect(\"four\");";
    assert_eq!(panics(&Source::new("node/mod.rs", good)), [""; 0]);
}

#[test]
fn missing_headers_and_long_files_are_seen() {
    for text in ["", "use a;", "//!", "// what it is", "//!   "] {
        assert_eq!(header(&Source::new("node/mod.rs", text)).len(), 1, "{text}");
    }
    assert!(header(&Source::new("node/mod.rs", "//! What it is.")).is_empty());
    assert_eq!(length(&Source::new("node/mod.rs", &"\n".repeat(LINES_MAX + 1))).len(), 1);
    assert!(length(&Source::new("node/mod.rs", &"\n".repeat(LINES_MAX))).is_empty());
}

#[test]
fn long_functions_and_lines_are_seen() {
    let function = |lines: usize| {
        format!("    pub(super) fn f<T>(a: T) {{\n{}    }}\n", "        a;\n".repeat(lines - 2))
    };
    assert_eq!(function_length(&Source::new("a.rs", &function(FUNCTION_LINES_MAX + 1))).len(), 1);
    assert!(function_length(&Source::new("a.rs", &function(FUNCTION_LINES_MAX))).is_empty());
    for (text, complaints) in [
        ("a".repeat(COLUMNS_MAX + 1), 1),
        ("ä".repeat(COLUMNS_MAX), 0),
        (format!("| {}", "a".repeat(COLUMNS_MAX)), 0),
        (format!("//! | {}", "a".repeat(COLUMNS_MAX)), 0),
        (format!("https://{}", "a".repeat(COLUMNS_MAX)), 0),
    ] {
        assert_eq!(columns(&Source::new("a.md", &text)).len(), complaints, "{text}");
    }
}

#[test]
fn retired_words_and_dead_references_are_seen() {
    for (text, complaints) in
        [("// The Handover.", 1), ("// Two farewells.", 1), ("let handover = 1;", 1), ("// A transfer.", 0)]
    {
        assert_eq!(words(&Source::new("a.rs", text)).len(), complaints, "{text}");
    }
    for (text, complaints) in [
        ("// See `src/no_such_file.rs`.", 1),
        ("// See `src/main.rs`, `src/election/`, `tests/tidy.rs:1` and `fuzz/corpus/TARGET/`.", 0),
        ("let a = \"`src/no_such_file.rs`\";", 0),
    ] {
        assert_eq!(references(&Source::new("a.rs", text)).len(), complaints, "{text}");
    }
}
