//! When the command starts and ends. No clock, process or socket is in here.
//!
//! The rules, for a command that runs in one epoch:
//! - it starts under a hold of that epoch that lasts long enough for it to be ended again;
//! - it gets SIGTERM a grace and a margin before the hold is over, and SIGKILL the margin before;
//! - an orderly loss gives it all the time for which its hold is extended;
//! - the next command starts once no descendant of the last is left.

use crate::config::{EXEC_MARGIN, EXEC_RENEWALS, ExecArgs, OnExit};
use crate::election::Moment;
use std::time::Duration;

/// The pause after the first end of a command, and the longest. A command that ran for that long begins anew
/// with the first.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_LONGEST: Duration = Duration::from_secs(60);

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
    /// Say this.
    Warn(String),
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
    /// Leadership is lost.
    Lost,
    /// exec itself is to end.
    Asked,
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
    running: Option<Running>,
    /// The latest hold: its epoch, and until when.
    offered: Option<(u64, Moment)>,
    /// No command starts before this.
    pause_until: Moment,
    pause: Duration,
    /// The signal by which exec is to end.
    asked: Option<i32>,
    warned_unsure: bool,
    warned_short: bool,
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
            running: None,
            offered: None,
            pause_until: Moment::default(),
            pause: PAUSE_FIRST,
            asked: None,
            warned_unsure: false,
            warned_short: false,
        }
    }

    /// The worst delay of this process's timers has become this.
    pub(super) fn learn_delay(&mut self, worst: Duration) {
        self.margin = EXEC_MARGIN.max(worst.saturating_mul(2));
    }

    /// Whether a hold is wanted now.
    pub(super) fn wants_hold(&self, now: Moment) -> bool {
        let pauses = now < self.pause_until && self.on_exit != OnExit::Restart;
        self.running.is_some() || !pauses
    }

    /// The sidecar has answered.
    pub(super) fn answered(&mut self, answer: &Answer, now: Moment) -> Vec<Do> {
        let mut todo = Vec::new();
        if answer.held.is_some() && !answer.sure && !self.warned_unsure {
            self.warned_unsure = true;
            todo.push(Do::Warn(
                "this sidecar grants no hold, so two commands can run at once for a moment; --safety \
                 majority grants them, without --crash-evidence release and --app-clients none"
                    .to_owned(),
            ));
        }
        if answer.sure {
            self.stop_wait = answer.stop_wait;
        }
        // Nothing starts under a hold that a resignation waits for.
        self.offered = answer.held.filter(|_| !answer.resigning);
        if let Some(running) = &mut self.running {
            match answer.held {
                Some((epoch, until)) if epoch == running.epoch => running.until = running.until.max(until),
                // A later epoch's hold keeps no command of an earlier one.
                Some(_) => todo.extend(running.begin_stop(Why::Lost, None)),
                None => {}
            }
            if answer.resigning {
                todo.extend(running.begin_stop(Why::Lost, None));
            }
            // Without a hold nothing keeps another process from leading already.
            if !answer.sure && answer.held.is_none() {
                running.until = running.until.min(now.plus(self.grace + self.margin));
                todo.extend(running.begin_stop(Why::Lost, None));
            }
        } else if answer.sure && answer.longest < self.needs() && !self.warned_short {
            self.warned_short = true;
            let (longest, needs) = (answer.longest.as_millis(), self.needs().as_millis());
            todo.push(Do::Warn(format!(
                "the command does not start. The sidecar holds leadership for at most {longest} ms; the \
                 grace, the margin and two renewals take {needs}. Give a shorter --stop-grace, or the \
                 sidecar a longer --hold-max or --lease"
            )));
        }
        todo
    }

    /// The host was suspended: another process may lead.
    pub(super) fn suspended(&mut self, now: Moment) {
        self.offered = None;
        self.running.iter_mut().for_each(|running| running.until = now);
    }

    /// A signal has come for exec. Those that do not end it only reach the command.
    pub(super) fn signalled(&mut self, number: i32, ends: bool, now: Moment) -> Vec<Do> {
        if ends {
            self.asked = Some(number);
        }
        match &mut self.running {
            Some(running) => {
                if ends {
                    // What it gets is the signal itself.
                    let _ = running.begin_stop(Why::Asked, Some(now.plus(self.stop_wait)));
                }
                vec![Do::Signal(number)]
            }
            None if ends => vec![Do::Release, Do::Exit(signal_code(number))],
            None => Vec::new(),
        }
    }

    /// The command itself has ended. Its descendants may not have.
    pub(super) fn ended(&mut self, code: Code, now: Moment) -> Vec<Do> {
        let Some(running) = &mut self.running else { return Vec::new() };
        running.code = Some(code);
        running.begin_stop(Why::Itself, Some(now.plus(self.grace))).into_iter().collect()
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
        match why {
            Some(Why::Lost) if self.once => vec![Do::Release, Do::Exit(EXIT_LOST)],
            Some(Why::Lost) if next => Vec::new(),
            Some(Why::Lost) => {
                self.offered = None;
                vec![Do::Release]
            }
            _ if self.once || self.on_exit == OnExit::Exit => vec![Do::Release, Do::Exit(code)],
            _ => self.pause(&running, code, now),
        }
    }

    fn pause(&mut self, running: &Running, code: Code, now: Moment) -> Vec<Do> {
        if now.since(running.since) >= PAUSE_LONGEST {
            self.pause = PAUSE_FIRST;
        }
        let pause = self.pause;
        self.pause_until = now.plus(pause);
        self.pause = pause.saturating_mul(2).min(PAUSE_LONGEST);
        let ended =
            Do::Warn(format!("the command has ended ({code}); it runs again in {} s", pause.as_secs()));
        if self.on_exit == OnExit::Restart {
            return vec![ended];
        }
        self.offered = None;
        vec![ended, Do::Release]
    }

    /// Time has passed.
    pub(super) fn turn(&mut self, now: Moment) -> Vec<Do> {
        let (grace, margin) = (self.grace, self.margin);
        let Some(running) = &mut self.running else { return self.start(now) };
        let mut todo = Vec::new();
        if now >= before(running.until, margin + grace) {
            todo.extend(running.begin_stop(Why::Lost, Some(now.plus(grace))));
        }
        if now >= running.kill_at(margin) {
            running.killed = true;
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
        vec![Do::Start(epoch)]
    }

    /// When [`Plan::turn`] has something to do next, if nothing else happens.
    pub(super) fn wake_at(&self, now: Moment) -> Option<Moment> {
        let Some(running) = &self.running else {
            return Some(self.pause_until).filter(|until| *until > now);
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
        self.grace + self.margin + self.hold / EXEC_RENEWALS * 2
    }
}

impl Running {
    /// Begins to end it, if that has not begun. What a command has left behind gets the signal too.
    fn begin_stop(&mut self, why: Why, kill_at: Option<Moment>) -> Option<Do> {
        if self.stop.is_some() {
            return None;
        }
        self.stop = Some(Stop { why, kill_at });
        Some(Do::Signal(SIGTERM))
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

fn signal_code(number: i32) -> Code {
    // Signals have numbers of at most 64.
    Code::try_from(128 + number).unwrap_or(Code::MAX)
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
        assert_eq!(plan.answered(&held(1, 1_000), at(0)), []);
        assert_eq!(plan.turn(at(0)), [Do::Start(1)]);
        plan
    }

    const TERM: Do = Do::Signal(SIGTERM);

    #[test]
    fn it_starts_under_a_hold_that_lasts_long_enough() {
        let mut plan = plan(OnExit::Resign, false);
        assert_eq!(plan.turn(at(0)), []);
        plan.answered(&held(1, 599), at(0));
        assert_eq!(plan.turn(at(0)), []);
        plan.answered(&held(1, 600), at(0));
        assert_eq!(plan.turn(at(1)), []);
        assert_eq!(plan.turn(at(0)), [Do::Start(1)]);
        let mut slow = self::plan(OnExit::Resign, false);
        slow.learn_delay(Duration::from_millis(200));
        slow.answered(&held(1, 899), at(0));
        assert_eq!(slow.turn(at(0)), []);
        slow.answered(&held(1, 900), at(0));
        assert_eq!(slow.turn(at(0)), [Do::Start(1)]);
    }

    #[test]
    fn without_a_renewal_it_is_ended_before_the_hold_is_over() {
        let mut plan = started(OnExit::Resign, false);
        assert_eq!(plan.wake_at(at(0)), Some(at(600)));
        // Neither an answer without a hold nor a shorter one takes back what was promised.
        assert_eq!(plan.answered(&nothing(), at(100)), []);
        assert_eq!(plan.answered(&held(1, 900), at(100)), []);
        assert_eq!(plan.turn(at(599)), []);
        assert_eq!(plan.turn(at(600)), [TERM]);
        assert_eq!((plan.turn(at(600)), plan.wake_at(at(600))), (vec![], Some(at(900))));
        assert_eq!(plan.turn(at(899)), []);
        assert_eq!((plan.turn(at(900)), plan.turn(at(910))), (vec![Do::Kill], vec![Do::Kill]));
        assert!(plan.kills());
        assert_eq!(plan.gone(at(920)), [Do::Release]);
        assert_eq!(plan.turn(at(920)), []);
    }

    #[test]
    fn a_renewal_goes_on_and_one_that_comes_late_does_not_save_it() {
        let mut plan = started(OnExit::Resign, false);
        plan.answered(&held(1, 1_500), at(500));
        assert_eq!(plan.turn(at(600)), []);
        assert_eq!(plan.turn(at(1_100)), [TERM]);
        plan.answered(&held(1, 2_200), at(1_200));
        assert_eq!(plan.turn(at(1_399)), []);
        assert_eq!(plan.turn(at(1_400)), [Do::Kill]);
        plan.gone(at(1_410));
        // It leads still, so that the command runs again under the next hold.
        plan.answered(&held(1, 2_400), at(1_450));
        assert_eq!(plan.turn(at(1_450)), [Do::Start(1)]);
    }

    #[test]
    fn a_hold_of_another_epoch_ends_it_and_is_for_the_next() {
        let mut plan = started(OnExit::Resign, false);
        assert_eq!(plan.answered(&held(2, 1_200), at(200)), [TERM]);
        assert_eq!((plan.turn(at(899)), plan.turn(at(900))), (vec![], vec![Do::Kill]));
        plan.answered(&held(2, 1_900), at(901));
        assert_eq!(plan.turn(at(902)), [Do::Kill], "another epoch's hold is no renewal");
        assert_eq!(plan.gone(at(905)), []);
        assert_eq!(plan.turn(at(905)), [Do::Start(2)]);
    }

    #[test]
    fn an_orderly_loss_gives_it_all_the_time_of_its_hold() {
        let mut plan = started(OnExit::Resign, false);
        let resigns = |until| Answer { resigning: true, ..held(1, until) };
        assert_eq!(plan.answered(&resigns(1_100), at(200)), [TERM]);
        for now in [800, 1_500, 2_200, 2_900] {
            assert_eq!(plan.answered(&resigns(now + 1_000), at(now)), []);
            assert_eq!(plan.turn(at(now)), []);
        }
        assert_eq!(plan.gone(at(3_000)), [Do::Release]);
        plan.answered(&resigns(4_000), at(3_000));
        assert_eq!(plan.turn(at(3_000)), [], "nothing starts while it resigns");
    }

    #[test]
    fn a_suspend_ends_it_at_once() {
        let mut plan = started(OnExit::Resign, false);
        plan.suspended(at(100));
        assert_eq!(plan.turn(at(100)), [TERM, Do::Kill]);
        plan.gone(at(100));
        assert_eq!(plan.turn(at(100)), []);
    }

    #[test]
    fn where_nothing_is_promised_a_loss_ends_it() {
        let mut plan = plan(OnExit::Resign, false);
        let answer = |held| Answer { held, sure: false, longest: Duration::ZERO, ..nothing() };
        let warned = plan.answered(&answer(Some((1, at(1_000)))), at(0));
        assert!(matches!(&warned[..], [Do::Warn(_)]), "{warned:?}");
        assert_eq!(plan.turn(at(0)), [Do::Start(1)]);
        assert_eq!(plan.answered(&answer(None), at(100)), [TERM]);
        assert_eq!((plan.turn(at(399)), plan.turn(at(400))), (vec![], vec![Do::Kill]));
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
                assert_eq!(plan.turn(at(now - 1)), []);
                assert_eq!(plan.turn(at(now)), [Do::Start(1)]);
            }
            plan.ended(3, at(now + 60_000));
            let todo = plan.gone(at(now + 60_000));
            assert!(matches!(&todo[0], Do::Warn(text) if text.contains("in 1 s")), "{todo:?}");
        }
    }

    #[test]
    fn what_it_leaves_behind_ends_within_the_grace() {
        let mut plan = started(OnExit::Exit, false);
        assert_eq!(plan.ended(3, at(100)), [TERM]);
        assert_eq!((plan.turn(at(399)), plan.turn(at(400))), (vec![], vec![Do::Kill]));
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
            assert_eq!(plan.signalled(15, true, at(10)), [TERM]);
            plan.answered(&held(1, 9_000), at(20));
            assert_eq!((plan.turn(at(5_009)), plan.turn(at(5_010))), (vec![], vec![Do::Kill]));
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
        let short = Answer { longest: Duration::from_millis(599), ..held(1, 599) };
        let said = plan.answered(&short, at(0));
        assert!(matches!(&said[..], [Do::Warn(text)] if text.contains("599 ms")), "{said:?}");
        assert_eq!(plan.answered(&short, at(1)), []);
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
