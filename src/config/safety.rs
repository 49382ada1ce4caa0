//! `--safety`: what is promised, and the flags that each level requires or excludes.

use super::flags::RunArgs;
use super::modes::SafetyLevel;
use super::voters::{SafetyError, resolved};
use crate::election::{CrashEvidence, Founding, Safety, counted};

/// What is promised, of the flags and this process's name.
pub fn safety(args: &RunArgs, name: &str) -> Result<Safety, SafetyError> {
    match (args.safety, &args.voters) {
        (SafetyLevel::Classic, Some(voters)) => Err(SafetyError::VotersInClassic(voters.clone())),
        (SafetyLevel::Classic, None) if args.crash_evidence == CrashEvidence::Release => {
            Err(SafetyError::ReleaseInClassic)
        }
        (SafetyLevel::Classic, None) if args.found != Founding::Auto => {
            Err(SafetyError::FoundInClassic(args.found))
        }
        (SafetyLevel::Classic, None) => Ok(Safety::Classic),
        (SafetyLevel::Majority, None) if args.state_dir.is_none() => Err(SafetyError::NoVotersNorStateDir),
        (SafetyLevel::Majority, Some(_)) if args.state_dir.is_none() => Err(SafetyError::NoStateDir),
        (SafetyLevel::Majority, None) => Err(SafetyError::NoVoters),
        (SafetyLevel::Majority, Some(given)) => {
            check_lease(args)?;
            Ok(Safety::Majority { voters: resolved(given, name)? })
        }
    }
}

fn check_lease(args: &RunArgs) -> Result<(), SafetyError> {
    let (lease, heartbeat, answer) = (args.lease, args.heartbeat, args.answer_timeout);
    if counted(lease) < heartbeat * 2 + answer {
        return Err(SafetyError::LeaseTooShort { lease, heartbeat, answer });
    }
    Ok(())
}
