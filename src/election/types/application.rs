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
}
