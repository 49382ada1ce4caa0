//! `bellwether alive`: says once that the application is healthy for a time.

use super::api::Api;
use super::{EXIT_BAD_CONFIGURATION, EXIT_OWN_ERROR, failed};
use crate::config::AliveArgs;
use std::process::ExitCode;
use std::time::Duration;
use ureq::http::Method;

/// How long the sidecar may take to answer.
const ANSWER_LONGEST: Duration = Duration::from_secs(2);

/// Says so. The exit code says whether the sidecar has taken it.
pub fn run(args: &AliveArgs) -> ExitCode {
    let api = match Api::at(args.url.as_deref()) {
        Ok(api) => api,
        Err(trouble) => return failed(&trouble, EXIT_BAD_CONFIGURATION),
    };
    let path = format!("/alive?ttl={}ms", args.ttl.as_millis());
    match api.send(Method::POST, &path, &[204], ANSWER_LONGEST) {
        Ok(_) => ExitCode::SUCCESS,
        Err(trouble) => failed(&trouble, EXIT_OWN_ERROR),
    }
}
