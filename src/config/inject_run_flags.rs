//! The flags of `run` that `bellwether inject` passes on: checked as the sidecar will check them.

use super::flags::RunArgs;
use super::inject::InjectArgs;
use super::modes::SafetyLevel;
use super::validate::{ConfigError, Surroundings, check};
use super::voters::Voters;
use clap::builder::{OsStr, Resettable};
use clap::parser::ValueSource;
use clap::{Args, FromArgMatches};

/// The mend for certificates.
const CERTIFICATES: &str = "it mounts no certificates: write --peer-secret NAME before --, or take the chart";

/// What `inject` sets itself, in the sidecar's arguments, its variables or the Service, or has no volume for,
/// and the mend.
const OWN: [(&str, &str); 14] = [
    ("service", "leave it out: inject makes the Service"),
    ("safety", "write it before --"),
    ("voters", "leave it out: the replicas vote"),
    ("state_dir", "leave it out, and write --state-claim NAME before -- for a volume"),
    ("peer_secret_file", "write --peer-secret NAME before --"),
    ("listen", "leave it out: the peer port is 4041"),
    ("peer_port", "leave it out: the peer port is 4041"),
    ("http", "leave it out: the status port is 4040"),
    ("advertise", "leave it out: it is the pod's address"),
    ("name", "leave it out: it is the pod's name"),
    ("revision", "leave it out: it is the pod's"),
    ("peer_cert", CERTIFICATES),
    ("peer_key", CERTIFICATES),
    ("peer_ca", CERTIFICATES),
];

/// Why the flags after `--` are refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RunFlagsError {
    /// They are no flags of `run`; in clap's words.
    #[error("after --: {0}")]
    Unknown(String),
    /// One that is set already.
    #[error("after --: {flag} is for inject itself to set; {mend}")]
    Own {
        /// With its hyphens.
        flag: String,
        /// What to do instead.
        mend: &'static str,
    },
    /// They do not go together.
    #[error("after --: the sidecar would not start: {0}")]
    Refused(#[from] ConfigError),
}

/// Checks the flags after `--` together with those that `inject` adds.
pub fn check_run_flags(args: &InjectArgs) -> Result<(), RunFlagsError> {
    // Without the variables: those of this machine are not the pod's.
    let command = RunArgs::augment_args(clap::Command::new("run"))
        .no_binary_name(true)
        .disable_help_flag(true)
        .mut_args(|arg| arg.env(Resettable::<OsStr>::Reset));
    let parsed = command.try_get_matches_from(&args.run_flags).and_then(|matches| {
        let run = RunArgs::from_arg_matches(&matches)?;
        Ok((matches, run))
    });
    let (matches, mut run) = parsed.map_err(|error| {
        let text = error.to_string();
        let said = text.split("\n\nUsage:").next().unwrap_or_default();
        let said = said.split("\n\nFor more").next().unwrap_or_default();
        RunFlagsError::Unknown(said.trim_start_matches("error: ").to_owned())
    })?;
    for (id, mend) in OWN {
        if matches.value_source(id) == Some(ValueSource::CommandLine) {
            return Err(RunFlagsError::Own { flag: format!("--{}", id.replace('_', "-")), mend });
        }
    }
    run.service = Some("web-bellwether".to_owned());
    run.safety = args.safety;
    if args.safety == SafetyLevel::Majority {
        run.voters = Some(Voters::Ordinals(3));
        run.state_dir = Some("/state".into());
    }
    run.peer_secret_file = args.peer_secret.as_ref().map(|secret| secret.key.clone().into());
    let pod = Surroundings { pod_name: Some("web-0".to_owned()), pod_ip: None, host_name: None };
    check(run, pod)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::flags::Command;
    use crate::config::parse;

    fn checked(line: &str) -> Result<(), String> {
        let line = format!("bellwether inject {line}");
        match parse(line.split_whitespace().map(Into::into).collect()) {
            Ok(Command::Inject(args)) => check_run_flags(&args).map_err(|error| error.to_string()),
            other => panic!("{line}: {:?}", other.map(|_| ()).map_err(|error| error.to_string())),
        }
    }

    #[test]
    fn flags_of_run_are_taken() {
        for line in [
            "",
            "--",
            "-- --priority 50 --lease=3s --log-format json --peers a:1,b:2 --election shop",
            "--safety majority -- --found yes --crash-evidence release",
            "--peer-secret web-peers -- --peer-auth permissive",
        ] {
            assert_eq!(checked(line), Ok(()), "{line}");
        }
    }

    #[test]
    fn what_the_sidecar_would_refuse_is_refused() {
        for (line, words) in [
            (
                "-- --peer-ca /ca.crt",
                &["--peer-ca is for inject itself to set; it mounts no certificates"][..],
            ),
            ("-- --lesae 3s", &["unexpected argument '--lesae'", "'--lease'"][..]),
            ("-- --priority", &["a value is required", "--priority <N>"]),
            ("-- --priority 1001", &["'1001'", "--priority"]),
            ("-- app.yaml", &["unexpected argument 'app.yaml'"]),
            ("-- --help", &["unexpected argument '--help'"]),
            ("-- --priority 1 --priority 2", &["--priority <N>", "multiple times"]),
            ("-- --lease 1s --heartbeat 400ms", &["would not start", "--lease 1s", "--heartbeat 400ms"]),
            ("-- --crash-evidence release", &["--crash-evidence release", "--safety classic"]),
            ("-- --peer-auth required", &["--peer-auth required needs a proof"]),
            ("-- --peer-secret-file a", &["--peer-secret-file is for inject", "--peer-secret NAME"]),
            ("-- --safety majority", &["--safety is for inject", "before --"]),
        ] {
            let error = checked(line).unwrap_err();
            for words in words {
                assert!(error.contains(words), "{line}: no {words:?} in {error}");
            }
            assert!(!error.contains("Usage:") && !error.contains("--help'."), "{error}");
        }
    }

    #[test]
    fn what_inject_sets_is_refused() {
        for (id, mend) in OWN {
            let value = match id {
                "safety" => "classic",
                "service" => "web",
                "listen" | "http" | "advertise" => "10.0.0.1:1",
                _ => "7",
            };
            let flag = format!("--{}", id.replace('_', "-"));
            let error = checked(&format!("-- {flag} {value}")).unwrap_err();
            assert!(error.contains(&flag) && error.contains(mend), "{error}");
        }
    }
}
