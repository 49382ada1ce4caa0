//! `bellwether wait`: waits for a leader, or until this process leads or follows.

use super::api::Api;
use super::changes::{Changes, Told};
use super::{EXIT_BAD_CONFIGURATION, failed};
use crate::base::duration::show;
use crate::config::{Awaited, WaitArgs};
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
    let (mut changes, end) = (Changes::of(&api), Instant::now() + args.timeout);
    let mut why = "there is none".to_owned();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match changes.next(left) {
            Ok(Some(told)) if is_there(args.wanted, &told) => return ExitCode::SUCCESS,
            Ok(Some(Told { parts, .. })) => {
                why = match parts.leader {
                    Some(leader) => format!("{} leads in epoch {}", leader.name, parts.epoch),
                    None => "no process leads".to_owned(),
                }
            }
            Ok(None) => {}
            Err(trouble) => {
                why = trouble.to_string();
                std::thread::sleep(RETRY_EVERY.min(left));
            }
        }
        if left.is_zero() {
            let waited = format!("{} did not come in {}: {why}", args.wanted, show(args.timeout));
            return failed(&waited, EXIT_TIMED_OUT);
        }
    }
}

fn is_there(wanted: Awaited, told: &Told) -> bool {
    let (known, leads) = (told.parts.leader.is_some(), told.parts.is_leader);
    match wanted {
        Awaited::Leader => known,
        Awaited::Leading => leads,
        Awaited::Following => known && !leads,
    }
}
