//! What an operator chooses of the election.

use super::member::MEMBERS_MAX;
use std::collections::BTreeSet;
use std::time::Duration;

/// Which form of the algorithm runs (`--variant`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Variant {
    /// The "modified Bully" of overviews. The failure detector says which processes are alive, so the highest
    /// one announces at once and the others only wait for it. They fall back to the paper's procedure.
    Detector,
    /// Garcia-Molina's, to the letter (`tests/bully-readme.txt`).
    Paper,
    /// Their "optimized Bully": an election asks the highest live process, and the next one if that
    /// is silent.
    Optimized,
    /// Their "announcer-based Bully": the lowest live process asks a few of the highest, and declares
    /// which one leads.
    Announcer,
}

impl Variant {
    /// All of them, with their names on the command line.
    pub const NAMED: [(&'static str, Variant); 4] = [
        ("detector", Variant::Detector),
        ("paper", Variant::Paper),
        ("optimized", Variant::Optimized),
        ("announcer", Variant::Announcer),
    ];
}

/// What a leader does whose application is not healthy, where no healthy member can take over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WhenAllSick {
    /// It leads on.
    Keep,
    /// It resigns, and no process leads.
    None,
}

/// When a better process takes over from a live leader (`--preempt`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Preempt {
    /// The paper: the highest process, by full rank, takes over as soon as it is back.
    Always,
    /// An incumbent leads until it dies or resigns.
    Never,
    /// A process of higher *priority* takes over by leadership transfer once it has been alive for this long.
    After(Duration),
}

/// What a closed connection and a refused dial prove (`--crash-evidence`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CrashEvidence {
    /// Nothing: only silence counts.
    Off,
    /// A death, for calling an election.
    Suspect,
    /// In `majority` they also free what the voter promised to that process. Only where nothing on the path
    /// refuses connections in the name of a live process.
    Release,
}

impl CrashEvidence {
    /// Whether it frees a voter's promise. Without that each promise is firm (rule 2 of holds).
    pub fn frees_promises(self) -> bool {
        self == CrashEvidence::Release
    }
}

/// What is promised about leaders (`--safety`, spec "Safety levels").
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Safety {
    /// The published algorithm: one leader a side of a partition.
    Classic,
    /// At every instant at most one leader, by leases that a majority of voters renews.
    Majority {
        /// The names of the voters that this process was started with (`--voters`), its own among them. They
        /// are the configuration of a first start, and what a leader changes the configuration to.
        voters: BTreeSet<String>,
    },
}

/// Whether a voter without a record may found the cluster (`--found`). Such a voter cannot tell a first start
/// from a scale-down that lost its disk. In both cases it sees an empty folder and a list of voters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Founding {
    /// Where `--voters` names two or more. All of them must be empty at once. Only a first start explains
    /// that, as long as one voter of every list keeps its record. A list of one has no other voter to ask.
    Auto,
    /// Together with all others of its list: the operator says that this is a first start.
    Yes,
    /// Never: it only recovers from the records of the others.
    No,
}

/// The shortest adaptive lease. It has room for four heartbeats, 50 ms apart. A leader that names a shorter
/// one may be silent for this long all the same.
pub const LEASE_MIN_SHORTEST: Duration = Duration::from_millis(200);

/// The longest delay that an adaptive lease goes by: a longer one counts as this, since there is no lease for
/// hangs.
pub const DELAY_MAX: Duration = Duration::from_millis(600);

/// How many members get each heartbeat of a short lease in `classic`. The others hear of the next leader from
/// one of these, unless all of them fall silent with the leader.
pub const TOLD_OFTEN_MAX: usize = 8;

/// The rates of any two clocks may differ by this part: one in a hundred.
pub const DRIFT: u32 = 100;

/// What a leader counts on of a lease: less than the voters promised, by as much as clocks may differ
/// (clause 1).
pub fn counted(lease: Duration) -> Duration {
    lease - lease / DRIFT
}

