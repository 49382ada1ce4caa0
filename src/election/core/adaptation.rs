//! How long a lease has to be: the adaptive failure detector (`--lease-mode adaptive`).
//!
//! A leader learns how late its rounds and their answers are. It asks for leases that outlast two of the
//! worst delays of the last minutes. A lease grows at once, and shrinks as the delays are forgotten. Each
//! round says what its leader has learnt, so a new leader goes on from there.

use crate::election::types::lease::{REST_INTERVAL, lease_for};
use crate::election::types::time::{duration, milliseconds};
use crate::election::{DELAY_MAX, Learnt, LeaseReason, Moment, Settings};
use std::collections::BTreeMap;
use std::time::Duration;

/// A lease has room for two heartbeats at the shortest interval, and for this number of the worst delay.
pub(in crate::election) const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);
const DELAYS: u32 = 2;
/// Each heartbeat costs processor time. So they are further apart than a fifth of a lease, where that leaves
/// room for a stall of this length.
const STALL: Duration = Duration::from_millis(180);
const INTERVALS_A_LEASE: u32 = 5;
/// A delay is remembered for five minutes, in parts of which each keeps its worst one.
const PARTS: u64 = 8;
const PART: Duration = Duration::from_millis(37_500);
/// How long after the first answer a leader without a memory asks for the longest lease.
const PROBATION: Duration = Duration::from_secs(2);
/// Leases are long enough for what applications have asked for in this part of the time, and in the one
/// before.
const DEMAND_PART: Duration = Duration::from_secs(5);

/// What is known of delays: nothing, where leases are fixed.
#[derive(Clone, Hash, Debug, Default)]
pub(crate) struct Adaptation {
    /// The shortest lease; none: all are the longest.
    shortest: Option<Duration>,
    /// The worst delay of each part, by the number of the part in which it is forgotten. At most one more
    /// than [`PARTS`].
    worst: BTreeMap<u64, Duration>,
    /// From when on that counts.
    counts_from: Moment,
    /// For how long the latest rounds have had too few answers. It counts while that lasts. An answer is
    /// remembered, and silence is not: those members may be gone.
    unanswered: Duration,
    /// The lease that applications need, by the part of the time in which they have asked: at most two.
    demand: BTreeMap<u64, Duration>,
}

impl Adaptation {
    pub(crate) fn of(settings: &Settings) -> Adaptation {
        Adaptation { shortest: settings.lease_min, ..Adaptation::default() }
    }

    /// Whether leases adapt.
    pub(crate) fn is_on(&self) -> bool {
        self.shortest.is_some()
    }

    /// Learns of one delay.
    pub(crate) fn observe(&mut self, now: Moment, delay: Duration) {
        if !self.is_on() {
            return;
        }
        self.forget(now);
        if self.worst.is_empty() {
            self.counts_from = now.plus(PROBATION);
        }
        self.remember(part(now) + PARTS, delay);
    }

    /// Answers to the latest rounds have been missing for so long.
    pub(crate) fn await_answers(&mut self, unanswered: Duration) {
        self.unanswered = unanswered.min(DELAY_MAX);
    }

    /// A term ends. Missing answers may have ended it, and then never come. So they are remembered after all,
    /// or the next term would end by the same delay.
    pub(crate) fn end_term(&mut self, now: Moment) {
        let unanswered = std::mem::take(&mut self.unanswered);
        if !unanswered.is_zero() && self.worst(now).is_some() {
            self.observe(now, unanswered);
        }
    }

    /// Takes over what the leader has learnt. A word from the wire counts for no more than what this process
    /// could have learnt itself.
    pub(crate) fn take_over(&mut self, now: Moment, learnt: Learnt) {
        let Learnt { worst_ms, eighths } = learnt;
        if worst_ms == 0 || !self.is_on() {
            return;
        }
        self.forget(now);
        self.counts_from = self.counts_from.min(now);
        self.remember(part(now) + u64::from(eighths).min(PARTS), duration(worst_ms));
    }

    /// What a round says of it.
    pub(crate) fn learnt(&self, now: Moment) -> Learnt {
        let remembered = self.worst.range(part(now) + 1..);
        let Some((until, worst)) = remembered.max_by_key(|(_, worst)| **worst) else {
            return Learnt::default();
        };
        if now < self.counts_from {
            return Learnt::default();
        }
        // It lies within the memory.
        let eighths = (*until - part(now)) as u8;
        // Zero says that nothing is learnt.
        Learnt { worst_ms: milliseconds(*worst).max(1), eighths }
    }

    /// The worst delay that is remembered; none where nothing is, or too little.
    pub(crate) fn worst(&self, now: Moment) -> Option<Duration> {
        let Learnt { worst_ms, .. } = self.learnt(now);
        (worst_ms > 0).then(|| duration(worst_ms))
    }

