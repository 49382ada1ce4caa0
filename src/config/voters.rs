//! `--voters`: the voters, and which settings they require.

use crate::base::duration::show;
use crate::election::{DRIFT, Founding, NAME_BYTES_MAX, Safety, VOTERS_MAX, check_text, counted};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// What `--voters` says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Voters {
    /// The ordinals from 0 to this number, itself not included, of the StatefulSet that this process is of.
    Ordinals(usize),
    /// These names, in the order given.
    Names(Vec<String>),
}

impl fmt::Display for Voters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Voters::Ordinals(count) => write!(f, "{count}"),
            Voters::Names(names) => f.write_str(&names.join(",")),
        }
    }
}

/// Reads a number or names.
pub fn voters(text: &str) -> Result<Voters, String> {
    let numeric = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if numeric(text.strip_prefix('-').unwrap_or(text)) {
        let count = text.parse().ok().filter(|count| (1..=VOTERS_MAX).contains(count));
        return count
            .map(Voters::Ordinals)
            .ok_or_else(|| format!("write a whole number from 1 to {VOTERS_MAX}, or names"));
    }
    let mut names: Vec<String> = Vec::new();
    for name in text.split(',').map(str::trim) {
        if name.is_empty() {
            return Err("an empty entry; write a number, or names with one comma between two".to_owned());
        }
        if names.iter().any(|known| known == name) {
            return Err(format!("{name:?} is named twice; name each voter once"));
        }
        check_text("a voter's name", name, NAME_BYTES_MAX).map_err(|error| error.to_string())?;
        names.push(name.to_owned());
    }
    if names.len() > VOTERS_MAX {
        return Err(format!("{} voters are named; at most {VOTERS_MAX} may vote", names.len()));
    }
    Ok(Voters::Names(names))
}

/// Why a choice of `--safety` is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SafetyError {
    #[error(
        "--voters {0} is given with --safety classic, which counts no votes; write --safety majority, or \
         leave --voters out"
    )]
    VotersInClassic(Voters),
    #[error(
        "--found {} is given with --safety classic, where each process founds a cluster of its own; write \
         --safety majority, or leave --found out",
        if *.0 == Founding::No { "no" } else { "yes" }
    )]
    FoundInClassic(Founding),
    #[error(
        "--crash-evidence release is given with --safety classic, which has no lease to release; write \
         --crash-evidence suspect, or --safety majority"
    )]
    ReleaseInClassic,
    #[error(
        "--safety majority is given without --voters and --state-dir: votes are counted among voters that \
         all know, and a voter must not forget its votes. Write --voters 3 for the ordinals 0 to 2 of a \
         StatefulSet, or their names, and --state-dir with a folder that survives a restart"
    )]
    NoVotersNorStateDir,
    #[error(
        "--safety majority is given without --state-dir: a voter that forgets its votes at a restart could \
         vote twice, and two could lead. Write --state-dir with a folder that survives a restart, such as a \
         volume claim's"
    )]
    NoStateDir,
    #[error(
        "--safety majority is given without --voters: a majority must be counted among voters that all know. \
         Write --voters 3 for the ordinals 0 to 2 of a StatefulSet, or their names, such as --voters \
         web-0,web-1,web-2"
    )]
    NoVoters,
    #[error(
        "--voters {count} means the ordinals 0 to {} of a StatefulSet, but the name {name:?} does not end in \
         an ordinal, such as web-0. A Deployment gives its pods random names, and new ones at each restart, \
         so that no vote can be kept for them. Run it as a StatefulSet, give --name, or name the voters one \
         by one",
        count - 1
    )]
    NoOrdinal { name: String, count: usize },
    #[error(
        "{name:?} is not among the voters {voters} (--voters {given}): with --safety majority each process \
         votes. Correct --name, or give all processes a --voters that includes this one"
    )]
    OtherName { name: String, voters: String, given: Voters },
    #[error(
        "--lease {} leaves no room. A leader counts on {} of it, since clocks may differ by 1 in {DRIFT}. \
         Two heartbeats (--heartbeat {}) and an answer (--answer-timeout {}) take {}. Write --lease {} or \
         more, or shorter ones of the others",
        show(*.lease), shown_counted(*.lease), show(*.heartbeat), show(*.answer),
        show(*.heartbeat * 2 + *.answer),
        show(shortest(*.heartbeat * 2 + *.answer))
    )]
    LeaseTooShort { lease: Duration, heartbeat: Duration, answer: Duration },
}

