//! When the command starts and ends. No clock, process or socket is in here.
//!
//! The rules, for a command that runs in one epoch:
//! - it starts under a hold of that epoch that lasts long enough for it to be ended again;
//! - it gets SIGTERM a grace and a margin before the hold is over, and SIGKILL the margin before;
//! - an orderly loss gives it all the time for which its hold is extended;
//! - the next command starts once no descendant of the last is left.

use crate::client::signal_code;
use crate::config::{EXEC_MARGIN, EXEC_RENEWALS, ExecArgs, OnExit};
use crate::election::Moment;
use std::time::Duration;

/// The pause after the first end of a command, and the longest. A command that ran for that long begins anew
/// with the first.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_LONGEST: Duration = Duration::from_secs(60);
/// A sidecar that holds leadership for too short a time is asked again so late. Until then no hold is out, so
/// that no resignation waits for a command that does not run.
const SHORT_AGAIN: Duration = Duration::from_secs(5);

/// How long a sidecar waits for its holders by default (`--stop-wait`).
const STOP_WAIT: Duration = Duration::from_secs(10);

/// How a command has ended: its exit code, or 128 and the number of the signal.
pub(super) type Code = u8;
/// "Leadership was lost": a temporary failure, as `sysexits.h` says it.
pub(super) const EXIT_LOST: Code = 75;

/// What the sidecar has answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    /// The epoch in which this process leads, and until when no other member does. None: nothing is promised.
    pub(super) held: Option<(u64, Moment)>,
    /// The promise is one of the sidecar's. Else it only says that it leads.
    pub(super) sure: bool,
    /// It leads no more for its application, and waits for the hold to end.
    pub(super) resigning: bool,
    /// The longest hold that it ever grants.
    pub(super) longest: Duration,
    /// How long a resignation waits for its holders.
    pub(super) stop_wait: Duration,
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Do {
    /// Start the command in this epoch.
    Start(u64),
    /// Send this to the command and all its descendants.
    Signal(i32),
    /// Send SIGKILL to all descendants, again and again until none is left.
    Kill,
    /// End the hold: the command has stopped.
    Release,
    /// Say that something is wrong.
    Warn(String),
    /// Say this.
    Note(String),
    /// End with this code.
    Exit(Code),
}

/// A command that runs, or whose descendants are still there.
#[derive(Clone, Debug)]
struct Running {
    epoch: u64,
    since: Moment,
    /// Its hold is over then.
    until: Moment,
    /// Its own end, once that has come.
    code: Option<Code>,
    /// Why it is to end, once it is.
    stop: Option<Stop>,
    killed: bool,
}

/// Why a command is to end, and by when it is killed though its hold would last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stop {
    why: Why,
    kill_at: Option<Moment>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    /// It has ended itself, and has left descendants.
    Itself,
    /// exec itself is to end.
    Asked,
    /// The hold is not renewed in time.
    Unrenewed,
    /// This process leads no more.
    Lost,
    /// This process leads in another epoch.
    Epoch(u64),
    /// This process resigns, and waits for the command.
    Resigning,
    /// The host was suspended.
    Suspended,
}

impl Why {
    /// Whether leadership, or the knowledge of it, is lost.
    fn lost(self) -> bool {
        !matches!(self, Why::Itself | Why::Asked)
    }

    /// What is said of it, if anything is.
    fn words(self) -> Option<String> {
        let why = match self {
            Why::Itself => return None,
            Why::Asked => "exec is told to stop",
            Why::Unrenewed => "its hold is not renewed",
            Why::Lost => "this process leads no more",
            Why::Epoch(epoch) => return Some(format!("the command is to end: epoch {epoch} has begun")),
            Why::Resigning => "this process resigns",
            Why::Suspended => "the host was suspended",
        };
        Some(format!("the command is to end: {why}"))
    }
}

