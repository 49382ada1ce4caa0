//! The program: see [`bellwether::config`] for its command line, [`bellwether::node`] for the sidecar.

use bellwether::client::{alive, exec, install, wait, watch};
use bellwether::config::{Command, command};
use bellwether::{control, demo, node, status};
use std::process::ExitCode;

/// More than parsing takes in any build.
const PARSER_STACK: usize = 8 << 20;

fn main() -> ExitCode {
    match parsed() {
        Ok(Command::Run(_)) if !demo::hold() => ExitCode::SUCCESS,
        Ok(Command::Run(config)) => node::run(*config),
        Ok(Command::Demo(args)) => demo::run(&args),
        Ok(Command::Status(args)) => status::run(&args),
        Ok(Command::Exec(args)) => exec::run(&args),
        Ok(Command::Watch(args)) => watch::run(&args),
        Ok(Command::Wait(args)) => wait::run(&args),
        Ok(Command::Install(args)) => install::run(&args),
        Ok(Command::Alive(args)) => alive::run(&args),
        Ok(Command::Operate(args)) => control::run(&args),
        #[cfg(feature = "sim")]
        Ok(Command::Sim(args)) => bellwether::sim::run(&args),
        #[cfg(feature = "inject")]
        Ok(Command::Inject(args)) => bellwether::inject::run(&args),
        Err(code) => code,
    }
}

/// Parses on a thread of its own. Parsing takes a deep stack, whose pages the main thread would keep to the
/// end of the process; a thread that ends gives them back. Where no thread can be had, this one parses.
fn parsed() -> Result<Command, ExitCode> {
    let parser = std::thread::Builder::new().name("arguments".to_owned()).stack_size(PARSER_STACK);
    match parser.spawn(command).map(std::thread::JoinHandle::join) {
        Ok(Ok(parsed)) => parsed,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(_) => command(),
    }
}
