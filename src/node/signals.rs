//! SIGTERM and SIGINT: an orderly resignation within a second, and none when the second signal comes.
//!
//! Watched before anything else is done: the kernel drops a SIGTERM to process 1 of a container that has no
//! handler.

use super::driver::Input;
use crate::base::LogEvent;
use crate::telemetry;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// How long a resignation may take: less than the second that is promised.
const FAREWELL_MAX: Duration = Duration::from_millis(900);

/// Raises `stop` at the first signal and wakes the driver; ends the process at the second, or when the
/// resignation takes too long.
pub(super) fn watch(inputs: SyncSender<Input>, stop: Arc<AtomicBool>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    std::thread::Builder::new().name("signals".to_owned()).stack_size(128 * 1024).spawn(move || {
        let mut asked = false;
        for signal in signals.forever() {
            if asked {
                end("asked a second time to stop: ending without a resignation");
            }
            asked = true;
            let name = if signal == SIGTERM { "SIGTERM" } else { "SIGINT" };
            LogEvent::info("stopping").with("signal", name).say("this process is told to stop");
            stop.store(true, Ordering::Release);
            // Where the queue is full the driver is awake, and sees the flag before its next input.
            let _ = inputs.try_send(Input::Wake);
            // A thread of its own, so that a second signal is seen.
            let resignation =
                std::thread::Builder::new().name("resignation".to_owned()).stack_size(64 * 1024);
            let begun = resignation.spawn(|| {
                std::thread::sleep(FAREWELL_MAX);
                end("the resignation took too long: ending without it");
            });
            if begun.is_err() {
                end("no thread is left for a resignation: ending without it");
            }
        }
    })?;
    Ok(())
}

fn end(why: &str) -> ! {
    LogEvent::warn("stopped_early").say(why);
    telemetry::log::flush();
    std::process::exit(0)
}
