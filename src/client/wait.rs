//! `bellwether wait`: waits for a leader, or until this process leads or follows.

use super::api::Api;
use super::changes::{Changes, Parts, Told};
use super::signals::Signalled;
use super::{EXIT_BAD_CONFIGURATION, EXIT_OWN_ERROR, failed};
use crate::base::duration::show;
use crate::config::{WaitArgs, WaitFor};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// "It did not come in time", as `timeout` says it.
const EXIT_TIMED_OUT: u8 = 124;
/// Between two questions to a sidecar that does not answer.
const RETRY_EVERY: Duration = Duration::from_millis(100);

/// Waits. The exit code says whether it has come.
pub fn run(args: &WaitArgs) -> ExitCode {
    let api = match Api::at(args.url.as_deref()) {
        Ok(api) => api,
        Err(trouble) => return failed(&trouble, EXIT_BAD_CONFIGURATION),
    };
    if let Err(error) = Signalled::watch() {
        return failed(&format!("the system refuses a thread: {error}"), EXIT_OWN_ERROR);
    }
    let (mut changes, end) = (Changes::of(&api), Instant::now() + args.timeout);
    let mut why = String::new();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match changes.next(left) {
            Ok(Some(Told { parts, .. })) if is_there(args.wanted, &parts) => return ExitCode::SUCCESS,
            Ok(Some(Told { parts, .. })) => {
                why = match parts.leader {
                    Some(leader) => format!("{} leads in epoch {}", leader.name, parts.epoch),
                    None => "no process leads".to_owned(),
                }
            }
            Ok(None) => {}
            Err(trouble) => {
                why = trouble.to_string();
                std::thread::sleep(RETRY_EVERY.min(end.saturating_duration_since(Instant::now())));
            }
        }
        if Instant::now() >= end {
            let waited = format!("{} did not come in {}: {why}", args.wanted, show(args.timeout));
            return failed(&waited, EXIT_TIMED_OUT);
        }
    }
}

/// Whether it is there now. What another change has followed is not.
fn is_there(wanted: WaitFor, parts: &Parts) -> bool {
    let (known, leads) = (parts.leader.is_some(), parts.is_leader);
    let there = match wanted {
        WaitFor::Leader => known,
        WaitFor::Leading => leads,
        WaitFor::Following => known && !leads,
    };
    there && !parts.past
}
