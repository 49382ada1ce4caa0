//! Hands what applications ask for to the driver, and waits for the answer.

use super::driver::Input;
use super::operators::hand_over;
use super::published_state::AskForHold;
use crate::base::boottime;
use crate::http::Unheld;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

/// How long an application waits for the driver. A hold that is granted later runs out without a holder.
const PATIENCE: Duration = Duration::from_secs(2);

/// What asks the driver.
pub(super) fn applications(inputs: SyncSender<Input>) -> AskForHold {
    Box::new(move |request| {
        let (answer, answered) = sync_channel(1);
        let deadline = boottime().plus(PATIENCE);
        hand_over(&inputs, Input::Hold { request, answer }, deadline).map_err(|_| Unheld::Busy)?;
        answered.recv_timeout(PATIENCE).map_err(|_| Unheld::Busy)
    })
}
