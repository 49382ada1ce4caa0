//! Flags and environment, checked into a configuration.
/// Parses the command line and runs what it asks for.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
