//! The environment as a source of settings: empty variables count as not set, and mistyped ones are refused.

use crate::telemetry::escape::{escaped, shortened};
use clap::Command;
use clap::builder::{OsStr, Resettable};
use clap::error::{ContextKind, ContextValue};
use std::collections::BTreeSet;
use std::ffi::OsString;

/// What every variable of ours begins with.
pub const PREFIX: &str = "BELLWETHER_";
/// How many unknown variables an error lists; a longer list is of no more help.
const LISTED_MAX: usize = 8;
/// A longer name is no misspelt setting, and comparing it would cost time.
const COMPARED_BYTES_MAX: usize = 64;
/// From this many differences on, two names count as unrelated.
const DIFFERENCES_MAX: usize = 3;

/// The variable's value, if it is set to something.
pub fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?;
    (!value.is_empty()).then(|| value.to_string_lossy().into_owned())
}

/// The command, for parsing, without the variables that are set but empty: Kubernetes templates write those,
/// and they mean "not set". (They cannot be removed from the environment itself: that is unsafe where threads
/// may run.)
pub fn without_empty(command: Command) -> Command {
    command
        .mut_args(|arg| match arg.get_env() {
            Some(name) if std::env::var_os(name).is_some_and(|value| value.is_empty()) => {
                arg.env(Resettable::<OsStr>::Reset)
            }
            _ => arg,
        })
        .mut_subcommands(without_empty)
}

/// The error, with the variable's name beside the flag's where the value comes from the environment.
pub fn named(mut error: clap::Error, command: &Command, args: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return error };
    let long = flag.split(' ').next().unwrap_or_default().to_owned();
    let given = args.iter().filter_map(|arg| arg.to_str()).any(|arg| arg.split('=').next() == Some(&long));
    let subcommand = args.get(1).and_then(|name| command.find_subcommand(name));
    let arg = subcommand
        .unwrap_or(command)
        .get_arguments()
        .find(|arg| arg.get_long().is_some_and(|name| long.strip_prefix("--") == Some(name)));
    let variable = arg.and_then(|arg| arg.get_env()).filter(|name| std::env::var_os(name).is_some());
    if let Some(name) = variable.filter(|_| !given) {
        let both = format!("{flag} (the variable {})", name.to_string_lossy());
        error.insert(ContextKind::InvalidArg, ContextValue::String(both));
    }
    error
}

/// The names of all variables that some flag reads.
pub fn known(command: &Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter_map(|arg| arg.get_env()).filter_map(|name| name.to_str());
    let mut names: BTreeSet<String> = own.map(str::to_owned).collect();
    for subcommand in command.get_subcommands() {
        names.append(&mut known(subcommand));
    }
    names
}

/// Variables whose names begin like ours, and which no flag has. The user of a misspelt one would believe in
/// a setting that there is not.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no flag has these variables: {}; correct their names, or remove them", .0.join(", "))]
pub struct UnknownVariables(Vec<String>);

/// Refuses the variables of `set` that no flag has, each with the name that was perhaps meant. Kubernetes'
/// own for Services are no settings.
pub fn check(set: impl Iterator<Item = String>, known: &BTreeSet<String>) -> Result<(), UnknownVariables> {
    let unknown: BTreeSet<String> = set
        .filter(|name| name.starts_with(PREFIX) && !known.contains(name) && !is_service_link(name))
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let mut listed: Vec<String> = unknown
        .iter()
        .take(LISTED_MAX)
        .map(|name| {
            let shown = shortened(escaped(name), COMPARED_BYTES_MAX);
            closest(name, known).map_or(shown.clone(), |meant| format!("{shown} (is {meant} meant?)"))
        })
        .collect();
    if unknown.len() > LISTED_MAX {
        listed.push(format!("and {} more", unknown.len() - LISTED_MAX));
    }
    Err(UnknownVariables(listed))
}

/// Whether Kubernetes makes a variable of this name in every container, for a Service named `bellwether` or
/// `bellwether-…` ("service links").
fn is_service_link(name: &str) -> bool {
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || ["_TCP", "_UDP", "_SCTP"].iter().any(|protocol| name.contains(protocol))
}

/// Whether a variable is the `…_PORT` of such a Service: its value is a URL. A user's would be a number.
pub fn is_service_url(name: &str, value: &str) -> bool {
    name.ends_with("_PORT") && value.contains("://")
}

/// The known name that differs least, if any is near.
fn closest<'a>(name: &str, known: &'a BTreeSet<String>) -> Option<&'a String> {
    if name.len() > COMPARED_BYTES_MAX {
        return None;
    }
    known
        .iter()
        .map(|candidate| (differences(name.as_bytes(), candidate.as_bytes()), candidate))
        // Of a short name half of the letters have to be right.
        .filter(|(differences, candidate)| {
            *differences <= DIFFERENCES_MAX.min((candidate.len() - PREFIX.len().min(candidate.len())) / 2)
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// The edit distance: how many bytes have to be put in, taken out or changed.
fn differences(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> BTreeSet<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn counts_differences() {
        for (a, b, n) in [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("LEASE", "LAESE", 2)] {
            assert_eq!(differences(a.as_bytes(), b.as_bytes()), n, "{a} {b}");
        }
    }

    #[test]
    fn refuses_unknown_variables_and_says_what_was_meant() {
        let known = names(&["BELLWETHER_LEASE", "BELLWETHER_HEARTBEAT"]);
        let set = names(&["BELLWETHER_LAESE", "BELLWETHER_LEASE", "PATH", "BELLWETHER_ZZZZZZZZ"]);
        let error = check(set.into_iter(), &known).unwrap_err().to_string();
        assert!(
            error.contains("BELLWETHER_LAESE (is BELLWETHER_LEASE meant?), BELLWETHER_ZZZZZZZZ; correct"),
            "{error}"
        );
        assert!(!error.contains("PATH"), "{error}");
    }

    #[test]
    fn says_nothing_about_what_kubernetes_sets() {
        let set = names(&[
            "BELLWETHER_SERVICE_HOST",
            "BELLWETHER_SERVICE_PORT",
            "BELLWETHER_SERVICE_PORT_HTTP",
            "BELLWETHER_PORT_4040_TCP",
            "BELLWETHER_PORT_4040_TCP_ADDR",
        ]);
        assert_eq!(check(set.into_iter(), &names(&["BELLWETHER_SERVICE"])), Ok(()));
    }

    #[test]
    fn a_port_of_kubernetes_is_a_url() {
        assert!(is_service_url("BELLWETHER_PORT", "tcp://10.0.0.1:4040"));
        assert!(!is_service_url("BELLWETHER_HTTP_PORT", "4040"));
        assert!(!is_service_url("BELLWETHER_ZZZ", "tcp://10.0.0.1:4040"));
        assert!(check(["BELLWETHER_HTTP_PORT".to_owned()].into_iter(), &names(&[])).is_err());
    }

    #[test]
    fn lists_a_bounded_number() {
        let set = (0..1000).map(|i| format!("BELLWETHER_QQQQQQQQ{i:04}"));
        let error = check(set, &names(&[])).unwrap_err().to_string();
        assert!(error.contains("and 992 more;"), "{error}");
    }

    #[test]
    fn shows_a_hostile_name_in_few_bytes_escaped() {
        let set = [format!("BELLWETHER_\u{1b}[2J{}", "A".repeat(1_000_000))];
        let error = check(set.into_iter(), &names(&[])).unwrap_err().to_string();
        assert!(error.len() < 200 && !error.contains('\u{1b}'), "{error}");
    }
}
