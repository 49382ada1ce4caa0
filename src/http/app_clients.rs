//! Applications of this pod, which ask for what changes something: which of them may, and what they ask for.

use super::Source;
use super::request::Request;
use super::response::{Response, error, header};
use crate::base::Reading;
use crate::election::{HoldAnswer, HoldRequest, Sign};
use std::net::IpAddr;

/// What the driver has answered, and what the clocks showed in the turn that the answer counts from.
pub type Held = (HoldAnswer, Reading);

/// Why an application is not asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unheld {
    /// The operator has turned this off (`--app-clients none`).
    Off,
    /// The driver has no room or no time for the question.
    Busy,
}

/// What an application asks of the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    Hold(HoldRequest),
    /// To be answered without a body.
    Sign(Sign),
    /// The connection is a lifeline from now on.
    Lifeline,
}

/// What becomes of a request of an application.
pub(super) enum Look {
    /// The driver is to be asked.
    Asks(Asked),
    /// It is answered at once.
    Answered(Response),
}

/// Why a client may not ask, if it may not. A page in a browser has an Origin or a Sec-Fetch-Site, and a name
/// that leads to loopback is a foreign Host.
pub(super) fn refusal(request: &Request<'_>, remote: IpAddr, source: &dyn Source) -> Option<Response> {
    let why = if !source.serves_applications() {
        "what changes something is turned off (--app-clients none)"
    } else if !remote.is_loopback() {
        "this is for applications of this pod: ask over a loopback address, such as http://127.0.0.1:4040"
    } else if request.origin {
        "this is for programs, not for pages: leave the headers Origin and Sec-Fetch-Site out"
    } else if !request.loopback_host {
        "this is for applications of this pod: the Host header has to name localhost or a loopback address"
    } else {
        return None;
    };
    Some(error(403, why))
}

/// The driver has no time.
pub(super) fn busy() -> Response {
    let message = "the process has no time for this now; ask again in 1s. The holds that you have go on";
    error(503, message).with_header(header("Retry-After", "1"))
}
