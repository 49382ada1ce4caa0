//! SIGTERM and SIGINT: an orderly resignation within a second of the last hold, and none when the second
//! signal comes.
//!
//! Watched before anything else is done: the kernel drops a SIGTERM to process 1 of a container that has no
//! handler.

use super::driver::Input;
use super::stop::Stop;
use crate::base::LogEvent;
use crate::telemetry;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// How long a resignation may take: less than the second that is promised. What it waits for holds comes on
/// top.
const RESIGNATION_MAX: Duration = Duration::from_millis(900);
/// Between two looks for a second signal, and at the holds that are waited for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Raises `stop` at the first signal and wakes the driver. Ends the process at the second, or when the
/// resignation takes too long.
pub(super) fn watch(inputs: SyncSender<Input>, stop: Arc<Stop>, stop_wait: Duration) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    std::thread::Builder::new().name("signals".to_owned()).stack_size(128 * 1024).spawn(move || {
        let Some(signal) = signals.forever().next() else { return };
        stop.asked.store(true, Ordering::Release);
        // Where the queue is full the driver is awake, and sees the flag before its next input.
        let _ = inputs.try_send(Input::Wake);
        let name = if signal == SIGTERM { "SIGTERM" } else { "SIGINT" };
        LogEvent::info("stopping").with("signal", name).say("this process is told to stop");
        resigning(&mut signals, &stop, stop_wait);
        end("the resignation took too long: ending without it");
    })?;
    Ok(())
}

/// Waits until the resignation has taken too long.
fn resigning(signals: &mut Signals, stop: &Stop, stop_wait: Duration) {
    wait(signals, RESIGNATION_MAX);
    let mut left = stop_wait;
    let mut waited = false;
    while stop.waits.load(Ordering::Relaxed) && !left.is_zero() {
        wait(signals, LOOK_EVERY);
        left = left.saturating_sub(LOOK_EVERY);
        waited = true;
    }
    if waited {
        wait(signals, RESIGNATION_MAX);
    }
}

/// Waits for this long. A second signal ends the process.
fn wait(signals: &mut Signals, mut left: Duration) {
    while !left.is_zero() {
        if signals.pending().next().is_some() {
            end("asked a second time to stop: ending without a resignation");
        }
        let step = left.min(LOOK_EVERY);
        std::thread::sleep(step);
        left -= step;
    }
}

fn end(why: &str) -> ! {
    LogEvent::warn("stopped_early").say(why);
    telemetry::log::flush();
    std::process::exit(0)
}
