//! `bellwether inject`: manifests in, the same with the sidecar out.
//!
//! `stream` splits the input into documents, and `tree` is what a document holds. `rules` says what cannot be
//! injected, `sidecar` is what is put in, `plan` decides, and `emit` writes what is changed. All else is
//! copied byte for byte.

mod emit;
mod plan;
mod rules;
mod sidecar;
mod stream;
#[cfg(test)]
mod tests;
mod tree;

use crate::config::InjectArgs;
use crate::telemetry::escape::escaped;
use plan::{Change, InjectPlan, Place, Remark};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use stream::{Document, INPUT_BYTES_MAX, Unreadable, documents};
use tree::Node;

/// "The input is no stream of manifests."
const EXIT_UNREADABLE: u8 = 2;

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    /// The input could not be had.
    #[error("{file} cannot be read: {why}")]
    Read {
        /// Its name, or stdin.
        file: String,
        /// What the system says.
        why: io::Error,
    },
    /// The input is too large.
    #[error("the input is larger than {} MiB; give it in parts", INPUT_BYTES_MAX / 1024 / 1024)]
    Large,
    /// The input is no text.
    #[error("line {line}, column {column}: not UTF-8; save it as UTF-8")]
    Encoding {
        /// From 1.
        line: usize,
        /// From 1, in bytes.
        column: usize,
    },
    /// The input is no YAML that a manifest may be.
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    /// With `--strict`: there was something that could not be injected.
    #[error(
        "nothing was written, because of --strict and what is said above; mend it, or leave --strict out"
    )]
    Strict,
    /// What was to be written would not have been read as what was meant.
    #[error(
        "nothing was written: what would have been does not read as what was meant, which is a fault of \
         bellwether; please report it with the input"
    )]
    Unfaithful,
    /// The result could not be written.
    #[error("stdout cannot be written: {0}")]
    Write(io::Error),
}

/// What became of an input.
#[derive(Debug)]
struct Injected {
    /// All of what is to be written.
    text: String,
    /// What there is to say, a line each.
    remarks: Vec<String>,
    /// Whether something was asked for that could not be done.
    refused: bool,
}

