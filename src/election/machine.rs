//! The machine: one process of the election, under the protocol that its settings name. All dispatch is here.
//!
//! Call [`Machine::new`] once, then [`Machine::handle`] with [`Event::Start`], and after that with each
//! event. Carry out the actions of each call, in order, before the next. Notifications may come after all
//! others. [`Machine::status`] is what the driver may publish in between.

#[cfg(any(test, feature = "mutations"))]
use super::Mutation;
use super::classic::Classic;
use super::core::Core;
use super::majority::Majority;
use super::{Action, Epoch, Event, KnownPeers, Now, Peer, ProcessId, Record, Safety, Settings, Status};
use std::time::Duration;

/// One process of the algorithm: events in, actions out. See the module for the order of calls.
#[derive(Clone, Hash, Debug)]
pub struct Machine(Protocol);

/// Which protocol, with all that the process knows.
#[derive(Clone, Hash, Debug)]
enum Protocol {
    Classic(Box<Core<Classic>>),
    Majority(Box<Core<Majority>>),
}

/// Asks the core, whichever protocol it has.
macro_rules! core {
    ($protocol:expr, $core:ident => $answer:expr) => {
        match $protocol {
            Protocol::Classic($core) => $answer,
            Protocol::Majority($core) => $answer,
        }
    };
}

impl Machine {
    /// A process before its start. `record` is what it kept from its last incarnation; a leadership never
    /// survives its process.
    pub fn new(settings: Settings, cluster: String, me: Peer, record: Option<&Record>) -> Machine {
        Machine(match settings.safety {
            Safety::Classic => Protocol::Classic(Box::new(Core::new(settings, cluster, me, record))),
            Safety::Majority { .. } => Protocol::Majority(Box::new(Core::new(settings, cluster, me, record))),
        })
    }

    /// Takes one event and says what to do. `now` never goes back from one event to the next. A gap of more
    /// than the failure timeout since the last event means that this process was paused; in `classic` a
    /// leader's gap of more than its lease does. The process then asks its peers before it believes anything,
    /// itself included, and before it looks at the event. A suspend of the host means the same, however short
    /// it seems.
    pub fn handle(&mut self, now: Now, event: Event) -> Vec<Action> {
        core!(&mut self.0, core => core.handle(now, event))
    }

    /// Makes the machine seek these peers while it asks for the leader at its start, besides those that
    /// discovery names. To be called before [`Event::Start`].
    pub fn ask_first(&mut self, known: &KnownPeers) {
        core!(&mut self.0, core => core.ask_first(known));
    }

    /// In `majority`, this process's requests and rounds ask for this lease from now on, or for the
    /// configuration's where that is shorter. `classic` has no leases.
    pub fn ask_for_lease(&mut self, lease: Duration) {
        if let Protocol::Majority(core) = &mut self.0 {
            core.ask_for_lease(lease);
        }
    }

    /// What may be told of it.
    pub fn status(&self) -> Status {
        core!(&self.0, core => core.status())
    }

    /// What is to be durable now.
    pub fn record(&self) -> Record {
        core!(&self.0, core => core.record())
    }

    /// The leader and the members as they are now.
    pub fn known_peers(&self) -> KnownPeers {
        core!(&self.0, core => core.known_peers())
    }

    /// This process, as it introduces itself.
    pub fn me(&self) -> &Peer {
        core!(&self.0, core => &core.me)
    }

    /// Its epoch.
    pub fn epoch(&self) -> Epoch {
        core!(&self.0, core => core.epoch)
    }

    /// How long an answer about leadership stands without a turn, as [`Machine::status`] says.
    pub fn answer_ttl(&self) -> Duration {
        core!(&self.0, core => core.pause_after())
    }

    /// Whether discovery should look more often.
    pub fn hurries_discovery(&self) -> bool {
        core!(&self.0, core => core.hurries_discovery())
    }

    /// The latest heartbeat's round trip to a member; none where this process does not lead.
    pub fn round_trip(&self, id: ProcessId) -> Option<Duration> {
        core!(&self.0, core => core.round_trip(id))
    }

    /// Leaves a clause out, to see a test fail without it.
    #[doc(hidden)]
    #[cfg(any(test, feature = "mutations"))]
    pub fn mutate(&mut self, clause: Mutation) {
        core!(&mut self.0, core => core.clauses.0 = Some(clause));
    }
}
