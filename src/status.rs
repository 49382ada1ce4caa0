//! `bellwether status`: the members table.

/// Asks and prints.
pub fn run(_args: &crate::config::StatusArgs) -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}
