//! Hands what operators ask for to the driver, and waits for the answer.

use super::driver::Input;
use crate::base::{LogEvent, boottime};
use crate::config::{Config, ControlSocket};
use crate::control::{self, Bound, Operators, Request, SocketError, Unanswered};
use crate::election::Moment;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

/// How much longer than the operator's time the driver is waited for: the machine answers when that is over.
const MARGIN: Duration = Duration::from_secs(1);
/// How long an operator waits for room among the inputs, each time.
const PAUSE: Duration = Duration::from_millis(10);

/// Makes the control socket. One that the operator has named is there, or the process does not start. The
/// default may be another process's: no container of the pod may keep this one from its start.
pub(super) fn bind(config: &Config, http_port: u16) -> Result<Option<Bound>, SocketError> {
    let socket = config.control_socket.clone().unwrap_or_else(|| ControlSocket::of_port(http_port));
    match control::bind(&socket) {
        Ok(None) => Ok(None),
        Ok(Some(bound)) => {
            LogEvent::info("control_open")
                .with("socket", socket.to_string())
                .say("operators reach this process");
            Ok(Some(bound))
        }
        Err(error) if config.control_socket.is_none() => {
            LogEvent::warn("control_closed").say(format_args!("no operator reaches this process: {error}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// What asks the driver.
pub(super) fn operators(inputs: SyncSender<Input>) -> Operators {
    Box::new(move |Request { operation, within }| {
        let deadline = boottime().plus(within);
        let (answer, answered) = sync_channel(1);
        hand_over(&inputs, Input::Operation { operation, within, answer }, deadline)?;
        answered.recv_timeout(within.saturating_add(MARGIN)).map_err(|error| match error {
            // The driver has ended, and with it what would have answered.
            RecvTimeoutError::Disconnected => Unanswered::Stopping,
            RecvTimeoutError::Timeout => Unanswered::Stuck,
        })
    })
}

/// Puts an input into the driver's queue, once it has room.
pub(super) fn hand_over(
    inputs: &SyncSender<Input>,
    mut input: Input,
    deadline: Moment,
) -> Result<(), Unanswered> {
    loop {
        input = match inputs.try_send(input) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Disconnected(_)) => return Err(Unanswered::Stopping),
            Err(TrySendError::Full(_)) if boottime() >= deadline => return Err(Unanswered::Stuck),
            Err(TrySendError::Full(input)) => input,
        };
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::election::{Operation, OperationRefusal};

    fn cordon(within: Duration) -> Request {
        Request { operation: Operation::Cordon, within }
    }

    #[test]
    fn the_drivers_answer_is_the_operators() {
        let (sender, inputs) = sync_channel(1);
        let ask = operators(sender);
        let driver = thread::spawn(move || match inputs.recv().unwrap() {
            Input::Operation { operation: Operation::Cordon, answer, .. } => {
                answer.try_send(Err(OperationRefusal::Busy)).unwrap();
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(ask(cordon(Duration::from_secs(9))), Ok(Err(OperationRefusal::Busy)));
        driver.join().unwrap();
    }

    #[test]
    fn a_driver_that_has_ended_or_hangs_is_told_of() {
        let (sender, inputs) = sync_channel(1);
        let ask = operators(sender);
        let short = Duration::from_millis(20);
        assert_eq!(ask(cordon(short)), Err(Unanswered::Stuck), "it takes the input, and says nothing");
        assert_eq!(ask(cordon(short)), Err(Unanswered::Stuck), "it takes no input");
        drop(inputs);
        assert_eq!(ask(cordon(short)), Err(Unanswered::Stopping));
    }
}