/// The checked settings of one process's machine. `config` refuses impossible relations; [`Machine::new`]
/// asserts the ones that the rules lean on.
///
/// [`Machine::new`]: crate::election::Machine::new
#[derive(Clone, Hash, Debug)]
pub struct Settings {
    /// Which algorithm.
    pub variant: Variant,
    /// What is promised.
    pub safety: Safety,
    /// In `majority`: whether this process may found the cluster when it has no record.
    pub founding: Founding,
    /// When an incumbent gives way.
    pub preempt: Preempt,
    /// Whether crash evidence counts.
    pub crash_evidence: CrashEvidence,
    /// The longest time between two heartbeats of a leader.
    pub heartbeat: Duration,
    /// The longest lease (`--lease`), at least four heartbeats. For so long at most a leader may be silent,
    /// and a promise of `majority` lasts.
    pub failure_timeout: Duration,
    /// The shortest lease that a leader asks for, which learns how long it has to be (`--lease-min`). None:
    /// each lease is the longest (`--lease-mode fixed`).
    pub lease_min: Option<Duration>,
    /// How long an Election waits for an Answer, and a process that ranks lower for an announcement.
    pub answer_timeout: Duration,
    /// How long an answered process waits for a Coordinator, and each one for what the announcer declares;
    /// longer than the answer timeout.
    pub coordinator_timeout: Duration,
    /// At a start: how long the set of peers must not have changed before the first decision.
    pub stable_margin: Duration,
    /// At a start: how long to wait for the expected members, and for stability, at most.
    pub start_timeout: Duration,
    /// Members to wait for at a start, this process included; 0 or 1: none.
    pub expect: usize,
    /// How many members it knows at most, itself included. The wire carries [`MEMBERS_MAX`]; only the
    /// simulator has more.
    pub members_max: usize,
    /// How many members get each heartbeat of a short lease: those that rank highest. The voters of
    /// `majority` all do.
    pub told_often_max: usize,
    /// How long a failed member may be missing from discovery before it is forgotten.
    pub forget_after: Duration,
    /// The longest hold that a leader promises an application (`--hold-max`).
    pub hold_max: Duration,
    /// How long a resignation waits for holds that go on (`--stop-wait`).
    pub stop_wait: Duration,
    /// Whether the application has a health probe (`--app-health`).
    pub app_is_probed: bool,
    /// Whether a lifeline has to be open (`--require-lifeline`).
    pub lifeline_required: bool,
    /// What a leader does whose application is not healthy, where no member can take over.
    pub when_all_sick: WhenAllSick,
    /// Whether peers prove that they are members before anything of theirs is heard. Their lists then name
    /// addresses to dial also while discovery has no answer.
    pub members_are_proved: bool,
}

impl Settings {
    /// The voters that this process was started with; none in `classic`.
    pub fn voters(&self) -> BTreeSet<String> {
        match &self.safety {
            Safety::Majority { voters } => voters.clone(),
            Safety::Classic => BTreeSet::new(),
        }
    }

    /// Whether a process without a record may found the cluster with a list of this many voters, itself
    /// included.
    pub fn may_found(&self, voters: usize) -> bool {
        match self.founding {
            Founding::Auto => voters > 1,
            Founding::Yes => true,
            Founding::No => false,
        }
    }

    /// The longest time between two turns that the driver gives the machine. In a turn the machine notices a
    /// pause. Turns are frequent enough that no healthy driver looks paused.
    pub fn turn_every(&self) -> Duration {
        self.failure_timeout / 6
    }
}

impl Default for Settings {
    /// The defaults of the command line, but with fixed leases: tests of all other rules then have one time
    /// for silence.
    fn default() -> Settings {
        Settings {
            variant: Variant::Detector,
            safety: Safety::Classic,
            founding: Founding::Auto,
            preempt: Preempt::After(Duration::from_secs(5)),
            crash_evidence: CrashEvidence::Suspect,
            heartbeat: Duration::from_millis(250),
            failure_timeout: Duration::from_millis(1500),
            lease_min: None,
            answer_timeout: Duration::from_millis(300),
            coordinator_timeout: Duration::from_millis(900),
            stable_margin: Duration::from_secs(1),
            start_timeout: Duration::from_secs(10),
            expect: 0,
            members_max: MEMBERS_MAX,
            told_often_max: TOLD_OFTEN_MAX,
            forget_after: Duration::from_secs(60),
            hold_max: Duration::from_secs(1),
            stop_wait: Duration::from_secs(10),
            app_is_probed: false,
            lifeline_required: false,
            when_all_sick: WhenAllSick::Keep,
            members_are_proved: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_one_founds_only_where_the_operator_says_so() {
        for (founding, alone, of_two, of_three) in [
            (Founding::Auto, false, true, true),
            (Founding::Yes, true, true, true),
            (Founding::No, false, false, false),
        ] {
            let settings = Settings { founding, ..Settings::default() };
            let allowed = [1, 2, 3].map(|voters| settings.may_found(voters));
            assert_eq!(allowed, [alone, of_two, of_three], "{founding:?}");
        }
    }
}
