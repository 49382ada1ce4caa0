//! A PostgreSQL cluster of its own, from Debian's package. `initdb` refuses root, so it runs as `postgres`.

use crate::namespace::{Namespace, must};
use crate::wait::within;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Longer than anything here takes; only a failing test waits for it.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Debian has a folder for each major version in it.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The database's superuser, and owner of the guard.
pub const OWNER: &str = "postgres";
/// The application's role.
pub const WORKER: &str = "worker";

/// A file of the example.
pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fencing-postgresql").join(name)
}

/// A running server with the example's guard and table. Dropping it ends it.
pub struct Database {
    server: Child,
    folder: TempDir,
}

impl Database {
    /// A server on a Unix socket, in the network namespace and at the address that are given with it.
    pub fn start(inside: Option<(&Namespace, Ipv4Addr)>) -> Database {
        let folder = tempfile::tempdir().unwrap();
        must(Command::new("chown").arg(OWNER).arg(folder.path()));
        let data = folder.path().join("data");
        let mut initdb = as_owner(Command::new("setpriv"), "initdb");
        initdb.args(["--auth", "trust", "--username", OWNER, "--no-sync", "--pgdata"]).arg(&data);
        // It runs the server in its own working directory.
        must(initdb.current_dir(folder.path()).stdout(Stdio::null()));
        let hosts = data.join("pg_hba.conf");
        let mut hosts = fs::OpenOptions::new().append(true).open(hosts).unwrap();
        writeln!(hosts, "host all {WORKER} 198.18.0.0/24 trust").unwrap();
        let command = match inside {
            Some((namespace, _)) => namespace.run("setpriv".as_ref()),
            None => Command::new("setpriv"),
        };
        let address = inside.map(|(_, address)| address.to_string()).unwrap_or_default();
        let log = File::create(folder.path().join("log")).unwrap();
        let mut command = as_owner(command, "postgres");
        command
            .arg("-D")
            .arg(&data)
            .args(["-c", &format!("listen_addresses={address}"), "-c", "fsync=off"])
            .args(["-c", &format!("unix_socket_directories={}", folder.path().display())])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let database = Database { server: command.spawn().unwrap(), folder };
        let ready = within(PATIENCE, || database.run(OWNER, "select 1").ok());
        assert!(ready.is_some(), "PostgreSQL does not start:\n{}", database.log());
        database.apply("guard.sql");
        database.apply("journal.sql");
        database
    }

    /// By which libpq finds it, as the application's role.
    pub fn variables(&self) -> [(&'static str, String); 3] {
        let folder = self.folder.path().display().to_string();
        [("PGHOST", folder), ("PGUSER", WORKER.to_owned()), ("PGDATABASE", "postgres".to_owned())]
    }

    /// Runs a file of the example, as the guard's owner.
    pub fn apply(&self, name: &str) {
        let script = fs::read_to_string(example(name)).unwrap();
        self.run(OWNER, &script).unwrap_or_else(|state| panic!("{name}: {state}"));
    }

    /// Runs a script up to its first error: what it prints, or the SQLSTATE of the error.
    pub fn run(&self, role: &str, script: &str) -> Result<String, String> {
        let mut child = self.psql(role, "script");
        // Without a connection psql ends before it reads the script, and its error says so.
        child.stdin.take().unwrap().write_all(script.as_bytes()).ok();
        result(&child.wait_with_output().unwrap())
    }

    /// A session that stays open, with the name by which [`Database::waits_for`] finds it.
    pub fn session(&self, role: &str, name: &str) -> Session {
        let mut child = self.psql(role, name);
        Session { statements: child.stdin.take().unwrap(), child }
    }

    /// Waits until the session of this name is in this state.
    pub fn waits_for(&self, name: &str, state: &str) {
        let script =
            format!("select 1 from pg_stat_activity where application_name = '{name}' and ({state})");
        let found = within(PATIENCE, || self.run(OWNER, &script).ok().filter(|rows| !rows.is_empty()));
        assert!(found.is_some(), "{name} does not come to {state}:\n{}", self.log());
    }

    fn psql(&self, role: &str, name: &str) -> Child {
        let mut command = Command::new(program("psql"));
        command
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--username", role])
            .args(["--set", "ON_ERROR_STOP=1", "--set", "VERBOSITY=sqlstate", "--file", "-"])
            .args(["--dbname", "postgres", "--host"])
            .arg(self.folder.path())
            .env("PGAPPNAME", name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Its fast shutdown: it ends the sessions.
        kill_process(Pid::from_child(&self.server), Signal::INT).ok();
        if within(PATIENCE, || self.server.try_wait().ok().flatten()).is_none() {
            self.server.kill().ok();
            self.server.wait().ok();
        }
        if std::thread::panicking() {
            eprintln!("--- PostgreSQL ---\n{}", self.log());
        }
    }
}

/// A session whose statements come one by one. It ends with its first error.
pub struct Session {
    statements: ChildStdin,
    child: Child,
}

impl Session {
    pub fn send(&mut self, statement: &str) {
        writeln!(self.statements, "{statement}").unwrap();
    }

    /// Ends it: what it has printed, or the SQLSTATE of its error.
    pub fn end(self) -> Result<String, String> {
        drop(self.statements);
        result(&self.child.wait_with_output().unwrap())
    }
}

fn result(output: &Output) -> Result<String, String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let mut errors = String::new();
    output.stderr.as_slice().read_to_string(&mut errors).unwrap();
    // `psql:<stdin>:3: ERROR:  LF001`
    let state = errors.lines().find_map(|line| line.split_once("ERROR:").map(|(_, state)| state.trim()));
    Err(state.unwrap_or(&errors).to_owned())
}

/// The rest of this command as the user `postgres`. The program does not outlive the thread that starts it.
fn as_owner(mut setpriv: Command, name: &str) -> Command {
    setpriv
        .args(["--reuid", OWNER, "--regid", OWNER, "--clear-groups", "--pdeathsig", "KILL"])
        .arg(program(name));
    setpriv
}

/// A program of the newest version.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir(VERSIONS).unwrap_or_else(|error| panic!("PostgreSQL's {VERSIONS}: {error}"));
    let programs = versions.map(|version| version.unwrap().path().join("bin").join(name));
    let newest = programs.filter(|program| program.is_file()).max();
    newest.unwrap_or_else(|| panic!("there is no {VERSIONS}/VERSION/bin/{name}"))
}