/// What exec goes by.
#[derive(Debug)]
pub(super) struct Plan {
    grace: Duration,
    hold: Duration,
    on_exit: OnExit,
    once: bool,
    /// Kept at the end of a hold for the delays of this process.
    margin: Duration,
    /// How long an orderly end may take.
    stop_wait: Duration,
    /// The longest hold that is ever granted, as far as it is known.
    longest: Duration,
    running: Option<Running>,
    /// The latest hold: its epoch, and until when.
    offered: Option<(u64, Moment)>,
    /// No hold is wanted before this.
    quiet_until: Moment,
    /// No command starts before this.
    pause_until: Moment,
    pause: Duration,
    /// The signal by which exec is to end.
    asked: Option<i32>,
    warned_unsure: bool,
    warned_short: bool,
    /// Since when each hold has been too short for a command to start.
    short_since: Option<Moment>,
    /// It has been said, or a command has run, so that the first wait was seen.
    waited: bool,
}

impl Plan {
    pub(super) fn new(args: &ExecArgs) -> Plan {
        Plan {
            grace: args.stop_grace,
            hold: args.hold,
            on_exit: args.on_exit,
            once: args.once,
            margin: EXEC_MARGIN,
            stop_wait: STOP_WAIT,
            longest: args.hold,
            running: None,
            offered: None,
            quiet_until: Moment::default(),
            pause_until: Moment::default(),
            pause: PAUSE_FIRST,
            asked: None,
            warned_unsure: false,
            warned_short: false,
            short_since: None,
            waited: false,
        }
    }

    /// The worst delay of this process's timers has become this. The margin leaves room for a command to
    /// start under a full hold: otherwise one stall would keep the command from running.
    pub(super) fn learn_delay(&mut self, worst: Duration) {
        let room = self.hold().saturating_sub(self.grace + self.renewal() * 3);
        self.margin = worst.saturating_mul(2).min(room).max(EXEC_MARGIN);
    }

    /// The hold that is asked for, as it is granted at most.
    fn hold(&self) -> Duration {
        self.hold.min(self.longest)
    }

    fn renewal(&self) -> Duration {
        self.hold() / EXEC_RENEWALS
    }

    /// Whether a hold is wanted now.
    pub(super) fn wants_hold(&self, now: Moment) -> bool {
        self.running.is_some() || now >= self.quiet_until
    }

    /// The sidecar has answered.
    pub(super) fn answered(&mut self, answer: &Answer, now: Moment) -> Vec<Do> {
        let mut todo = self.first_words(answer);
        if answer.sure {
            (self.stop_wait, self.longest) = (answer.stop_wait, answer.longest);
        }
        // Nothing starts under a hold that a resignation waits for.
        self.offered = answer.held.filter(|_| !answer.resigning);
        let grace = now.plus(self.grace);
        let Some(running) = &mut self.running else {
            // Nor does a resignation wait for a command that does not run.
            let idle = answer.resigning && answer.held.is_some();
            todo.extend(if idle { vec![Do::Release] } else { self.look_at_length(answer, now) });
            return todo;
        };
        match answer.held {
            Some((epoch, until)) if epoch == running.epoch => running.until = running.until.max(until),
            // A later epoch's hold keeps no command of an earlier one.
            Some((epoch, _)) => todo.extend(running.begin_stop(Why::Epoch(epoch), None)),
            None => {}
        }
        if answer.resigning {
            todo.extend(running.begin_stop(Why::Resigning, None));
        }
        // Without a hold nothing keeps another process from leading already.
        if !answer.sure && answer.held.is_none() {
            running.until = running.until.min(grace.plus(self.margin));
            todo.extend(running.begin_stop(Why::Lost, Some(grace)));
        }
        todo
    }

    /// What is said once: that it waits, and that nothing is promised here.
    fn first_words(&mut self, answer: &Answer) -> Vec<Do> {
        let mut todo = Vec::new();
        let waited = std::mem::replace(&mut self.waited, true);
        if !waited && answer.held.is_none() {
            todo.push(Do::Note("waiting until this process leads".to_owned()));
        }
        if answer.held.is_some() && !answer.sure && !std::mem::replace(&mut self.warned_unsure, true) {
            todo.push(Do::Warn(
                "this sidecar grants no hold, so two commands can run at once. They do for up to --hold at \
                 each change of leader, and on both sides of a partition. --safety majority grants holds, \
                 without --crash-evidence release and --app-clients none"
                    .to_owned(),
            ));
        }
        todo
    }

