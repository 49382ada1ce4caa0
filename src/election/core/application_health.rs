//! The application beside this process: whether it is healthy, by its probe, its own word and its lifelines.
//! A process whose application is not healthy is no candidate, and a leader resigns.

use super::operations::Asker;
use super::{Core, Protocol, Resignation};
use crate::election::{
    Complaints, Moment, Notification, Now, Operation, OperationRefusal, Settings, Sign, Timer, WhenAllSick,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// An application that turns sick twice within this time has to be healthy for as long before it counts.
const SICK_TWICE: Duration = Duration::from_secs(30);

/// What was heard of the application. A restart forgets it.
#[derive(Clone, Hash, Debug)]
pub(crate) struct Application {
    /// What the probe says; none: there is no probe. Not healthy before it has been so once.
    probed: Option<bool>,
    /// Until when it is healthy by its own word; none: it has said nothing.
    alive_until: Option<Moment>,
    /// Whether lifelines count: one is required, or has been open.
    lifelines_count: bool,
    /// How many are open.
    lifelines: u32,
    /// Since when all of them have said so; none: not all do.
    well_since: Option<Moment>,
    /// When it last turned sick.
    sick_at: Option<Moment>,
    /// Whether it has turned sick twice in a short time, and has not been healthy for as long since.
    unsteady: bool,
}

impl Application {
    pub(super) fn of(settings: &Settings) -> Application {
        Application {
            probed: settings.app_is_probed.then_some(false),
            alive_until: None,
            lifelines_count: settings.lifeline_required,
            lifelines: 0,
            well_since: None,
            sick_at: None,
            unsteady: false,
        }
    }

    /// Takes in a sign, and looks.
    fn hear(&mut self, now: Moment, sign: Sign) -> Complaints {
        match sign {
            Sign::Probed { healthy } => self.probed = Some(healthy),
            Sign::Alive { ttl } => {
                let until = now.plus(ttl);
                self.alive_until = Some(self.alive_until.map_or(until, |former| former.max(until)));
            }
            Sign::LifelineOpened => {
                self.lifelines_count = true;
                self.lifelines = self.lifelines.saturating_add(1);
            }
            Sign::LifelineEnded => self.lifelines = self.lifelines.saturating_sub(1),
            // It says nothing of the application's health.
            Sign::Watches { .. } => {}
        }
        self.look(now)
    }

    /// Looks whether it is well now, after time has passed or a sign has come: why the process may not lead
    /// for it.
    pub(super) fn look(&mut self, now: Moment) -> Complaints {
        let told = Complaints {
            probe: self.probed == Some(false),
            alive: self.alive_until.is_some_and(|until| until <= now),
            lifeline: self.lifelines_count && self.lifelines == 0,
            unsteady: false,
        };
        let well = !told.any();
        if self.well_since.is_some() && !well {
            self.unsteady |= self.sick_at.is_some_and(|at| now.since(at) <= SICK_TWICE);
            self.sick_at = Some(now);
        }
        self.well_since = well.then(|| self.well_since.unwrap_or(now));
        if self.unsteady && self.well_since.is_some_and(|since| now.since(since) >= SICK_TWICE) {
            self.unsteady = false;
            // The next time counts as the second one again: it has not been steady for longer than it had to.
            self.sick_at = Some(now);
        }
        Complaints { unsteady: self.unsteady, ..told }
    }

    /// When to look again, if no sign comes.
    fn look_at(&self) -> Option<Moment> {
        let well_since = self.well_since?;
        let steady = self.unsteady.then(|| well_since.plus(SICK_TWICE));
        [self.alive_until, steady].into_iter().flatten().min()
    }
}

impl<P: Protocol> Core<P> {
    /// Something is heard of the application.
    pub(super) fn on_sign(&mut self, now: Now, sign: Sign) {
        if let Sign::Watches { valid_for } = sign {
            // Answers of `classic` have no validity.
            if P::longest_lease(self).is_some() {
                self.lengthen_leases(now, valid_for);
            }
            return;
        }
        let complaints = self.application.hear(now.at, sign);
        self.heed_application(now, complaints);
    }

    /// A word of the application is over, or it has been healthy for long enough.
    pub(super) fn on_application_timer(&mut self, now: Now) {
        let complaints = self.application.look(now.at);
        self.heed_application(now, complaints);
    }

    fn heed_application(&mut self, now: Now, complaints: Complaints) {
        match self.application.look_at() {
            Some(at) => self.arm(Timer::Application, at.since(now.at)),
            None => self.disarm(Timer::Application),
        }
        let before = std::mem::replace(&mut self.eligibility.candidacy.complaints, complaints);
        if before != complaints {
            self.note(Notification::Application { complaints });
        }
        if before.any() == complaints.any() {
            return;
        }
        if self.phase.leading() {
            self.resign_if_unhealthy(now);
        } else {
            self.update_priority();
            self.rejoin_election(now);
        }
    }

    /// Whether it leads on for want of a healthy member, and so gives its leadership up for nothing else.
    pub(crate) fn leads_for_want(&self) -> bool {
        self.eligibility.candidacy.complaints.any()
            && self.settings.when_all_sick == WhenAllSick::Keep
            && self.successor(&BTreeSet::new()).is_none()
    }

    /// A leader whose application is not healthy has a healthy member take over. It tries that again with
    /// each heartbeat.
    pub(super) fn resign_if_unhealthy(&mut self, now: Now) {
        if !self.eligibility.candidacy.complaints.any() || !self.may_give_way() {
            return;
        }
        // Each member may be asked once, and each is waited for.
        let asks = u32::try_from(self.members.iter().count()).unwrap_or(u32::MAX).saturating_add(1);
        let within = self.answer_timeout().saturating_mul(2).saturating_mul(asks);
        let refused =
            self.begin_operation(now, Asker::Application, Operation::Resign { stand_aside: None }, within);
        if let Err(OperationRefusal::NoSuccessor { .. }) = refused
            && self.settings.when_all_sick == WhenAllSick::None
        {
            self.resign(now, Resignation::Transfer(None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment(Duration::from_secs(1_000) + Duration::from_millis(ms))
    }

    fn application(probed: bool, required: bool) -> Application {
        Application::of(&Settings {
            app_is_probed: probed,
            lifeline_required: required,
            ..Settings::default()
        })
    }

    const HEALTHY: Sign = Sign::Probed { healthy: true };
    const SICK: Sign = Sign::Probed { healthy: false };
    const OPENED: Sign = Sign::LifelineOpened;
    const ENDED: Sign = Sign::LifelineEnded;

    fn alive(ms: u64) -> Sign {
        Sign::Alive { ttl: Duration::from_millis(ms) }
    }

    #[test]
    fn probe_word_and_lifeline_have_to_agree() {
        // Twice sick within 30 s, and three times.
        let twice = [(0, HEALTHY), (1, SICK), (2, HEALTHY), (30_001, SICK), (30_002, HEALTHY)];
        let later = [(0, HEALTHY), (1, SICK), (2, HEALTHY), (30_002, SICK), (30_003, HEALTHY)];
        let after = [twice.as_slice(), &[(60_002, HEALTHY), (90_002, SICK), (90_003, HEALTHY)]].concat();
        let thrice = [twice.as_slice(), &[(30_010, SICK), (30_011, HEALTHY)]].concat();
        type Row<'a> = (bool, bool, &'a [(u64, Sign)], u64, bool);
        #[rustfmt::skip]
        let table: &[Row] = &[
            // probed, lifeline required, signs and when, asked when, healthy
            (false, false, &[], 0, true),
            (true, false, &[], 0, false),
            (true, false, &[(0, HEALTHY)], 0, true),
            (true, false, &[(0, HEALTHY), (1, SICK)], 1, false),
            (true, false, &[(0, HEALTHY), (1, SICK), (2, HEALTHY)], 2, true),
            (false, false, &[(0, alive(10))], 9, true),
            (false, false, &[(0, alive(10))], 10, false),
            (false, false, &[(0, alive(10)), (9, alive(10))], 18, true),
            (false, false, &[(0, alive(10)), (5, alive(1))], 9, true),
            (false, true, &[], 0, false),
            (false, true, &[(0, OPENED)], 0, true),
            (false, false, &[(0, OPENED), (1, ENDED)], 1, false),
            (false, false, &[(0, OPENED), (1, OPENED), (2, ENDED)], 2, true),
            (false, false, &[(0, OPENED), (1, OPENED), (2, ENDED), (3, ENDED)], 3, false),
            (false, false, &[(0, ENDED)], 0, true),
            (true, true, &[(0, HEALTHY)], 0, false),
            (true, true, &[(0, HEALTHY), (1, OPENED)], 1, true),
            (true, true, &[(0, HEALTHY), (1, OPENED), (2, alive(5))], 7, false),
            (true, false, &twice, 30_002, false),
            (true, false, &twice, 60_001, false),
            (true, false, &twice, 60_002, true),
            (true, false, &later, 30_003, true),
            // It has not been healthy in between.
            (true, false, &[(1, SICK), (2, SICK), (3, HEALTHY)], 3, true),
            (true, false, &after, 90_003, false),
            (true, false, &after, 120_003, true),
            (true, false, &thrice, 60_010, false),
            (true, false, &thrice, 60_011, true),
        ];
        for (row, (probed, required, signs, asked, healthy)) in table.iter().enumerate() {
            let mut application = application(*probed, *required);
            for (ms, sign) in *signs {
                application.hear(at(*ms), *sign);
            }
            assert_eq!(!application.look(at(*asked)).any(), *healthy, "row {row}");
        }
    }

    #[test]
    fn it_is_looked_at_again_when_it_may_have_changed() {
        let mut application = application(true, false);
        assert_eq!(application.look_at(), None);
        application.hear(at(0), HEALTHY);
        assert_eq!(application.look_at(), None);
        application.hear(at(1), alive(500));
        assert_eq!(application.look_at(), Some(at(501)));
        assert!(application.look(at(501)).any());
        assert_eq!(application.look_at(), None);
        application.hear(at(600), alive(100_000));
        application.hear(at(601), SICK);
        assert!(application.hear(at(602), HEALTHY).any());
        assert_eq!(application.look_at(), Some(at(30_602)));
        assert!(!application.look(at(30_602)).any());
        assert_eq!(application.look_at(), Some(at(100_600)));
    }
}