/// Reads, writes, and says what there is to say.
pub fn run(args: &InjectArgs) -> ExitCode {
    match read(&args.file).and_then(|text| transform(&text, args)).and_then(|outcome| write(outcome, args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("error: {}", escaped(&trouble.to_string()));
            match trouble {
                Trouble::Unreadable(_) | Trouble::Encoding { .. } | Trouble::Large => {
                    ExitCode::from(EXIT_UNREADABLE)
                }
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn write(outcome: Injected, args: &InjectArgs) -> Result<(), Trouble> {
    for remark in &outcome.remarks {
        eprintln!("{}", escaped(remark));
    }
    if args.strict && outcome.refused {
        return Err(Trouble::Strict);
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(outcome.text.as_bytes()).and_then(|()| stdout.flush()).map_err(Trouble::Write)
}

fn read(file: &Path) -> Result<String, Trouble> {
    let stdin = file == Path::new("-");
    let name = if stdin { "stdin".to_owned() } else { file.display().to_string() };
    let mut bytes = Vec::new();
    // One byte more than may be, to see that it is more.
    let limit = INPUT_BYTES_MAX as u64 + 1;
    let read = match stdin {
        true => io::stdin().lock().take(limit).read_to_end(&mut bytes),
        false => File::open(file).and_then(|file| file.take(limit).read_to_end(&mut bytes)),
    };
    read.map_err(|why| Trouble::Read { file: name, why })?;
    if bytes.len() > INPUT_BYTES_MAX {
        return Err(Trouble::Large);
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        Trouble::Encoding { line, column }
    })
}

/// Injects, or takes out again, what the arguments say. The text is at most [`INPUT_BYTES_MAX`] long.
fn transform(text: &str, args: &InjectArgs) -> Result<Injected, Trouble> {
    let documents = documents(text)?;
    let InjectPlan { changes, remarks } = plan::plan(&documents, args);
    let (mut out, mut meant, mut copied) = (String::new(), Vec::new(), 0);
    for (number, document) in documents.iter().enumerate() {
        let parts = parts(number, document, &changes);
        if matches!(parts.as_slice(), [Part::AsItWas]) {
            meant.push(document.root.clone());
            continue;
        }
        // A document that goes takes its marker with it.
        let until = document.marker.filter(|_| parts.is_empty()).unwrap_or(document.content.start);
        out.push_str(text.get(copied..until).unwrap_or_default());
        let original = text.get(document.content.clone()).unwrap_or_default();
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(original).is_ok();
        for (part_number, part) in parts.into_iter().enumerate() {
            if part_number > 0 {
                out.push_str("---\n");
            }
            match part {
                Part::AsItWas => {
                    out.push_str(original);
                    meant.push(document.root.clone());
                }
                Part::Anew(node) => {
                    begin_line(&mut out);
                    out.push_str(&if is_json { emit::json(&node) } else { emit::yaml(&node) });
                    meant.push(node);
                }
            }
            if !out.ends_with('\n') {
                out.push('\n');
            }
        }
        copied = document.content.end;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    if !changes.is_empty() && !reads_as(&out, &meant) {
        return Err(Trouble::Unfaithful);
    }
    let refused = remarks.iter().any(|remark| !matches!(remark, Remark::Note(_)));
    Ok(Injected { text: out, remarks: remarks.iter().map(said).collect(), refused })
}

/// A part of what becomes of a document.
enum Part {
    AsItWas,
    Anew(Node),
}

/// What becomes of a document; nothing: it goes.
fn parts(number: usize, document: &Document, changes: &BTreeMap<Place, Change>) -> Vec<Part> {
    let of_items = changes.range((number, Some(0))..=(number, Some(usize::MAX)));
    if of_items.clone().next().is_some() {
        return vec![Part::Anew(list(document, of_items))];
    }
    let mut parts = Vec::new();
    let change = changes.get(&(number, None));
    if !change.is_some_and(|change| change.removed) {
        let replaced = change.and_then(|change| change.replaced.clone());
        parts.push(replaced.map_or(Part::AsItWas, Part::Anew));
    }
    parts.extend(change.and_then(|change| change.followed.clone()).map(Part::Anew));
    parts
}

/// A List with its items changed.
fn list<'a>(document: &Document, changes: impl Iterator<Item = (&'a Place, &'a Change)>) -> Node {
    let changes: BTreeMap<usize, &Change> =
        changes.filter_map(|((_, item), change)| item.map(|item| (item, change))).collect();
    let mut items = Vec::new();
    for (number, item) in document.root.items(&["items"]).iter().enumerate() {
        let change = changes.get(&number);
        if !change.is_some_and(|change| change.removed) {
            items.push(change.and_then(|change| change.replaced.as_ref()).unwrap_or(item).clone());
        }
        items.extend(change.and_then(|change| change.followed.clone()));
    }
    let mut root = document.root.clone();
    root.change(&["items"], |list| *list = Node::List(items));
    root
}

/// What is written anew begins in the first column, also where the original stood behind `---`.
fn begin_line(out: &mut String) {
    out.truncate(out.trim_end_matches([' ', '\t']).len());
    if !out.is_empty() && !out.ends_with('\n') && !out.ends_with('\u{feff}') {
        out.push('\n');
    }
}

/// Whether a text is read as these documents; empty ones do not count.
fn reads_as(text: &str, meant: &[Node]) -> bool {
    let Ok(read) = documents(text) else { return false };
    let read = read.iter().map(|document| &document.root).filter(|root| !root.is_absent(&[]));
    read.eq(meant.iter().filter(|root| !root.is_absent(&[])))
}

fn said(remark: &Remark) -> String {
    match remark {
        Remark::Refused { what, why } => format!("warning: {what}: left as it is: {why}"),
        Remark::Missing(only) => {
            format!("warning: --only {only}: the input has none of that name; correct the name")
        }
        Remark::Note(note) => format!("note: {note}"),
    }
}