    /// The lease to ask for, this one at most, and what makes it as long.
    pub(crate) fn lease(&self, now: Moment, longest: Duration) -> (Duration, LeaseReason) {
        let Some(shortest) = self.shortest else { return (longest, LeaseReason::Fixed) };
        let Some(worst) = self.worst(now) else { return (longest, LeaseReason::Learning) };
        let delay = worst.max(self.unanswered);
        let late = if self.unanswered > worst { LeaseReason::Unanswered } else { LeaseReason::Delay };
        let demand = self.demand.range(demand_part(now).saturating_sub(1)..).map(|(_, lease)| *lease + delay);
        let mut asked = (shortest, LeaseReason::Shortest);
        for (lease, reason) in [
            (SHORTEST_INTERVAL * 2 + delay * DELAYS, late),
            (demand.max().unwrap_or_default(), LeaseReason::Application),
        ] {
            if lease > asked.0 {
                asked = (lease, reason);
            }
        }
        (asked.0.min(longest), asked.1)
    }

    /// How long after a round that asks for this lease the next one comes. Two rounds and two of the worst
    /// delay fit into the lease, unless it cannot be long enough.
    pub(crate) fn interval(&self, now: Moment, lease: Duration) -> Duration {
        let delay = self.worst(now).unwrap_or(lease).max(self.unanswered);
        let spare = lease.saturating_sub(delay * DELAYS) / 2;
        spare.min(lease.saturating_sub(STALL)).min(REST_INTERVAL).max(lease / INTERVALS_A_LEASE)
    }

    /// An application asks for a hold, or for answers that hold for so long.
    pub(crate) fn demand(&mut self, now: Moment, lasts: Duration) {
        if !self.is_on() {
            return;
        }
        let part = demand_part(now);
        self.demand.retain(|asked, _| asked + 1 >= part);
        let asked = self.demand.entry(part).or_default();
        *asked = lease_for(lasts).max(*asked);
    }

    fn forget(&mut self, now: Moment) {
        while self.worst.first_key_value().is_some_and(|(until, _)| *until <= part(now)) {
            self.worst.pop_first();
        }
    }

    fn remember(&mut self, until: u64, delay: Duration) {
        let worst = self.worst.entry(until).or_default();
        *worst = delay.min(DELAY_MAX).max(*worst);
    }
}

/// The number of the part in which an application asks at a moment.
fn demand_part(now: Moment) -> u64 {
    now.0.as_secs() / DEMAND_PART.as_secs()
}

