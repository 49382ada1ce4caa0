//! The command line: see [`bellwether::config`].

fn main() -> std::process::ExitCode {
    bellwether::config::main()
}
