//! What the demo shows.

use super::process_cluster::{Agreement, ClusterError, ClusterPlan, ProcessCluster};
use crate::config::{DemoArgs, SafetyLevel};
use rustix::process::Signal;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long anything in the demo may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// Without `--once`: between two kills.
const PAUSE: Duration = Duration::from_secs(4);

/// Runs the demo. Exit code 0 when it has shown what it should or was interrupted, 1 otherwise.
pub fn run(args: &DemoArgs) -> ExitCode {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        if let Err(error) = signal_hook::flag::register(signal, Arc::clone(&interrupted)) {
            eprintln!("error: cannot watch for an interrupt: {error}");
            return ExitCode::FAILURE;
        }
    }
    let outcome = Demo::start(args, interrupted).and_then(|mut demo| {
        let outcome = demo.play(args.once);
        demo.sum_up();
        outcome
    });
    match outcome {
        Ok(()) | Err(Ended::Interrupted) => ExitCode::SUCCESS,
        Err(Ended::Failed(error)) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

enum Ended {
    Interrupted,
    Failed(ClusterError),
}

impl From<ClusterError> for Ended {
    fn from(error: ClusterError) -> Ended {
        Ended::Failed(error)
    }
}

struct Demo {
    processes: ProcessCluster,
    /// Removed after the cluster has ended, since it stands after it.
    _states: Option<States>,
    began: Instant,
    interrupted: Arc<AtomicBool>,
    results: Vec<(&'static str, Duration)>,
}

/// The state folders of a demo's voters: in a folder of their own, which goes with this.
struct States(PathBuf);

impl States {
    fn new() -> io::Result<States> {
        let folder = std::env::temp_dir().join(format!("bellwether-demo-{}", uuid::Uuid::new_v4()));
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(States(folder))
    }
}

impl Drop for States {
    fn drop(&mut self) {
        // A remainder stays in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Demo {
    fn start(args: &DemoArgs, interrupted: Arc<AtomicBool>) -> Result<Demo, Ended> {
        let binary = std::env::current_exe()
            .map_err(|source| ClusterError::Start { what: "this program again".to_owned(), source })?;
        let states = match args.safety {
            SafetyLevel::Classic => None,
            SafetyLevel::Majority => Some(States::new().map_err(|source| ClusterError::Start {
                what: "with state folders in the folder for temporary files (TMPDIR)".to_owned(),
                source,
            })?),
        };
        let plan = ClusterPlan {
            binary,
            n: args.n,
            base_port: args.base_port,
            // It knows how many it starts, so they need not wait for others that may come.
            flags: ["--log", "error", "--expect", &args.n.to_string()].map(str::to_owned).into(),
            majority: states.as_ref().map(|states| states.0.clone()),
            logs: None,
            relay: None,
        };
        let mut processes = ProcessCluster::new(plan)?;
        say(format_args!(
            "{} sidecars on this machine, each one a real process; ask any of them which one leads:",
            args.n
        ));
        let began = Instant::now();
        processes.start_all()?;
        for place in processes.running() {
            let (name, pid) = (processes.name(place), processes.pid(place).unwrap_or_default());
            say(format_args!(
                "  {name} (pid {pid})  curl -s http://127.0.0.1:{}/leader",
                processes.ports(place).http
            ));
        }
        Ok(Demo { processes, _states: states, began, interrupted, results: Vec::new() })
    }

    fn play(&mut self, once: bool) -> Result<(), Ended> {
        let mut now = self.agree(0)?;
        self.line(&format!("{} leads in epoch {}, all say", self.processes.name(now.leader), now.epoch));
        loop {
            now = self.take_down(&now, Signal::KILL, "crash (SIGKILL)")?;
            if !once {
                self.rest()?;
            }
            now = self.take_down(&now, Signal::TERM, "resignation (SIGTERM)")?;
            if once {
                break;
            }
            self.rest()?;
        }
        Ok(())
    }

    /// What has been measured so far.
    fn sum_up(&self) {
        if self.results.is_empty() {
            return;
        }
        say(format_args!("\ntime from the signal until all survivors name the same new leader:"));
        for (cause, took) in &self.results {
            say(format_args!("  {cause:<20} {:>8.1} ms", milliseconds(*took)));
        }
    }

    /// Ends the leader, waits for the next, and brings the process back.
    fn take_down(
        &mut self,
        now: &Agreement,
        signal: Signal,
        cause: &'static str,
    ) -> Result<Agreement, Ended> {
        let place = now.leader;
        let name = self.processes.name(place);
        self.line(&format!(
            "{cause}: {name}, the leader, pid {}",
            self.processes.pid(place).unwrap_or_default()
        ));
        let at = Instant::now();
        self.processes.signal(place, signal);
        let survivors: Vec<usize> = self.processes.running().into_iter().filter(|p| *p != place).collect();
        let next = self.wait(|processes, within| processes.agree_among(&survivors, now.epoch, within))?;
        let took = next.since.saturating_duration_since(at);
        self.line(&format!(
            "{} leads in epoch {}, say all {} survivors, {:.1} ms later",
            self.processes.name(next.leader),
            next.epoch,
            survivors.len(),
            milliseconds(took)
        ));
        self.results.push((cause, took));
        self.processes.wait(place, PATIENCE)?;
        self.processes.start(place, &[])?;
        let all = self.agree(now.epoch)?;
        let change = if all.epoch == next.epoch { "without an election" } else { "with an election" };
        self.line(&format!("{name} is back and follows {}, {change}", self.processes.name(all.leader)));
        Ok(all)
    }

    fn agree(&self, epoch: u64) -> Result<Agreement, Ended> {
        self.wait(|processes, within| processes.agree(epoch, within))
    }

    /// Waits for something of the cluster, in steps, so that an interrupt is noticed.
    fn wait<T>(
        &self,
        ask: impl Fn(&ProcessCluster, Duration) -> Result<T, ClusterError>,
    ) -> Result<T, Ended> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Ended::Interrupted);
            }
            match ask(&self.processes, Duration::from_millis(100)) {
                Err(ClusterError::Deadline { .. }) if Instant::now() < deadline => {}
                Err(ClusterError::Deadline { what, said, .. }) => {
                    return Err(ClusterError::Deadline { what, within: PATIENCE, said }.into());
                }
                outcome => return Ok(outcome?),
            }
        }
    }

    fn rest(&self) -> Result<(), Ended> {
        let until = Instant::now() + PAUSE;
        while Instant::now() < until {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Ended::Interrupted);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn line(&self, text: &str) {
        say(format_args!("{:>9.3} s  {text}", self.began.elapsed().as_secs_f64()));
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Prints a line. A reader that has gone away misses the rest of the show, and that is all.
fn say(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
