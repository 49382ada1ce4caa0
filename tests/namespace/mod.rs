//! Network namespaces, which tests that need root make for themselves.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A network namespace with nothing in it but its own loopback interface. Dropping it takes it away.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes one. `purpose` and this process's id are in its name, so that an operator can tell which run
    /// left it behind.
    pub fn new(purpose: &str) -> Namespace {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bellwether-{purpose}-{}-{count}", std::process::id());
        must(Command::new("ip").args(["netns", "add", &name]));
        // From here on dropping it cleans up.
        let namespace = Namespace { name };
        must(namespace.ip().args(["link", "set", "lo", "up"]));
        namespace
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that runs `program` in it. The child is the program: `ip netns exec` becomes what it runs.
    pub fn run(&self, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// `ip`, for its interfaces.
    pub fn ip(&self) -> Command {
        let mut command = Command::new("ip");
        command.args(["-n", &self.name]);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        Command::new("ip").args(["netns", "delete", &self.name]).status().ok();
    }
}

/// Runs a command that must succeed.
pub fn must(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}
