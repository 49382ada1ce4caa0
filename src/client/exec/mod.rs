//! `bellwether exec`: runs a command while the process here leads, under a hold.
//!
//! `plan` decides, `holder` asks the sidecar, and `descendants` are what the command has become.

mod descendants;
mod holder;
mod lifeline;
mod plan;

use super::api::{Api, Trouble};
use super::{EXIT_BAD_CONFIGURATION, EXIT_NOT_FOUND, EXIT_NOT_RUN, EXIT_OWN_ERROR, failed, say};
use crate::base::{Clock, Reading};
use crate::config::ExecArgs;
use crate::election::Moment;
use descendants::{adopt, become_command, look_up, reap};
use holder::{Holder, RELEASE_LONGEST, Told};
use lifeline::Lifeline;
use plan::{Answer, Do, Plan};
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::Signals;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Signals that end exec once they have ended the command.
const ENDS: [i32; 3] = [SIGTERM, SIGINT, SIGQUIT];
/// Signals that are for the command alone.
const PASSES: [i32; 4] = [SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH];
/// More events than ever wait: those that bring them wait for room.
const EVENTS_MAX: usize = 64;
/// Between two looks at the clocks while a command runs: a suspend stops all timers.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How many lines wait for a reader of stderr that has stopped reading. More are lost.
const LINES_MAX: usize = 16;
/// Between two rounds of SIGKILL, since a process may have been born between them.
const KILL_EVERY: Duration = Duration::from_millis(10);
/// The longest sleep.
const IDLE: Duration = Duration::from_secs(60);
/// For how long the worst delay counts, at least; twice that at most.
const DELAY_COUNTS: Duration = Duration::from_secs(10);
/// How many rounds of SIGKILL come that soon, and the time between later ones.
const KILLS_OFTEN_MAX: u32 = 100;
const KILL_LATER: Duration = Duration::from_millis(100);
/// Between two lines about a sidecar that does not answer.
const SILENT_SAID_EVERY: Duration = Duration::from_secs(10);

/// What wakes the loop.
enum Event {
    /// The sidecar's answer to a question of that generation.
    Told(u64, Result<Box<Told>, Trouble>),
    /// The hold has been ended, and answers are of that generation from now on.
    Released(u64),
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
    if !api.is_here() {
        let why = "exec goes by the sidecar of its own pod: give a --url with a loopback address, such as \
                   http://127.0.0.1:4040";
        return failed(&format!("{} is elsewhere, and {why}", api.base()), EXIT_BAD_CONFIGURATION);
    }
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
    failed(&format!("cannot run {command}: {error}; name a program that is there and may be run"), code)
}

struct Exec<'a> {
    args: &'a ExecArgs,
    url: String,
    plan: Plan,
    holder: Holder,
    lifeline: Lifeline,
    events: Receiver<Event>,
    /// A write to stderr may wait for its reader. The command's end must not.
    said: SyncSender<(&'static str, String)>,
    clock: Clock,
    delays: Delays,
    command: Option<Pid>,
    /// Answers of an earlier generation are about a hold that has been ended.
    generation: u64,
    /// The last answer has granted a hold.
    held: bool,
    /// The sidecar does not answer, and when that was said last.
    silent: bool,
    silent_said: Moment,
    /// How often what is left of the command was killed, and whether a process was named that may not be.
    kills: u32,
    refused_said: bool,
    /// The same of descendants that are not to be found.
    unfound_said: bool,
    name: Option<String>,
    election: Option<String>,
}