    /// Looks whether holds are long enough for a command to start.
    fn look_at_length(&mut self, answer: &Answer, now: Moment) -> Vec<Do> {
        let Some((_, until)) = answer.held.filter(|_| answer.sure && now >= self.pause_until) else {
            self.short_since = None;
            return Vec::new();
        };
        let left = until.since(now);
        if left >= self.needs() {
            self.short_since = None;
            return Vec::new();
        }
        let since = *self.short_since.get_or_insert(now);
        // It takes a while to come back from the sidecar.
        let never = answer.longest < self.needs() + self.renewal();
        if !never && now.since(since) < SHORT_AGAIN {
            return Vec::new();
        }
        self.short_since = None;
        self.too_short(if never { answer.longest } else { left }, now)
    }

    /// No hold is ever long enough for a command to start.
    fn too_short(&mut self, longest: Duration, now: Moment) -> Vec<Do> {
        let first = !std::mem::replace(&mut self.warned_short, true);
        let (longest, needs) = (longest.as_millis(), self.needs().as_millis());
        let said = format!(
            "the command does not start. The sidecar holds leadership for at most {longest} ms; the grace, \
             the margin and two renewals take {needs} ms, and the answer a little. Give the sidecar a longer \
             --hold-max or --lease, or exec a shorter --stop-grace"
        );
        self.offered = None;
        self.quiet_until = now.plus(SHORT_AGAIN);
        first.then_some(Do::Warn(said)).into_iter().chain([Do::Release]).collect()
    }

    /// The host was suspended: another process may lead. What runs is killed, also if it was to end later.
    pub(super) fn suspended(&mut self, now: Moment) {
        self.offered = None;
        if let Some(running) = &mut self.running {
            running.until = now;
            let why = running.stop.map_or(Why::Suspended, |stop| stop.why);
            running.stop = Some(Stop { why, kill_at: Some(now) });
        }
    }

    /// A signal has come for exec. Those that do not end it only reach the command.
    pub(super) fn signalled(&mut self, number: i32, ends: bool, now: Moment) -> Vec<Do> {
        let first = self.asked.is_none();
        if ends {
            self.asked = Some(number);
        }
        match &mut self.running {
            // It has this signal already. Many programs take a second one for "at once".
            Some(Running { stop: Some(_), .. }) if number == SIGTERM && first => Vec::new(),
            Some(running) if ends => {
                let mut todo = running.begin_stop(Why::Asked, Some(now.plus(self.stop_wait)));
                // What it gets is the signal itself.
                todo.retain(|what| matches!(what, Do::Note(_)));
                todo.push(Do::Signal(number));
                todo
            }
            Some(_) => vec![Do::Signal(number)],
            None if ends => vec![Do::Release, Do::Exit(signal_code(number))],
            None => Vec::new(),
        }
    }

    /// The command itself has ended. Its descendants may not have.
    pub(super) fn ended(&mut self, code: Code, now: Moment) -> Vec<Do> {
        let Some(running) = &mut self.running else { return Vec::new() };
        running.code = Some(code);
        running.begin_stop(Why::Itself, Some(now.plus(self.grace)))
    }

    /// Nothing of the command is left.
    pub(super) fn gone(&mut self, now: Moment) -> Vec<Do> {
        let Some(running) = self.running.take() else { return Vec::new() };
        let (code, why) = (running.code.unwrap_or(signal_code(9)), running.stop.map(|stop| stop.why));
        if let Some(number) = self.asked {
            return vec![Do::Release, Do::Exit(running.code.unwrap_or(signal_code(number)))];
        }
        // A hold of a later epoch is for the next command.
        let next = self.offered.is_some_and(|(epoch, _)| epoch != running.epoch);
        if !why.is_some_and(Why::lost) {
            let last = self.once || self.on_exit == OnExit::Exit;
            return if last { vec![Do::Release, Do::Exit(code)] } else { self.pause(&running, code, now) };
        }
        if self.once {
            return vec![Do::Release, Do::Exit(EXIT_LOST)];
        }
        if next {
            return Vec::new();
        }
        self.offered = None;
        vec![Do::Release]
    }

