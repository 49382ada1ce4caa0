//! What a process hears of the application beside it.

use std::time::Duration;

/// A sign of the application's life. The driver hands each on as it comes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sign {
    /// The health probe has changed its mind (`--app-health`).
    Probed {
        /// Whether the application counts as healthy from now on.
        healthy: bool,
    },
    /// The application says that it is healthy for so long (`/alive`).
    Alive {
        /// For how long, from now on.
        ttl: Duration,
    },
    /// A lifeline is open. It counts until its end.
    LifelineOpened,
    /// A lifeline has ended, and with it perhaps the application.
    LifelineEnded,
    /// The application watches, and acts on validities. It says so again and again.
    Watches {
        /// For how long each answer is to hold at least.
        valid_for: Duration,
    },
}

/// What keeps the application here from being healthy; all false: it is healthy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Complaints {
    /// Its probe (`--app-health`).
    pub probe: bool,
    /// Its own word (`/alive`) is over.
    pub alive: bool,
    /// No lifeline is open.
    pub lifeline: bool,
    /// It turned sick twice in a short time, and has not been healthy for as long since.
    pub unsteady: bool,
}

impl Complaints {
    /// Whether there are any.
    pub fn any(self) -> bool {
        self != Complaints::default()
    }

    /// Their names, as logs and `/members` have them.
    pub fn names(self) -> Vec<&'static str> {
        let Complaints { probe, alive, lifeline, unsteady } = self;
        let all = [(probe, "probe"), (alive, "alive"), (lifeline, "lifeline"), (unsteady, "unsteady")];
        all.into_iter().filter_map(|(is, name)| is.then_some(name)).collect()
    }
}