impl<'a> Exec<'a> {
    fn begin(args: &'a ExecArgs, api: Api) -> io::Result<Exec<'a>> {
        let (sender, events) = sync_channel(EVENTS_MAX);
        watch_signals(sender.clone())?;
        adopt()?;
        let (said, heard) = sync_channel(LINES_MAX);
        thread::Builder::new().name("says".to_owned()).spawn(move || say_each(heard))?;
        let url = api.base().to_owned();
        let lifeline = Lifeline::start(Api::at(Some(&url)).map_err(io::Error::other)?)?;
        let holder = Holder::start(api, args.hold, sender)?;
        Ok(Exec {
            args,
            url,
            plan: Plan::new(args),
            holder,
            lifeline,
            events,
            said,
            clock: Clock::new(Reading::take()),
            delays: Delays::default(),
            command: None,
            generation: 0,
            held: false,
            silent: false,
            silent_said: Moment::default(),
            kills: 0,
            refused_said: false,
            unfound_said: false,
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
            // After a command that ended by itself neither is wanted for a while: another process may lead.
            let wants = self.plan.wants_hold(now);
            self.holder.want(wants);
            self.lifeline.want(wants);
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
            // No answer to a question from before it counts.
            self.release();
        }
        now
    }

    fn release(&mut self) {
        self.generation += 1;
        self.holder.release(self.generation);
    }

    /// Waits for a moment until the hold has been ended.
    fn wait_for_release(&self) {
        let end = Instant::now() + RELEASE_LONGEST;
        while let Ok(event) = self.events.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if matches!(event, Event::Released(generation) if generation == self.generation) {
                return;
            }
        }
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
            if self.kills <= KILLS_OFTEN_MAX { KILL_EVERY } else { KILL_LATER }
        } else if self.plan.runs() {
            wake.min(LOOK_EVERY)
        } else {
            wake
        };
        let event = self.events.recv_timeout(wake);
        let suspends = self.clock.suspends();
        let woken = self.look_at_clocks();
        // A long sleep would measure how clocks differ, and a suspend is no delay.
        let counts = matches!(event, Err(RecvTimeoutError::Timeout)) && wake <= LOOK_EVERY;
        let delay = if counts && self.clock.suspends() == suspends {
            woken.since(now.plus(wake))
        } else {
            Duration::ZERO
        };
        self.plan.learn_delay(self.delays.learn(woken, delay));
        let todo = match event {
            Ok(event) => self.on_event(event, woken),
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            // The holder's thread is gone, and nothing renews.
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(wake.min(LOOK_EVERY));
                Vec::new()
            }
        };
        self.act(todo)
    }

    fn on_event(&mut self, event: Event, now: Moment) -> Vec<Do> {
        match event {
            Event::Signal(SIGCHLD) | Event::Released(_) => Vec::new(),
            Event::Signal(number) => self.plan.signalled(number, ENDS.contains(&number), now),
            Event::Told(generation, _) if generation != self.generation => Vec::new(),
            Event::Told(_, Ok(told)) => {
                self.silent = false;
                self.on_told(*told, now)
            }
            Event::Told(_, Err(trouble)) => {
                let again = now.since(self.silent_said) >= SILENT_SAID_EVERY;
                if again && !std::mem::replace(&mut self.silent, true) {
                    self.silent_said = now;
                    self.say("warning", format!("{trouble}; asking again"));
                }
                Vec::new()
            }
        }
    }

    fn on_told(&mut self, told: Told, now: Moment) -> Vec<Do> {
        let reading = Reading::take();
        let boot = reading.boot.saturating_sub(told.asked.boot);
        let passed = boot.max(reading.raw.saturating_sub(told.asked.raw));
        let until = |(epoch, lasts): (u64, Duration)| (epoch, now.plus(lasts.saturating_sub(passed)));
        let Told { held, sure, resigning, longest, stop_wait, name, election, .. } = told;
        self.held = held.is_some();
        self.name = name.or(self.name.take());
        self.election = election.or(self.election.take());
        self.plan.answered(&Answer { held: held.map(until), sure, resigning, longest, stop_wait }, now)
    }

    fn act(&mut self, todo: Vec<Do>) -> Option<ExitCode> {
        for what in todo {
            match what {
                Do::Start(epoch) => self.start(epoch),
                Do::Signal(number) => self.signal(number),
                Do::Kill => self.kill(),
                Do::Release => self.release(),
                Do::Warn(what) => self.say("warning", what),
                Do::Note(what) => self.say("note", what),
                Do::Exit(code) => {
                    if self.held {
                        self.wait_for_release();
                    }
                    return Some(ExitCode::from(code));
                }
            }
        }
        None
    }

    fn signal(&mut self, number: i32) {
        let Some(signal) = Signal::from_named_raw(number) else { return };
        // One that is stopped would not hear of its end.
        let both = [signal, Signal::CONT];
        let signals = if ENDS.contains(&number) { &both[..] } else { &both[..1] };
        let sent = descendants::signal(self.command, signals);
        self.say_unfound(sent.err());
    }

    fn kill(&mut self) {
        self.kills = self.kills.saturating_add(1);
        match descendants::signal(self.command, &[Signal::KILL]) {
            Ok(Some(refused)) if !std::mem::replace(&mut self.refused_said, true) => {
                let pid = refused.as_raw_nonzero();
                let why = "has become another user and cannot be killed; it goes on without a hold";
                self.say("error", format!("process {pid} of the command {why}"));
            }
            sent => self.say_unfound(sent.err()),
        }
    }

    fn say_unfound(&mut self, error: Option<io::Error>) {
        if let Some(error) = error
            && !std::mem::replace(&mut self.unfound_said, true)
        {
            let text = "the command has its signal; its descendants are not found in /proc";
            self.say("error", format!("{text}: {error}; they may go on without a hold"));
        }
    }

    fn say(&self, kind: &'static str, what: String) {
        let _ = self.said.try_send((kind, what));
    }

    fn start(&mut self, epoch: u64) {
        let mut variables =
            vec![("BELLWETHER_EPOCH", epoch.to_string()), ("BELLWETHER_URL", self.url.clone())];
        variables.extend(self.name.clone().map(|name| ("BELLWETHER_NAME", name)));
        variables.extend(self.election.clone().map(|election| ("BELLWETHER_ELECTION", election)));
        (self.kills, self.refused_said, self.unfound_said) = (0, false, false);
        match descendants::start(self.args, &variables) {
            Ok(pid) => self.command = Some(pid),
            Err(error) => {
                self.say("warning", format!("cannot start the command: {error}"));
                // It counts as a command that has ended: nothing of it is left.
                let _ = self.plan.ended(EXIT_NOT_RUN, self.clock.fast());
            }
        }
    }
}

fn say_each(lines: Receiver<(&'static str, String)>) {
    lines.into_iter().for_each(|(kind, what)| say(kind, &what));
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
