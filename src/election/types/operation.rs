//! What an operator asks of a process while it runs, and what comes of that.

use crate::election::{Complaints, Epoch, Moment, Peer};
use std::fmt;
use std::time::Duration;

/// How many names a text for people lists.
const NAMES_LISTED_MAX: usize = 8;

/// What an operator asks of a process. A restart forgets it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// The leader resigns in favour of the member that ranks next. It is no candidate again for that long.
    Resign {
        /// None: the failure timeout.
        stand_aside: Option<Duration>,
    },
    /// The leader resigns in favour of the member with this name.
    Transfer {
        /// The member's name.
        to: String,
    },
    /// The process runs on and votes, and does not lead before [`Operation::Uncordon`]. A leader resigns
    /// first.
    Cordon,
    /// The process may lead again. This also ends what is left of a resignation's time.
    Uncordon,
}

impl Operation {
    /// Its name on the command line, in logs and as a metric's label.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Resign { .. } => "resign",
            Operation::Transfer { .. } => "transfer",
            Operation::Cordon => "cordon",
            Operation::Uncordon => "uncordon",
        }
    }

    /// All names, so that what counts by name can begin with all of them.
    pub const NAMES: [&'static str; 4] = ["resign", "transfer", "cordon", "uncordon"];
}

/// What keeps a process from being a candidate, beside its settings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Candidacy {
    /// An operator has cordoned it.
    pub cordoned: bool,
    /// It has resigned, and is no candidate before this moment of its fast clock.
    pub aside_until: Option<Moment>,
    /// Why its application is not healthy.
    pub complaints: Complaints,
}

/// What came of an operation.
pub type OperationOutcome = Result<OperationDone, OperationRefusal>;

/// An operation was carried out.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OperationDone {
    /// The leader that is known now, and its epoch. Where the process has resigned, it is another process.
    pub leader: Option<(Peer, Epoch)>,
    /// What keeps the process from being a candidate from now on.
    pub candidacy: Candidacy,
    /// For how long it is no candidate, counted from now.
    pub aside: Option<Duration>,
}

/// Why an operation was not carried out.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum OperationRefusal {
    /// Another command is under way. Nothing has changed.
    Busy,
    /// The process is stopping. A leader has resigned by that.
    Stopping,
    /// An operator has uncordoned this process before another one led.
    Uncordoned,
    /// Another process leads, or none. Nothing has changed.
    NotLeading {
        /// The leader, if one is known.
        leader: Option<Peer>,
    },
    /// This process leads already. Nothing has changed.
    LeadsAlready,
    /// No member has this name. Nothing has changed.
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names of the other members.
        members: Vec<String>,
    },
    /// The member with this name cannot take over. Nothing has changed.
    UnfitSuccessor {
        /// Its name.
        name: String,
        /// What keeps it.
        unfit: Unfit,
    },
    /// No member can take over. Nothing has changed.
    NoSuccessor {
        /// The names of the members in question, and what keeps each of them.
        members: Vec<(String, Unfit)>,
    },
    /// `majority`: no successor could win, so this process leads on.
    NoMajority {
        /// The names of the members that were asked.
        asked: Vec<String>,
    },
    /// This process has resigned, and another one leads than was asked for.
    AnotherLeads {
        /// The leader.
        leader: Peer,
    },
    /// Applications still have holds. This process resigns, as was asked, once they are over.
    StillHeld,
    /// This process has resigned, and no process has announced itself in time.
    NoLeader,
}

/// What keeps a member from leading.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unfit {
    /// It counts as failed.
    Failed,
    /// No connection with it is open.
    NotConnected,
    /// It has priority 0, is cordoned, has resigned for a while, or has an application that is not healthy.
    NoCandidate,
    /// `majority`: it is no voter.
    NoVoter,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unfit::Failed => "counts as failed",
            Unfit::NotConnected => "is not connected",
            Unfit::NoCandidate => {
                "is no candidate (priority 0, cordoned, resigned for a while, or not healthy)"
            }
            Unfit::NoVoter => "is no voter",
        })
    }
}

impl OperationRefusal {
    /// Its name in answers.
    pub fn name(&self) -> &'static str {
        match self {
            OperationRefusal::Busy => "busy",
            OperationRefusal::Stopping => "stopping",
            OperationRefusal::Uncordoned => "uncordoned",
            OperationRefusal::NotLeading { .. } => "not_leading",
            OperationRefusal::LeadsAlready => "leads_already",
            OperationRefusal::Unknown { .. } => "unknown",
            OperationRefusal::UnfitSuccessor { .. } => "unfit_successor",
            OperationRefusal::NoSuccessor { .. } => "no_successor",
            OperationRefusal::NoMajority { .. } => "no_majority",
            OperationRefusal::AnotherLeads { .. } => "another_leads",
            OperationRefusal::StillHeld => "still_held",
            OperationRefusal::NoLeader => "no_leader",
        }
    }
}

impl fmt::Display for OperationRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperationRefusal::Busy => {
                f.write_str("another command is under way; ask again when it has been answered")
            }
            OperationRefusal::Stopping => f.write_str("this process is stopping"),
            OperationRefusal::Uncordoned => {
                f.write_str("an operator has uncordoned this process before another one led")
            }
            OperationRefusal::NotLeading { leader: Some(leader) } => {
                write!(f, "this process does not lead; {} does: run the command there", leader.name)
            }
            OperationRefusal::NotLeading { leader: None } => {
                f.write_str("this process does not lead, and knows no leader; ask again once there is one")
            }
            OperationRefusal::LeadsAlready => f.write_str("this process leads already"),
            OperationRefusal::Unknown { name, members } if members.is_empty() => {
                write!(f, "no member has the name {name}: this process knows no other member")
            }
            OperationRefusal::Unknown { name, members } => {
                write!(f, "no member has the name {name}; the others are {}", listed(members))
            }
            OperationRefusal::UnfitSuccessor { name, unfit } => {
                write!(f, "{name} {unfit}; this process leads on, and nothing has changed")
            }
            OperationRefusal::NoSuccessor { members } if members.is_empty() => f.write_str(
                "no process can take over: this process knows no other member; it leads on, and nothing has \
                 changed",
            ),
            OperationRefusal::NoSuccessor { members } => {
                let each = members.iter().map(|(name, unfit)| format!("{name} {unfit}"));
                let each = listed(&each.collect::<Vec<_>>());
                write!(f, "no process can take over: {each}; this process leads on, and nothing has changed")
            }
            OperationRefusal::NoMajority { asked } => write!(
                f,
                "{} could not win: a majority does not answer, or would not vote for it; this process leads \
                 on, and nothing has changed",
                listed(asked)
            ),
            OperationRefusal::AnotherLeads { leader } => {
                write!(f, "this process has resigned, and {} leads instead", leader.name)
            }
            OperationRefusal::StillHeld => f.write_str(
                "this process leads no more for its applications, which have holds still; it resigns once \
                 they are over",
            ),
            OperationRefusal::NoLeader => f.write_str(
                "this process has resigned, and no process has announced itself as the leader yet",
            ),
        }
    }
}

/// The first names of a list, and how many more there are.
fn listed(names: &[String]) -> String {
    let mut text = names.iter().take(NAMES_LISTED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    if let Some(more) = names.len().checked_sub(NAMES_LISTED_MAX).filter(|more| *more > 0) {
        text += &format!(" and {more} more");
    }
    text
}