    fn pause(&mut self, running: &Running, code: Code, now: Moment) -> Vec<Do> {
        if now.since(running.since) >= PAUSE_LONGEST {
            self.pause = PAUSE_FIRST;
        }
        let pause = self.pause;
        self.pause_until = now.plus(pause);
        self.pause = pause.saturating_mul(2).min(PAUSE_LONGEST);
        let seconds = pause.as_secs();
        let ended = Do::Warn(format!(
            "the command has ended ({code}); it runs again after {seconds} s, once this process leads"
        ));
        if self.on_exit == OnExit::Restart {
            return vec![ended];
        }
        self.offered = None;
        self.quiet_until = self.pause_until;
        vec![ended, Do::Release]
    }

    /// Time has passed.
    pub(super) fn turn(&mut self, now: Moment) -> Vec<Do> {
        let (grace, margin) = (self.grace, self.margin);
        let Some(running) = &mut self.running else { return self.start(now) };
        let mut todo = Vec::new();
        if now >= before(running.until, margin + grace) {
            todo.extend(running.begin_stop(Why::Unrenewed, Some(now.plus(grace))));
        }
        if now >= running.kill_at(margin) {
            if !std::mem::replace(&mut running.killed, true) {
                let what =
                    if running.code.is_none() { "the command" } else { "what the command has started" };
                todo.push(Do::Note(format!("{what} is killed, since it has not ended")));
            }
            todo.push(Do::Kill);
        }
        todo
    }

    fn start(&mut self, now: Moment) -> Vec<Do> {
        let Some((epoch, until)) = self.offered else { return Vec::new() };
        if self.asked.is_some() || now < self.pause_until || until.since(now) < self.needs() {
            return Vec::new();
        }
        self.running = Some(Running { epoch, since: now, until, code: None, stop: None, killed: false });
        vec![Do::Note(format!("the command starts in epoch {epoch}")), Do::Start(epoch)]
    }

    /// When [`Plan::turn`] has something to do next, if nothing else happens.
    pub(super) fn wake_at(&self, now: Moment) -> Option<Moment> {
        let Some(running) = &self.running else {
            return Some(self.pause_until.max(self.quiet_until)).filter(|until| *until > now);
        };
        let kill_at = running.kill_at(self.margin);
        let stop_at = before(running.until, self.margin + self.grace);
        Some(if running.stop.is_none() { stop_at.min(kill_at) } else { kill_at })
    }

    /// Whether a command runs, or something of it is left.
    pub(super) fn runs(&self) -> bool {
        self.running.is_some()
    }

    /// Whether descendants are being killed: each pass may miss some that were just being born.
    pub(super) fn kills(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.killed)
    }

    /// How long a hold has to last for a command to start.
    fn needs(&self) -> Duration {
        self.grace + self.margin + self.renewal() * 2
    }
}

impl Running {
    /// Begins to end it, if that has not begun. What a command has left behind gets the signal too.
    fn begin_stop(&mut self, why: Why, kill_at: Option<Moment>) -> Vec<Do> {
        if self.stop.is_some() {
            return Vec::new();
        }
        self.stop = Some(Stop { why, kill_at });
        why.words().map(Do::Note).into_iter().chain([Do::Signal(SIGTERM)]).collect()
    }

    fn kill_at(&self, margin: Duration) -> Moment {
        let last = before(self.until, margin);
        self.stop.and_then(|stop| stop.kill_at).map_or(last, |at| at.min(last))
    }
}

const SIGTERM: i32 = signal_hook::consts::SIGTERM;

