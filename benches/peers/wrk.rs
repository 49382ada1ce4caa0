//! How fast a process answers, by wrk.

use super::text;
use std::process::{Command, Stdio};

/// Four connections of one thread, for five seconds.
const LOAD: [&str; 3] = ["-t1", "-c4", "-d5s"];
const RATE: &str = "Requests/sec:";

/// Whether wrk can be run.
pub fn is_there() -> bool {
    Command::new("wrk").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// The answers a second to `/leader` at this port of loopback. None without wrk.
///
/// # Errors
/// If wrk says no rate.
pub fn answers_a_second(port: u16) -> Result<Option<f64>, String> {
    if !is_there() {
        return Ok(None);
    }
    let url = format!("http://127.0.0.1:{port}/leader");
    let out = Command::new("wrk").args(LOAD).arg(url).output().map_err(text)?;
    let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    let rate = said.lines().find_map(|line| line.trim().strip_prefix(RATE)?.trim().parse().ok());
    rate.map(Some).ok_or_else(|| format!("wrk says no rate: {said}"))
}
