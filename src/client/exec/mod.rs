//! `bellwether exec`: runs a command while the process here leads, under a hold.
//!
//! [`plan`] decides, [`holder`] asks the sidecar, and [`descendants`] are what the command has become.

mod descendants;
mod holder;
mod plan;

use super::api::{Api, Trouble};
use super::{EXIT_BAD_CONFIGURATION, EXIT_NOT_FOUND, EXIT_NOT_RUN, EXIT_OWN_ERROR, failed, warn};
use crate::base::{Clock, Reading};
use crate::config::ExecArgs;
use crate::election::Moment;
use descendants::{adopt, become_command, look_up, reap};
use holder::{Holder, Told};
use plan::{Answer, Do, Plan};
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::Signals;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Signals that end exec once they have ended the command.
const ENDS: [i32; 3] = [SIGTERM, SIGINT, SIGQUIT];
/// Signals that are for the command alone.
const PASSES: [i32; 4] = [SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH];
/// More events than ever wait: those that bring them wait for room.
const EVENTS_MAX: usize = 64;
/// While a command runs the clocks are looked at so often, for a suspend stops all timers.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// More warnings than this wait for a reader of stderr that has stopped reading: the others are lost.
const WARNINGS_MAX: usize = 16;
/// Between two rounds of SIGKILL, since a process may have been born between them.
const KILL_EVERY: Duration = Duration::from_millis(10);
/// The longest sleep.
const IDLE: Duration = Duration::from_secs(60);
/// For how long the worst delay counts, at least; twice that at most.
const DELAY_COUNTS: Duration = Duration::from_secs(60);

/// What wakes the loop.
enum Event {
    /// The sidecar's answer to a question of that generation.
    Told(u64, Result<Box<Told>, Trouble>),
    Signal(i32),
}

/// Runs the command, again and again.
pub fn run(args: &ExecArgs) -> ExitCode {
    if let Some(parent) = args.child_of {
        return not_run(args, &become_command(args, parent));
    }
    let api = match Api::at(args.url.as_deref()) {
        Ok(api) => api,
        Err(trouble) => return failed(&trouble, EXIT_BAD_CONFIGURATION),
    };
    if let Err(error) = args.command.first().map_or(Ok(()), |program| look_up(Path::new(program))) {
        return not_run(args, &error);
    }
    match Exec::begin(args, api) {
        Ok(mut exec) => exec.run(),
        Err(error) => failed(
            &format!("the system refuses what exec needs (a thread, /proc, a subreaper): {error}"),
            EXIT_OWN_ERROR,
        ),
    }
}

fn not_run(args: &ExecArgs, error: &io::Error) -> ExitCode {
    let command = args.command.first().map_or("".into(), |program| program.to_string_lossy());
    let code = if error.kind() == ErrorKind::NotFound { EXIT_NOT_FOUND } else { EXIT_NOT_RUN };
    failed(&format!("cannot run {command}: {error}; give a program after --"), code)
}

struct Exec<'a> {
    args: &'a ExecArgs,
    url: String,
    plan: Plan,
    holder: Holder,
    events: Receiver<Event>,
    /// A write to stderr may wait for its reader. The command's end must not.
    warnings: SyncSender<String>,
    clock: Clock,
    delays: Delays,
    command: Option<Pid>,
    /// Answers of an earlier generation are about a hold that has been ended.
    generation: u64,
    /// The sidecar does not answer.
    silent: bool,
    name: Option<String>,
    election: Option<String>,
}

impl<'a> Exec<'a> {
    fn begin(args: &'a ExecArgs, api: Api) -> io::Result<Exec<'a>> {
        adopt()?;
        let (sender, events) = sync_channel(EVENTS_MAX);
        watch_signals(sender.clone())?;
        let (warnings, said) = sync_channel(WARNINGS_MAX);
        thread::Builder::new().name("warnings".to_owned()).spawn(move || warn_each(said))?;
        let url = api.base().to_owned();
        let holder = Holder::start(api, args.hold, sender)?;
        Ok(Exec {
            args,
            url,
            plan: Plan::new(args),
            holder,
            events,
            warnings,
            clock: Clock::new(Reading::take()),
            delays: Delays::default(),
            command: None,
            generation: 0,
            silent: false,
            name: None,
            election: None,
        })
    }

    fn run(&mut self) -> ExitCode {
        loop {
            let now = self.look_at_clocks();
            let todo = self.look_at_children(now);
            if let Some(code) = self.act(todo) {
                return code;
            }
            self.holder.want(self.plan.wants_hold(now));
            let todo = self.plan.turn(now);
            if let Some(code) = self.act(todo) {
                return code;
            }
            if let Some(code) = self.sleep() {
                return code;
            }
        }
    }

    fn look_at_clocks(&mut self) -> Moment {
        let suspends = self.clock.suspends();
        self.clock.turn(Reading::take());
        let now = self.clock.fast();
        if self.clock.suspends() != suspends {
            self.plan.suspended(now);
        }
        now
    }

    fn look_at_children(&mut self, now: Moment) -> Vec<Do> {
        let (code, left) = reap(self.command);
        let mut todo = Vec::new();
        if let Some(code) = code {
            self.command = None;
            todo.extend(self.plan.ended(code, now));
        }
        if !left {
            todo.extend(self.plan.gone(now));
        }
        todo
    }

    /// Sleeps until the plan has something to do, or something happens.
    fn sleep(&mut self) -> Option<ExitCode> {
        // Acting has taken time.
        let now = self.look_at_clocks();
        let wake = self.plan.wake_at(now).map_or(IDLE, |at| at.since(now));
        let wake = if self.plan.kills() {
            KILL_EVERY
        } else if self.plan.runs() {
            wake.min(LOOK_EVERY)
        } else {
            wake
        };
        let todo = match self.events.recv_timeout(wake) {
            Ok(event) => self.on_event(event),
            Err(RecvTimeoutError::Timeout) => {
                let due = now.plus(wake);
                let now = self.look_at_clocks();
                self.plan.learn_delay(self.delays.learn(now, now.since(due)));
                Vec::new()
            }
            // The holder's thread is gone, and nothing renews.
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(wake.min(LOOK_EVERY));
                Vec::new()
            }
        };
        self.act(todo)
    }