/// The same for people: in whole milliseconds, rounded down.
fn shown_counted(lease: Duration) -> String {
    format!("{}ms", counted(lease).as_millis())
}

/// The shortest lease, in whole milliseconds, of which a leader may count on this much.
fn shortest(needed: Duration) -> Duration {
    let exact = needed.mul_f64(f64::from(DRIFT) / f64::from(DRIFT - 1));
    let rounded_down = Duration::from_millis(u64::try_from(exact.as_millis()).unwrap_or(u64::MAX));
    if counted(rounded_down) >= needed { rounded_down } else { rounded_down + Duration::from_millis(1) }
}

/// The names of the voters, this process's among them.
pub fn resolved(given: &Voters, name: &str) -> Result<BTreeSet<String>, SafetyError> {
    let voters: BTreeSet<String> = match given {
        Voters::Names(names) => names.iter().cloned().collect(),
        Voters::Ordinals(count) => {
            let base = statefulset(name)
                .ok_or_else(|| SafetyError::NoOrdinal { name: name.to_owned(), count: *count })?;
            (0..*count).map(|ordinal| format!("{base}-{ordinal}")).collect()
        }
    };
    if voters.contains(name) {
        return Ok(voters);
    }
    let shown = match given {
        // Short, and in the order that people count in.
        Voters::Ordinals(count) if *count > 1 => {
            let base = statefulset(name).unwrap_or_default();
            format!("{base}-0 to {base}-{}", count - 1)
        }
        _ => Vec::from_iter(voters).join(", "),
    };
    Err(SafetyError::OtherName { name: name.to_owned(), voters: shown, given: given.clone() })
}

/// The name of the StatefulSet that gave a pod this name; none: no StatefulSet did.
fn statefulset(name: &str) -> Option<&str> {
    let (base, ordinal) = name.rsplit_once('-')?;
    let number = ordinal.bytes().all(|b| b.is_ascii_digit()) && (ordinal == "0" || !ordinal.starts_with('0'));
    (number && !ordinal.is_empty() && !base.is_empty()).then_some(base)
}

/// What is allowed of voters, and yet perhaps not meant.
pub fn warning(safety: &Safety) -> Option<String> {
    let Safety::Majority { voters } = safety else { return None };
    match voters.len() {
        1 => Some(
            "--voters names this process alone: no process takes over when it is down; three voters are the \
             fewest of which one may be down"
                .to_owned(),
        ),
        n if n % 2 == 0 => Some(format!(
            "--voters names {n}: as many may be down as of {}, {}, and yet one more has to agree to \
             everything; give an odd number",
            n - 1,
            n / 2 - 1
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statefulsets_pod_ends_in_its_ordinal() {
        for (name, base) in [
            ("web-0", Some("web")),
            ("web-12", Some("web")),
            ("web-1-2", Some("web-1")),
            ("web", None),
            ("web-", None),
            ("-1", None),
            ("web-01", None),
            ("web-1a", None),
            ("web-7d4b9c6f5-x2x7k", None),
        ] {
            assert_eq!(statefulset(name), base, "{name}");
        }
    }

    #[test]
    fn the_shortest_lease_is_one() {
        for needed in [1, 98, 99, 100, 800, 990, 1485, 1486, 60_000].map(Duration::from_millis) {
            let lease = shortest(needed);
            assert!(counted(lease) >= needed, "{needed:?}: {lease:?}");
            assert!(counted(lease - Duration::from_millis(1)) < needed, "{needed:?}: {lease:?}");
        }
    }

    #[test]
    fn an_odd_number_is_warned_of_only_where_it_is_one() {
        let warned = |n: usize| {
            let voters = (0..n).map(|k| format!("web-{k}")).collect();
            warning(&Safety::Majority { voters })
        };
        assert!(warned(1).unwrap().contains("alone"));
        assert!(warned(2).unwrap().contains("as of 1, 0, and"));
        assert!(warned(4).unwrap().contains("names 4: as many may be down as of 3, 1, and"));
        assert_eq!((warned(3), warned(5), warning(&Safety::Classic)), (None, None, None));
    }
}