fn before(moment: Moment, duration: Duration) -> Moment {
    Moment(moment.0.saturating_sub(duration))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Moment {
        Moment(Duration::from_millis(100_000 + ms))
    }

    fn plan(on_exit: OnExit, once: bool) -> Plan {
        Plan::new(&ExecArgs {
            url: None,
            hold: Duration::from_secs(1),
            stop_grace: Duration::from_millis(300),
            on_exit,
            once,
            command: vec!["c".into()],
            child_of: None,
        })
    }

    fn held(epoch: u64, until: u64) -> Answer {
        let (longest, stop_wait) = (Duration::from_secs(1), Duration::from_secs(5));
        Answer { held: Some((epoch, at(until))), sure: true, resigning: false, longest, stop_wait }
    }

    fn nothing() -> Answer {
        Answer { held: None, ..held(0, 0) }
    }

    /// A command that runs since 0 in epoch 1, under a hold until 1,000.
    fn started(on_exit: OnExit, once: bool) -> Plan {
        let mut plan = plan(on_exit, once);
        assert_eq!(done(plan.answered(&held(1, 1_000), at(0))), []);
        assert_eq!(done(plan.turn(at(0))), [Do::Start(1)]);
        plan
    }

    const TERM: Do = Do::Signal(SIGTERM);

    /// Without what is only said.
    fn done(todo: Vec<Do>) -> Vec<Do> {
        todo.into_iter().filter(|what| !matches!(what, Do::Note(_))).collect()
    }

    #[test]
    fn it_starts_under_a_hold_that_lasts_long_enough() {
        let mut plan = plan(OnExit::Resign, false);
        assert_eq!(done(plan.turn(at(0))), []);
        plan.answered(&held(1, 599), at(0));
        assert_eq!(done(plan.turn(at(0))), []);
        plan.answered(&held(1, 600), at(0));
        assert_eq!(done(plan.turn(at(1))), []);
        assert_eq!(done(plan.turn(at(0))), [Do::Start(1)]);
        let mut slow = self::plan(OnExit::Resign, false);
        slow.learn_delay(Duration::from_millis(150));
        slow.answered(&held(1, 799), at(0));
        assert_eq!(done(slow.turn(at(0))), []);
        slow.answered(&held(1, 800), at(0));
        assert_eq!(done(slow.turn(at(0))), [Do::Start(1)]);
    }

    /// Many programs end at once when they are told to end a second time.
    #[test]
    fn what_ends_already_is_not_told_so_again_at_the_first_sigterm() {
        let mut plan = started(OnExit::Resign, false);
        let resigning = Answer { resigning: true, ..held(1, 1_000) };
        assert_eq!(done(plan.answered(&resigning, at(10))), [TERM]);
        assert_eq!(done(plan.signalled(15, true, at(20))), []);
        assert_eq!(done(plan.signalled(15, true, at(30))), [TERM], "a second one counts");
        let mut plan = started(OnExit::Resign, false);
        plan.answered(&resigning, at(10));
        assert_eq!(done(plan.signalled(2, true, at(20))), [Do::Signal(2)], "it had another signal");
    }

    #[test]
    fn without_a_renewal_it_is_ended_before_the_hold_is_over() {
        let mut plan = started(OnExit::Resign, false);
        assert_eq!(plan.wake_at(at(0)), Some(at(600)));
        // Neither an answer without a hold nor a shorter one takes back what was promised.
        assert_eq!(done(plan.answered(&nothing(), at(100))), []);
        assert_eq!(done(plan.answered(&held(1, 900), at(100))), []);
        assert_eq!(done(plan.turn(at(599))), []);
        assert_eq!(done(plan.turn(at(600))), [TERM]);
        assert_eq!((plan.turn(at(600)), plan.wake_at(at(600))), (vec![], Some(at(900))));
        assert_eq!(done(plan.turn(at(899))), []);
        assert_eq!((done(plan.turn(at(900))), done(plan.turn(at(910)))), (vec![Do::Kill], vec![Do::Kill]));
        assert!(plan.kills());
        assert_eq!(plan.gone(at(920)), [Do::Release]);
        assert_eq!(done(plan.turn(at(920))), []);
    }

    #[test]
    fn it_says_once_that_a_command_is_killed_or_what_it_has_started() {
        let notes = |todo: Vec<Do>| todo.into_iter().filter(|what| *what != Do::Kill).collect::<Vec<_>>();
        for (ended, what) in [(false, "the command"), (true, "what the command has started")] {
            let said = Do::Note(format!("{what} is killed, since it has not ended"));
            let mut plan = started(OnExit::Resign, false);
            plan.turn(at(600));
            if ended {
                plan.ended(0, at(700));
            }
            assert_eq!((notes(plan.turn(at(900))), notes(plan.turn(at(910)))), (vec![said], vec![]));
        }
    }

    #[test]
    fn a_renewal_goes_on_and_one_that_comes_late_does_not_save_it() {
        let mut plan = started(OnExit::Resign, false);
        plan.answered(&held(1, 1_500), at(500));
        assert_eq!(done(plan.turn(at(600))), []);
        assert_eq!(done(plan.turn(at(1_100))), [TERM]);
        plan.answered(&held(1, 2_200), at(1_200));
        assert_eq!(done(plan.turn(at(1_399))), []);
        assert_eq!(done(plan.turn(at(1_400))), [Do::Kill]);
        plan.gone(at(1_410));
        // It leads still, so that the command runs again under the next hold.
        plan.answered(&held(1, 2_400), at(1_450));
        assert_eq!(done(plan.turn(at(1_450))), [Do::Start(1)]);
    }

    #[test]
    fn a_hold_of_another_epoch_ends_it_and_is_for_the_next() {
        let mut plan = started(OnExit::Resign, false);
        assert_eq!(done(plan.answered(&held(2, 1_200), at(200))), [TERM]);
        assert_eq!((done(plan.turn(at(899))), done(plan.turn(at(900)))), (vec![], vec![Do::Kill]));
        plan.answered(&held(2, 1_900), at(901));
        assert_eq!(done(plan.turn(at(902))), [Do::Kill], "another epoch's hold is no renewal");
        assert_eq!(plan.gone(at(905)), []);
        assert_eq!(done(plan.turn(at(905))), [Do::Start(2)]);
    }

    #[test]
    fn an_orderly_loss_gives_it_all_the_time_of_its_hold() {
        let mut plan = started(OnExit::Resign, false);
        let resigns = |until| Answer { resigning: true, ..held(1, until) };
        assert_eq!(done(plan.answered(&resigns(1_100), at(200))), [TERM]);
        for now in [800, 1_500, 2_200, 2_900] {
            assert_eq!(done(plan.answered(&resigns(now + 1_000), at(now))), []);
            assert_eq!(done(plan.turn(at(now))), []);
        }
        assert_eq!(plan.gone(at(3_000)), [Do::Release]);
        plan.answered(&resigns(4_000), at(3_000));
        assert_eq!(done(plan.turn(at(3_000))), [], "nothing starts while it resigns");
    }

    #[test]
    fn a_first_wait_is_said_once() {
        let mut first = plan(OnExit::Resign, false);
        assert!(matches!(first.answered(&nothing(), at(0))[..], [Do::Note(_)]));
        assert_eq!(done(first.answered(&nothing(), at(1))), []);
        let mut leads = started(OnExit::Resign, false);
        assert_eq!(done(leads.answered(&nothing(), at(1))), []);
    }

    #[test]
    fn a_suspend_ends_it_at_once() {
        let mut plan = started(OnExit::Resign, false);
        plan.suspended(at(100));
        assert_eq!(done(plan.turn(at(100))), [Do::Kill]);
        plan.gone(at(100));
        assert_eq!(done(plan.turn(at(100))), []);
    }

    #[test]
    fn where_nothing_is_promised_a_loss_ends_it() {
        let mut plan = plan(OnExit::Resign, false);
        let answer = |held| Answer { held, sure: false, longest: Duration::ZERO, ..nothing() };
        let warned = plan.answered(&answer(Some((1, at(1_000)))), at(0));
        assert!(matches!(&warned[..], [Do::Warn(_)]), "{warned:?}");
        assert_eq!(done(plan.turn(at(0))), [Do::Start(1)]);
        assert_eq!(done(plan.answered(&answer(None), at(100))), [TERM]);
        assert_eq!((done(plan.turn(at(399))), done(plan.turn(at(400)))), (vec![], vec![Do::Kill]));
    }

    #[test]
    fn pauses_double_and_begin_anew_after_a_long_run() {
        for on_exit in [OnExit::Resign, OnExit::Restart] {
            let (mut plan, mut now) = (started(on_exit, false), 0);
            for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
                plan.ended(3, at(now));
                let todo = plan.gone(at(now));
                assert!(
                    matches!(&todo[0], Do::Warn(text) if text.contains(&format!("{pause} s"))),
                    "{todo:?}"
                );
                assert_eq!(todo.contains(&Do::Release), on_exit == OnExit::Resign);
                assert_eq!(plan.wants_hold(at(now)), on_exit == OnExit::Restart);
                now += pause * 1_000;
                plan.answered(&held(1, now + 1_000), at(now - 1));
                assert_eq!(done(plan.turn(at(now - 1))), []);
                assert_eq!(done(plan.turn(at(now))), [Do::Start(1)]);
            }
            plan.ended(3, at(now + 60_000));
            let todo = plan.gone(at(now + 60_000));
            assert!(matches!(&todo[0], Do::Warn(text) if text.contains("after 1 s")), "{todo:?}");
        }
    }

    #[test]
    fn what_it_leaves_behind_ends_within_the_grace() {
        let mut plan = started(OnExit::Exit, false);
        assert_eq!(plan.ended(3, at(100)), [TERM]);
        let said = Do::Note("what the command has started is killed, since it has not ended".to_owned());
        assert_eq!((plan.turn(at(399)), plan.turn(at(400))), (vec![], vec![said, Do::Kill]));
        assert_eq!(plan.turn(at(405)), [Do::Kill]);
        assert_eq!(plan.gone(at(410)), [Do::Release, Do::Exit(3)]);
    }

    #[test]
    fn codes_say_why_exec_has_ended() {
        let lost = |plan: &mut Plan| {
            plan.turn(at(600));
            plan.ended(0, at(610));
            plan.gone(at(610))
        };
        assert_eq!(lost(&mut started(OnExit::Resign, true)), [Do::Release, Do::Exit(EXIT_LOST)]);
        assert_eq!(lost(&mut started(OnExit::Exit, false)), [Do::Release]);
        for once in [true, false] {
            let mut plan = started(OnExit::Resign, once);
            assert_eq!(plan.signalled(1, false, at(10)), [Do::Signal(1)]);
            let said = Do::Note("the command is to end: exec is told to stop".to_owned());
            assert_eq!(plan.signalled(15, true, at(10)), [said, TERM]);
            assert_eq!(plan.signalled(15, true, at(11)), [TERM]);
            plan.answered(&held(1, 9_000), at(20));
            assert_eq!((done(plan.turn(at(5_009))), done(plan.turn(at(5_010)))), (vec![], vec![Do::Kill]));
            plan.ended(7, at(5_020));
            assert_eq!(plan.gone(at(5_020)), [Do::Release, Do::Exit(7)]);
        }
        let mut idle = plan(OnExit::Resign, false);
        assert_eq!(idle.signalled(1, false, at(0)), []);
        assert_eq!(idle.signalled(15, true, at(0)), [Do::Release, Do::Exit(143)]);
    }

    #[test]
    fn a_sidecar_that_never_holds_for_long_enough_is_told_of_once() {
        let mut plan = plan(OnExit::Resign, false);
        let short = Answer { longest: Duration::from_millis(500), ..held(1, 499) };
        let said = plan.answered(&short, at(0));
        assert!(matches!(&said[..], [Do::Warn(text), Do::Release] if text.contains("500 ms")), "{said:?}");
        // No hold stays out that no command uses.
        assert!(!plan.wants_hold(at(4_999)) && plan.wants_hold(at(5_000)));
        assert_eq!(plan.wake_at(at(0)), Some(at(5_000)));
        assert_eq!(done(plan.answered(&short, at(5_001))), [Do::Release]);
        plan.answered(&held(1, 11_000), at(10_001));
        assert_eq!(done(plan.turn(at(10_001))), [Do::Start(1)]);
    }

    #[test]
    fn holds_that_are_all_too_short_are_told_of_after_a_while() {
        let mut plan = plan(OnExit::Resign, false);
        for now in [0, 1_000, 4_999] {
            assert_eq!(done(plan.answered(&held(1, now + 590), at(now))), []);
            assert_eq!(done(plan.turn(at(now))), []);
        }
        let said = plan.answered(&held(1, 5_590), at(5_000));
        assert!(matches!(&said[..], [Do::Warn(text), Do::Release] if text.contains("590 ms")), "{said:?}");
    }

    /// A hold is asked for that is longer than the sidecar grants: it is cut to that.
    #[test]
    fn a_longer_hold_than_is_granted_is_no_error() {
        let mut plan = plan(OnExit::Resign, false);
        plan.hold = Duration::from_secs(3);
        plan.answered(&held(1, 999), at(0));
        assert_eq!(done(plan.turn(at(0))), [Do::Start(1)]);
    }

    #[test]
    fn one_stall_keeps_no_command_from_running() {
        let mut plan = plan(OnExit::Resign, false);
        plan.learn_delay(Duration::from_secs(3));
        plan.answered(&held(1, 999), at(0));
        assert_eq!(done(plan.turn(at(0))), [Do::Start(1)]);
        assert_eq!((done(plan.turn(at(298))), done(plan.turn(at(299)))), (vec![], vec![TERM]));
        assert_eq!((done(plan.turn(at(598))), done(plan.turn(at(599)))), (vec![], vec![Do::Kill]));
    }

    #[test]
    fn no_resignation_waits_for_a_command_that_does_not_run() {
        let mut plan = started(OnExit::Restart, false);
        plan.ended(3, at(10));
        plan.gone(at(10));
        assert_eq!(
            done(plan.answered(&Answer { resigning: true, ..held(1, 1_100) }, at(100))),
            [Do::Release]
        );
    }

    /// It is on its way to its end already, and gets no more time by that.
    #[test]
    fn a_suspend_kills_what_was_to_end_later() {
        let mut plan = started(OnExit::Resign, false);
        plan.signalled(15, true, at(10));
        plan.suspended(at(20));
        plan.answered(&held(1, 2_000), at(20));
        assert_eq!(done(plan.turn(at(20))), [Do::Kill]);
    }

    #[test]
    fn without_holds_a_command_that_does_not_end_is_killed_though_it_leads_again() {
        let mut plan = plan(OnExit::Resign, false);
        let answer = |held| Answer { held, sure: false, longest: Duration::ZERO, ..nothing() };
        plan.answered(&answer(Some((1, at(1_000)))), at(0));
        assert_eq!(done(plan.turn(at(0))), [Do::Start(1)]);
        assert_eq!(done(plan.answered(&answer(None), at(100))), [TERM]);
        plan.answered(&answer(Some((1, at(1_200)))), at(200));
        assert_eq!((done(plan.turn(at(399))), done(plan.turn(at(400)))), (vec![], vec![Do::Kill]));
    }

    proptest! {
        /// Whatever the sidecar answers: no command is let be past the margin before its hold's end.
        #[test]
        fn no_command_goes_on_without_a_hold(
            steps in prop::collection::vec((0..400_u64, 0..4_u64, 0..1_200_u64, 0..6_u8), 1..60),
        ) {
            let (mut plan, mut now, mut runs) = (plan(OnExit::Resign, false), 0, None);
            let mut promised = std::collections::BTreeMap::<u64, u64>::new();
            for (passed, epoch, lasts, what) in steps {
                now += passed;
                let mut todo = match what {
                    0 => plan.answered(&nothing(), at(now)),
                    1 => plan.gone(at(now)),
                    2 => plan.answered(&Answer { resigning: true, ..held(epoch, now + lasts) }, at(now)),
                    _ => plan.answered(&held(epoch, now + lasts), at(now)),
                };
                match what {
                    0 => {}
                    1 => runs = None,
                    _ => {
                        let end = promised.entry(epoch).or_default();
                        *end = (*end).max(now + lasts);
                    }
                }
                todo.extend(plan.turn(at(now)));
                for step in &todo {
                    if let Do::Start(epoch) = step {
                        prop_assert!(runs.is_none());
                        runs = Some(*epoch);
                    }
                }
                let late = runs.is_some_and(|epoch| now + 100 >= promised[&epoch]);
                prop_assert_eq!(late && !todo.contains(&Do::Kill), false, "{:?} at {}", todo, now);
            }
        }
    }
}