    fn on_event(&mut self, event: Event) -> Vec<Do> {
        match event {
            Event::Signal(SIGCHLD) => Vec::new(),
            Event::Signal(number) => self.plan.signalled(number, ENDS.contains(&number), self.clock.fast()),
            Event::Told(generation, _) if generation != self.generation => Vec::new(),
            Event::Told(_, Ok(told)) => {
                if std::mem::take(&mut self.silent) {
                    self.warn("the sidecar answers again".to_owned());
                }
                self.on_told(*told)
            }
            Event::Told(_, Err(trouble)) => {
                if !std::mem::replace(&mut self.silent, true) {
                    self.warn(format!("{trouble}; asking again, and going by the last answer"));
                }
                Vec::new()
            }
        }
    }

    fn on_told(&mut self, told: Told) -> Vec<Do> {
        let now = self.look_at_clocks();
        let reading = Reading::take();
        let boot = reading.boot.saturating_sub(told.asked.boot);
        let passed = boot.max(reading.raw.saturating_sub(told.asked.raw));
        let until = |(epoch, lasts): (u64, Duration)| (epoch, now.plus(lasts.saturating_sub(passed)));
        let Told { held, sure, resigning, longest, stop_wait, name, election, .. } = told;
        self.name = name.or(self.name.take());
        self.election = election.or(self.election.take());
        self.plan.answered(&Answer { held: held.map(until), sure, resigning, longest, stop_wait }, now)
    }

    fn act(&mut self, todo: Vec<Do>) -> Option<ExitCode> {
        let mut over = None;
        for what in todo {
            match what {
                Do::Start(epoch) => self.start(epoch),
                Do::Signal(number) => {
                    Signal::from_named_raw(number).into_iter().for_each(descendants::signal)
                }
                Do::Kill => descendants::signal(Signal::KILL),
                Do::Release => {
                    self.generation += 1;
                    over = Some(self.holder.release(self.generation));
                }
                Do::Warn(what) => self.warn(what),
                Do::Exit(code) => {
                    over.iter().for_each(holder::wait_for);
                    return Some(ExitCode::from(code));
                }
            }
        }
        None
    }

    fn warn(&self, what: String) {
        let _ = self.warnings.try_send(what);
    }

    fn start(&mut self, epoch: u64) {
        let mut variables =
            vec![("BELLWETHER_EPOCH", epoch.to_string()), ("BELLWETHER_URL", self.url.clone())];
        variables.extend(self.name.clone().map(|name| ("BELLWETHER_NAME", name)));
        variables.extend(self.election.clone().map(|election| ("BELLWETHER_ELECTION", election)));
        match descendants::start(self.args, &variables) {
            Ok(pid) => self.command = Some(pid),
            Err(error) => {
                self.warn(format!("cannot start the command: {error}"));
                // It counts as a command that has ended: nothing of it is left.
                let _ = self.plan.ended(EXIT_NOT_RUN, self.clock.fast());
            }
        }
    }
}

fn warn_each(said: Receiver<String>) {
    said.into_iter().for_each(|what| warn(&what));
}

fn watch_signals(events: SyncSender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([&ENDS[..], &PASSES, &[SIGCHLD]].concat())?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for number in signals.forever() {
            if events.send(Event::Signal(number)).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

/// The worst delay of a timer lately, and in the time before that.
#[derive(Default)]
struct Delays {
    since: Moment,
    lately: Duration,
    before: Duration,
}

impl Delays {
    fn learn(&mut self, now: Moment, delay: Duration) -> Duration {
        if now.since(self.since) >= DELAY_COUNTS {
            (self.since, self.before, self.lately) = (now, self.lately, Duration::ZERO);
        }
        self.lately = self.lately.max(delay);
        self.lately.max(self.before)
    }
}
