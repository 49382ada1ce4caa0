//! `bellwether inject`: manifests in, the same with the sidecar out.
//!
//! `sections` splits the input. `stream` reads the document of each section, as YAML or by `json`, and
//! `builder` makes it a `tree`. `rules` says what cannot be injected, `sidecar` is what is put in, and `plan`
//! decides. `rewrite` writes what is changed by `emit`, and copies all else byte for byte. It reads what it
//! has written again, and `matcher` compares that with what was meant.

mod builder;
mod emit;
mod exec;
mod json;
mod matcher;
mod plan;
mod rewrite;
mod rules;
mod sections;
mod sidecar;
mod stream;
#[cfg(test)]
mod tests;
mod tree;

use crate::config::InjectArgs;
use crate::telemetry::escape::escaped;
use plan::{InjectPlan, Remark};
use rewrite::rewrite;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use stream::{INPUT_BYTES_MAX, Unreadable, documents};

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
        "nothing was written: what would have been does not read as what was meant. That is a fault of \
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
    let text = rewrite(text, &documents, &changes, args).ok_or(Trouble::Unfaithful)?;
    let refused = remarks.iter().any(|remark| !matches!(remark, Remark::Note(_)));
    Ok(Injected { text, remarks: remarks.iter().map(said).collect(), refused })
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
