//! The program: see [`bellwether::config`] for its command line, [`bellwether::node`] for the sidecar.

use bellwether::config::{Command, command};
use bellwether::{demo, inject, node, sim, status};
use std::process::ExitCode;

fn main() -> ExitCode {
    match command() {
        Ok(Command::Run(_)) if !demo::hold() => ExitCode::SUCCESS,
        Ok(Command::Run(config)) => node::run(*config),
        Ok(Command::Demo(args)) => demo::run(&args),
        Ok(Command::Status(args)) => status::run(&args),
        Ok(Command::Sim(args)) => sim::run(&args),
        Ok(Command::Inject(args)) => inject::run(&args),
        Err(code) => code,
    }
}
