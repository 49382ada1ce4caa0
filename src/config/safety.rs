//! `--safety`: what is promised, and the flags that each level requires or excludes.

use super::flags::RunArgs;
use super::level::Level;
use super::voters::{Refusal, resolved};
use crate::election::{CrashEvidence, Founding, Safety, counted};

/// What is promised, of the flags and this process's name.
pub fn safety(args: &RunArgs, name: &str) -> Result<Safety, Refusal> {
    match (args.safety, &args.voters) {
        (Level::Classic, Some(voters)) => Err(Refusal::VotersInClassic(voters.clone())),
        (Level::Classic, None) if args.crash_evidence == CrashEvidence::Release => {
            Err(Refusal::ReleaseInClassic)
        }
        (Level::Classic, None) if args.found != Founding::Auto => Err(Refusal::FoundInClassic(args.found)),
        (Level::Classic, None) => Ok(Safety::Classic),
        (Level::Majority, _) if args.state_dir.is_none() => Err(Refusal::NoStateDir),
        (Level::Majority, None) => Err(Refusal::NoVoters),
        (Level::Majority, Some(given)) => {
            check_lease(args)?;
            Ok(Safety::Majority { voters: resolved(given, name)? })
        }
    }
}

fn check_lease(args: &RunArgs) -> Result<(), Refusal> {
    let (lease, heartbeat, answer) = (args.lease, args.heartbeat, args.answer_timeout);
    if counted(lease) < heartbeat * 2 + answer {
        return Err(Refusal::LeaseTooShort { lease, heartbeat, answer });
    }
    Ok(())
}
