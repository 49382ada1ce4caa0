//! The programs that are measured: how each is made, and the flags of its rows.

use super::{Make, N, sources, text};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// A program with the command line of `bellwether run`, and its flags for one row.
pub struct Program {
    pub what: String,
    pub path: PathBuf,
    pub flags: Vec<String>,
    /// Whether its processes keep records, each in a folder of its own.
    pub records: bool,
}

/// A system: its name, and how its programs are made.
pub type System = (&'static str, Make);

/// A row of this project: its name, its flags, and whether its processes keep records.
type OwnRow = (&'static str, &'static str, bool);

const DEFAULTS: [OwnRow; 3] = [
    ("classic", "--preempt never", false),
    ("majority", "--preempt never", true),
    ("majority, release", "--preempt never --crash-evidence release", true),
];
/// With the shortest lease that adapts.
const SHORTEST: [OwnRow; 2] = [
    ("classic, 200 ms", "--preempt never --lease-min 200ms", false),
    ("majority, 200 ms", "--preempt never --lease-min 200ms", true),
];

/// The rows of these run one after the other, since they take milliseconds.
pub const ONE_BY_ONE: [System; 5] = [
    ("bellwether", |builder| Ok(builder.bellwether(&DEFAULTS))),
    ("bellwether-shortest", |builder| Ok(builder.bellwether(&SHORTEST))),
    ("raft", |builder| builder.go("hashicorp", "hashicorp/raft", "250 ms")),
    ("etcd", |builder| builder.go("etcd", "etcd", "250 ms")),
    ("keepalived", |builder| builder.keepalived()),
];

/// The rows of these run at once, after the others. They take seconds, and a round of some a minute.
pub const AT_ONCE: [System; 3] = [
    ("lease", |builder| match std::env::var_os("KUBECONFIG") {
        Some(_) => builder.go("lease", "client-go", "2 s"),
        None => Err("KUBECONFIG names no API server".to_owned()),
    }),
    ("jgroups", |builder| builder.java("Jgroups", "JGroups", "250 ms", "")),
    ("curator", |builder| builder.curator()),
];

/// Makes the others' programs. Dropping it ends what they needed.
pub struct Builder {
    folder: PathBuf,
    bellwether: PathBuf,
    servers: Mutex<Vec<Child>>,
    namespaces: Mutex<Vec<String>>,
}

impl Builder {
    /// Programs are made in a folder beside the benches, and kept. Without a program of bellwether, it is the
    /// bench's own.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn new(bellwether: Option<PathBuf>) -> Result<Builder, String> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers");
        fs::create_dir_all(&folder).map_err(text)?;
        let bellwether = bellwether.unwrap_or_else(|| env!("CARGO_BIN_EXE_bellwether").into());
        Ok(Builder { folder, bellwether, servers: Mutex::default(), namespaces: Mutex::default() })
    }

    /// Rows of this project.
    fn bellwether(&self, rows: &[OwnRow]) -> Vec<Program> {
        let program = |(what, flags, records): &OwnRow| Program {
            what: format!("bellwether, {what}"),
            path: self.bellwether.clone(),
            flags: flags.split(' ').map(str::to_owned).collect(),
            records: *records,
        };
        rows.iter().map(program).collect()
    }

    /// A Go program, once with its defaults and once with its shortest times.
    fn go(&self, package: &str, what: &str, shortest: &str) -> Result<Vec<Program>, String> {
        let path = self.folder.join(package);
        let mut build = Command::new("go");
        build.args(["build", "-trimpath", "-o"]).arg(&path).arg(format!("./{package}"));
        ran(build.current_dir(sources()))?;
        Ok(two(what, shortest, &path))
    }

    /// A Java program, as [`Builder::go`]. `options` are the virtual machine's.
    fn java(&self, class: &str, what: &str, shortest: &str, options: &str) -> Result<Vec<Program>, String> {
        let classes = self.classes()?;
        let path = self.folder.join(class.to_lowercase());
        let script = format!("#!/bin/sh\nexec java -Xmx256m {options} -cp '{classes}' {class} \"$@\"\n");
        fs::write(&path, script).map_err(text)?;
        fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(text)?;
        Ok(two(what, shortest, &path))
    }

    /// Curator, with a ZooKeeper server that nothing disturbs.
    fn curator(&self) -> Result<Vec<Program>, String> {
        let classes = self.classes()?;
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.map_err(text)?.port();
        let data = tempfile::tempdir_in(super::MEMORY).map_err(text)?.keep();
        let mut server = Command::new("java");
        server.args(["-Xmx256m", "-cp", &classes, "Zookeeper", &port.to_string()]).arg(data);
        let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(text)?;
        self.servers.lock().map_err(text)?.push(server);
        self.java("Curator", "Curator", "4 s", &format!("-Dzookeeper=127.0.0.1:{port}"))
    }

    /// keepalived, with a network namespace for each process. The program knows their names.
    fn keepalived(&self) -> Result<Vec<Program>, String> {
        ran(Command::new("keepalived").arg("--version"))?;
        let bridge = self.namespace("bridge")?;
        ip(&["-n", &bridge, "link", "add", "bridge", "up", "type", "bridge"])?;
        for place in 1..=N {
            let (own, port) = (self.namespace(&place.to_string())?, format!("port{place}"));
            let pair = ["name", "eth0", "type", "veth", "peer", "name", &port, "netns", &bridge];
            ip(&[&["-n", &own, "link", "add"], pair.as_slice()].concat())?;
            ip(&["-n", &bridge, "link", "set", &port, "up", "master", "bridge"])?;
            ip(&["-n", &own, "address", "add", &format!("198.18.9.{place}/24"), "dev", "eth0"])?;
            ip(&["-n", &own, "link", "set", "eth0", "up"])?;
        }
        self.go("keepalived", "keepalived", "250 ms")
    }

    /// A network namespace of this run, which dropping the builder takes away.
    fn namespace(&self, what: &str) -> Result<String, String> {
        let name = format!("bellwether-peers-{}-{what}", std::process::id());
        ip(&["netns", "add", &name])?;
        self.namespaces.lock().map_err(text)?.push(name.clone());
        Ok(name)
    }

    /// The class path: compiled programs and libraries.
    fn classes(&self) -> Result<String, String> {
        let (libraries, programs) = (self.folder.join("libraries"), self.folder.join("classes"));
        let source = sources().join("java");
        let mut fetch = Command::new("mvn");
        fetch.args(["-q", "-B", "dependency:copy-dependencies", "-f"]).arg(source.join("pom.xml"));
        ran(fetch.arg(format!("-DoutputDirectory={}", libraries.display())))?;
        let path = format!("{}/*", libraries.display());
        let files = fs::read_dir(&source).map_err(text)?.filter_map(|entry| Some(entry.ok()?.path()));
        let files = files.filter(|file| file.extension().is_some_and(|extension| extension == "java"));
        ran(Command::new("javac").args(["-cp", &path, "-d"]).arg(&programs).args(files))?;
        Ok(format!("{}:{path}", programs.display()))
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        for server in self.servers.get_mut().into_iter().flatten() {
            let _ = server.kill();
            let _ = server.wait();
        }
        for namespace in self.namespaces.get_mut().into_iter().flatten() {
            let _ = ip(&["netns", "delete", namespace]);
        }
    }
}

fn ip(args: &[&str]) -> Result<(), String> {
    ran(Command::new("ip").args(args))
}

/// Both rows of one program.
fn two(what: &str, shortest: &str, path: &Path) -> Vec<Program> {
    let row = |what: String, flags: &[&str]| Program {
        what,
        path: path.to_owned(),
        flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        records: true,
    };
    vec![row(format!("{what}, defaults"), &[]), row(format!("{what}, {shortest}"), &["--fast"])]
}

/// Runs a command to its end.
fn ran(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    if out.status.success() {
        return Ok(());
    }
    let said = [out.stdout, out.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    Err(format!("{name} failed: {}", said.lines().last().unwrap_or("it says nothing")))
}