/// The number of the part that a moment lies in.
fn part(now: Moment) -> u64 {
    // Half a billion years of parts fit.
    (now.0.as_millis() / PART.as_millis()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORTEST: Duration = Duration::from_millis(250);
    const LONGEST: Duration = Duration::from_millis(1500);

    fn adaptive() -> Adaptation {
        Adaptation::of(&Settings { lease_min: Some(SHORTEST), ..Settings::default() })
    }

    fn at(ms: u64) -> Moment {
        Moment(Duration::from_millis(ms))
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// When which delay was observed, in milliseconds.
    type Delays = &'static [(u64, u64)];

    /// What was observed, when the lease is asked for, and how long it is.
    #[test]
    fn a_lease_outlasts_two_of_the_worst_delays_of_five_minutes() {
        let table: [(&str, Delays, u64, u64); 9] = [
            ("nothing", &[], 5_000, 1500),
            ("for less than two seconds", &[(1_000, 1)], 2_999, 1500),
            ("for two seconds", &[(1_000, 1)], 3_000, 250),
            ("a delay", &[(1_000, 1), (3_000, 100)], 3_001, 300),
            ("a smaller one after it", &[(1_000, 1), (3_000, 100), (200_000, 80)], 200_001, 300),
            ("that is forgotten", &[(1_000, 1), (3_000, 100), (200_000, 80)], 300_000, 260),
            ("a hang", &[(1_000, 1), (3_000, 5_000)], 3_001, 1300),
            ("all is forgotten", &[(1_000, 1)], 300_000, 1500),
            ("and there is something new", &[(1_000, 1), (400_000, 1)], 401_999, 1500),
        ];
        for (what, delays, asked, lease) in table {
            let mut adaptation = adaptive();
            for (now, delay) in delays {
                adaptation.observe(at(*now), ms(*delay));
            }
            assert_eq!(adaptation.lease(at(asked), LONGEST).0, ms(lease), "{what}");
        }
    }

    /// The worst delay, the lease that is asked for, and how far its rounds are apart.
    #[test]
    fn rounds_are_as_far_apart_as_the_delays_allow() {
        for (worst, lease, interval) in [
            (1, 250, 70),
            (1, 270, 90),
            (65, 270, 70),
            (75, 270, 60),
            (85, 270, 54),
            (30, 300, 120),
            (31, 300, 119),
            (100, 300, 60),
            (150, 400, 80),
            (5, 400, 120),
            (5, 700, 140),
            (600, 1000, 200),
        ] {
            let mut adaptation = adaptive();
            adaptation.observe(at(0), ms(worst));
            let asked = adaptation.interval(at(2_000), ms(lease));
            assert_eq!(asked, ms(interval), "{worst} {lease}");
        }
        let mut silent = adaptive();
        silent.observe(at(0), ms(1));
        silent.await_answers(ms(90));
        assert_eq!(silent.interval(at(2_000), ms(300)), ms(60), "answers are missing");
        assert_eq!(adaptive().interval(at(0), ms(250)), ms(50), "nothing is known");
    }

    #[test]
    fn what_makes_a_lease_long_is_said() {
        let fixed = Adaptation::of(&Settings { lease_min: None, ..Settings::default() });
        assert_eq!(fixed.lease(at(0), LONGEST), (LONGEST, LeaseReason::Fixed));
        let mut adaptation = adaptive();
        assert_eq!(adaptation.lease(at(0), LONGEST), (LONGEST, LeaseReason::Learning));
        adaptation.observe(at(0), ms(1));
        assert_eq!(adaptation.lease(at(2_000), LONGEST), (SHORTEST, LeaseReason::Shortest));
        adaptation.observe(at(2_000), ms(100));
        assert_eq!(adaptation.lease(at(2_000), LONGEST), (ms(300), LeaseReason::Delay));
        adaptation.await_answers(ms(110));
        assert_eq!(adaptation.lease(at(2_000), LONGEST), (ms(320), LeaseReason::Unanswered));
        adaptation.demand(at(2_000), ms(400));
        assert_eq!(adaptation.lease(at(2_000), LONGEST), (ms(710), LeaseReason::Application));
        assert_eq!(adaptation.lease(at(2_000), ms(500)), (ms(500), LeaseReason::Application));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut adaptation = adaptive();
        for second in 0..3_600 {
            adaptation.observe(at(second * 1000), ms(second));
            let learnt = Learnt { worst_ms: 7, eighths: second as u8 };
            adaptation.take_over(at(second * 1000), learnt);
            assert!(adaptation.worst.len() as u64 <= PARTS + 1, "{second}");
        }
    }

    #[test]
    fn a_new_leader_goes_on_with_what_its_predecessor_has_learnt() {
        let mut former = adaptive();
        for now in [1_000, 4_000] {
            former.observe(at(now), ms(120));
        }
        let learnt = former.learnt(at(4_000));
        assert_eq!(learnt.worst_ms, 120);
        // Processes count their time from different moments.
        let mut new = adaptive();
        new.take_over(at(900_000), learnt);
        assert_eq!(new.lease(at(900_000), LONGEST).0, ms(340));
        // It forgets that when its predecessor does, but for an eighth of the memory.
        let left = PART * u32::from(learnt.eighths);
        new.observe(at(940_000), ms(1));
        assert_eq!(new.lease(at(900_000).plus(left), LONGEST).0, SHORTEST);
    }

    #[test]
    fn a_leader_that_has_learnt_nothing_hands_nothing_on() {
        let mut former = adaptive();
        former.observe(at(1_000), ms(3));
        let learnt = former.learnt(at(2_000));
        let mut new = adaptive();
        new.take_over(at(50_000), learnt);
        assert_eq!(learnt, Learnt::default());
        assert_eq!(new.lease(at(50_000), LONGEST), (LONGEST, LeaseReason::Learning));
    }

    #[test]
    fn a_word_from_the_wire_counts_for_no_more_than_what_can_be_learnt() {
        let mut new = adaptive();
        new.take_over(at(1_000), Learnt { worst_ms: u32::MAX, eighths: u8::MAX });
        assert_eq!(new.lease(at(1_000), Duration::from_secs(3600)).0, ms(1300));
        new.observe(at(50_000), ms(1));
        assert_eq!(new.lease(at(301_000), Duration::from_secs(3600)).0, ms(250));
    }

    #[test]
    fn what_applications_ask_for_lengthens_a_lease_for_five_to_ten_seconds() {
        let mut adaptation = adaptive();
        adaptation.observe(at(0), ms(1));
        adaptation.demand(at(5_000), ms(400));
        for second in 6..30 {
            adaptation.demand(at(second * 1000), ms(200));
        }
        // The delay comes on top.
        for (now, lease) in [(29_999, 361), (34_999, 361), (35_000, 250)] {
            assert_eq!(adaptation.lease(at(now), LONGEST).0, ms(lease), "{now}");
        }
        let mut adaptation = adaptive();
        adaptation.observe(at(0), ms(1));
        adaptation.demand(at(9_999), ms(400));
        for (now, lease) in [(9_999, 601), (14_999, 601), (15_000, 250)] {
            assert_eq!(adaptation.lease(at(now), LONGEST).0, ms(lease), "{now}");
        }
        adaptation.demand(at(16_000), Duration::MAX);
        assert_eq!(adaptation.lease(at(16_000), LONGEST).0, LONGEST);
    }

    #[test]
    fn a_lease_is_long_enough_for_a_hold_until_the_next_answers_come() {
        for (hold, delay) in [(100, 1), (150, 1), (333, 1), (400, 1), (900, 1), (100, 80), (400, 150)] {
            let mut adaptation = adaptive();
            adaptation.observe(at(0), ms(delay));
            adaptation.demand(at(2_000), ms(hold));
            let (lease, _) = adaptation.lease(at(2_000), LONGEST);
            let left = lease - adaptation.interval(at(2_000), lease) - ms(delay);
            assert!(left * 9 / 10 >= ms(hold), "{hold} {delay}: {lease:?}");
        }
    }
}
