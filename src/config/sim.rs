//! The flags of `bellwether sim`.

use super::modes::SafetyLevel;
use super::value_parsers::{crash_evidence, whole};
use super::voters::SafetyError;
use crate::election::{CrashEvidence, VOTERS_MAX};

pub const SIM_EXAMPLES: &str = "\
Examples:
  bellwether sim --compare-variants
  bellwether sim --seeds 1..1000 --n 3 --safety majority --swarm
  bellwether sim --n 3 --safety majority --swarm --replay 42
  bellwether sim --n 3 --safety majority --swarm --minimise 42

Exit codes:
  0  no rule was broken, or the table is printed
  1  a rule was broken: the seed and a command that replays it were printed
  2  bad configuration";

/// The flags as they are given.
#[derive(clap::Args, Clone, Debug)]
pub struct SimFlags {
    /// Runs these seeds, the first and the last one included
    #[arg(long, value_name = "A..B", default_value = "1..100", value_parser = seeds)]
    pub seeds: (u64, u64),

    /// Shows the run of one seed, line by line
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "minimise"])]
    pub replay: Option<u64>,

    /// Leaves out faults of a seed that breaks a rule, as many as can be, and shows what is left
    #[arg(long, value_name = "SEED", conflicts_with = "seeds")]
    pub minimise: Option<u64>,

    /// Prints what an election costs in each variant of `classic`, for these numbers of processes
    #[arg(long, exclusive = true, value_name = "N,N", num_args = 0..=1, value_delimiter = ',',
        default_missing_value = "3,5,10,30,100,300,1000",
        value_parser = |text: &str| whole::<usize>(text, 3..=10_000))]
    pub compare_variants: Vec<usize>,

    /// How many processes, 3 to 31
    #[arg(long = "n", value_name = "N", default_value = "3",
        value_parser = |text: &str| whole::<usize>(text, 3..=VOTERS_MAX as u64))]
    pub n: usize,

    /// What is promised, and so what is looked at
    #[arg(long, value_name = "LEVEL", default_value = "majority", value_enum)]
    pub safety: SafetyLevel,

    /// Each seed draws its own mix of faults, half of the kinds
    #[arg(long)]
    pub swarm: bool,

    /// What refused connections prove: `off`, `suspect` or `release`; without it each seed draws `off` or
    /// `suspect`
    #[arg(long, value_name = "WHAT", value_parser = crash_evidence())]
    pub crash_evidence: Option<CrashEvidence>,
}

/// What `bellwether sim` is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimArgs {
    /// What to do.
    pub task: SimTask,
    /// How many processes; from 3 to [`VOTERS_MAX`].
    pub n: usize,
    /// Whether the runs are about `--safety majority`, or else `classic`.
    pub majority: bool,
    /// Whether each seed draws its own mix of faults.
    pub swarm: bool,
    /// What crash evidence proves in all runs; none: drawn.
    pub crash_evidence: Option<CrashEvidence>,
}

/// What to do with which seeds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SimTask {
    /// Run them.
    Seeds {
        /// From this one.
        first: u64,
        /// To this one, which is not lower.
        last: u64,
    },
    /// Show the run of one.
    Replay(u64),
    /// Make it smaller.
    Minimise(u64),
    /// Run none: compare the variants of `classic`, for each of these numbers of processes.
    CompareVariants(Vec<usize>),
}

impl SimArgs {
    /// The flags that make another run with these arguments the same, without the task.
    pub fn flags(&self) -> String {
        let safety = if self.majority { "majority" } else { "classic" };
        let swarm = if self.swarm { " --swarm" } else { "" };
        let evidence = match self.crash_evidence {
            None => "",
            Some(CrashEvidence::Off) => " --crash-evidence off",
            Some(CrashEvidence::Suspect) => " --crash-evidence suspect",
            Some(CrashEvidence::Release) => " --crash-evidence release",
        };
        format!("--n {} --safety {safety}{swarm}{evidence}", self.n)
    }
}

impl TryFrom<SimFlags> for SimArgs {
    type Error = SafetyError;

    fn try_from(flags: SimFlags) -> Result<SimArgs, SafetyError> {
        let majority = flags.safety == SafetyLevel::Majority;
        if !majority && flags.crash_evidence == Some(CrashEvidence::Release) {
            return Err(SafetyError::ReleaseInClassic);
        }
        let task = match (flags.replay, flags.minimise) {
            _ if !flags.compare_variants.is_empty() => SimTask::CompareVariants(flags.compare_variants),
            (Some(seed), _) => SimTask::Replay(seed),
            (_, Some(seed)) => SimTask::Minimise(seed),
            _ => SimTask::Seeds { first: flags.seeds.0, last: flags.seeds.1 },
        };
        Ok(SimArgs { task, n: flags.n, majority, swarm: flags.swarm, crash_evidence: flags.crash_evidence })
    }
}

/// Reads `A..B`. The highest seed leaves room for counting on.
fn seeds(text: &str) -> Result<(u64, u64), String> {
    let complaint = || "write two whole numbers, such as 1..1000, the first one not greater".to_owned();
    let (first, last) = text.split_once("..").ok_or_else(complaint)?;
    let range = 0..=u64::MAX / 2;
    let (first, last) = (whole(first, range.clone())?, whole(last, range)?);
    if first <= last { Ok((first, last)) } else { Err(complaint()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classic_has_no_lease_to_release() {
        let flags = |safety| SimFlags {
            seeds: (1, 1),
            replay: None,
            minimise: None,
            compare_variants: Vec::new(),
            n: 3,
            safety,
            swarm: false,
            crash_evidence: Some(CrashEvidence::Release),
        };
        assert_eq!(SimArgs::try_from(flags(SafetyLevel::Classic)), Err(SafetyError::ReleaseInClassic));
        assert!(SimArgs::try_from(flags(SafetyLevel::Majority)).is_ok_and(|args| args.majority));
    }

    #[test]
    fn as_many_processes_as_there_may_be_voters() {
        let parsed = |n: &str| {
            let line = ["bellwether", "sim", "--n", n];
            <super::super::flags::Cli as clap::Parser>::try_parse_from(line)
        };
        for n in ["3", "4", "5", "7", "21", "31"] {
            assert!(parsed(n).is_ok(), "{n}");
        }
        for bad in ["2", "32", "0", "three", ""] {
            let error = parsed(bad).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("write a whole number from 3 to 31"), "{bad}: {error}");
        }
    }

    #[test]
    fn variants_are_compared_for_numbers_of_processes() {
        let parsed = |line: &[&str]| {
            let line = ["bellwether", "sim"].iter().chain(line);
            <super::super::flags::Cli as clap::Parser>::try_parse_from(line)
        };
        assert!(parsed(&["--compare-variants"]).is_ok());
        assert!(parsed(&["--compare-variants", "3,10000"]).is_ok());
        for bad in ["2", "10001", "3,", "many"] {
            let error = parsed(&["--compare-variants", bad]).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("write a whole number from 3 to 10000"), "{bad}: {error}");
        }
    }

    #[test]
    fn seeds_are_two_numbers_in_order() {
        assert_eq!(seeds("1..10"), Ok((1, 10)));
        assert_eq!(seeds("7..7"), Ok((7, 7)));
        for bad in ["", "1", "1..", "..1", "2..1", "1...2", "-1..2", "1..18446744073709551615"] {
            assert!(seeds(bad).is_err(), "{bad}");
        }
    }
}
