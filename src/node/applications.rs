//! Hands what applications ask for to the driver, and waits for the answer.

use super::driver::Input;
use super::operators::hand_over;
use super::published_state::AskDriver;
use crate::base::boottime;
use crate::election::{HoldRequest, Sign};
use crate::http::{Held, Unheld};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

/// How long an application waits for the driver. A hold that is granted later runs out without a holder.
const PATIENCE: Duration = Duration::from_secs(2);

/// What asks the driver for applications.
pub(super) struct Applications(pub(super) SyncSender<Input>);

impl AskDriver for Applications {
    fn hold(&self, request: HoldRequest) -> Result<Held, Unheld> {
        let (answer, answered) = sync_channel(1);
        let deadline = boottime().plus(PATIENCE);
        hand_over(&self.0, Input::Hold { request, answer }, deadline).map_err(|_| Unheld::Busy)?;
        answered.recv_timeout(PATIENCE).map_err(|_| Unheld::Busy)
    }

    /// The end of a lifeline is not lost: it waits for as long as the driver lives. That an application
    /// watches is said again and again, and waits for nothing.
    fn sign(&self, sign: Sign) -> Result<(), Unheld> {
        let input = Input::Application(sign);
        let handed_on = match sign {
            Sign::LifelineEnded => self.0.send(input).is_ok(),
            Sign::Watches { .. } => self.0.try_send(input).is_ok(),
            _ => hand_over(&self.0, input, boottime().plus(PATIENCE)).is_ok(),
        };
        if handed_on { Ok(()) } else { Err(Unheld::Busy) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is said from the thread that answers all watchers.
    #[test]
    fn that_an_application_watches_waits_for_no_full_driver() {
        let (sender, receiver) = sync_channel(1);
        let (applications, began) = (Applications(sender), boottime());
        let watches = Sign::Watches { valid_for: Duration::from_secs(1) };
        assert_eq!(applications.sign(watches), Ok(()));
        assert_eq!(applications.sign(watches), Err(Unheld::Busy));
        assert!(boottime().since(began) < PATIENCE);
        drop(receiver);
    }
}
