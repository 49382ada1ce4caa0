//! What the machine tells people: state changes, and why leaders change.

use crate::election::{Complaints, Denial, Epoch, Founding, Moment, NotReady, Peer, Stage, VoterConfig};
use std::collections::BTreeSet;
use std::time::Duration;

named! {
    /// Why there was a change of leader, or a loss of one.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Reason {
        /// There was none: this process has just started.
        Start = "start",
        /// Its connection closed, and no process listens there, or another incarnation does.
        Crash = "crash",
        /// It was silent for the failure timeout.
        Silence = "silence",
        /// The operator stopped it, and it has resigned.
        Resign = "resign",
        /// It transferred leadership to a process of higher priority.
        Transfer = "transfer",
        /// Another leader replaced it: by a newer epoch, when two leaders met, or because a better process
        /// took over.
        Superseded = "superseded",
        /// This process was paused for longer than the failure timeout, and asks before it believes anything.
        Pause = "pause",
        /// `majority`: no majority renewed its lease in time.
        Lapse = "lapse",
    }
}

named! {
    /// How an election that this process took part in ended for it.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum ElectionOutcome {
        /// It leads.
        Won = "won",
        /// Another leads.
        Lost = "lost",
        /// No process announced in time, so this process begins again.
        Unfinished = "unfinished",
    }
}

/// A state change worth a line in the log or a count in a metric.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Notification {
    /// This process asks its peers for the leader before it starts an election: at a start, or after a pause
    /// this long.
    Asking {
        /// How long the process had not turned, after a pause.
        paused: Option<Duration>,
        /// How many members it waits for, this process included; 0: it waits for none.
        expect: usize,
    },
    /// It takes part in an election.
    ElectionBegins {
        /// Why there is one.
        reason: Reason,
    },
    /// The election is over for it.
    ElectionEnds {
        /// Won, lost, or to be repeated.
        outcome: ElectionOutcome,
    },
    /// No live process may lead (every priority is 0).
    NoCandidate,
    /// It knows a leader, itself perhaps, that it did not know before, or in another epoch.
    Leader {
        /// The new leader.
        peer: Peer,
        /// Its epoch.
        epoch: Epoch,
        /// Why there was a change.
        reason: Reason,
        /// Whether it is this process.
        me: bool,
    },
    /// It knows no leader any more.
    Leaderless {
        /// The process that led.
        former: Peer,
        /// The epoch that it led.
        epoch: Epoch,
        /// Why it leads no longer.
        reason: Reason,
        /// Whether it was this process.
        me: bool,
        /// Since when there is none, for all that is known: in a silence, since the leader was last heard.
        since: Moment,
    },
    /// This process has elected itself although discovery names others, none of which is alive.
    LeadsAlone {
        /// How many other addresses there are.
        others: usize,
    },
    /// A member is new, or a failed one is back, or one changed its address or incarnation.
    MemberUp(Peer),
    /// A member failed.
    MemberFailed {
        /// The member.
        peer: Peer,
        /// How that is known: by [`Reason::Crash`], by [`Reason::Silence`], or else from the leader.
        reason: Option<Reason>,
    },
    /// This process forgets a member: it left, or has been dead and unlisted for a minute, or its address is
    /// another's now.
    MemberGone(Peer),
    /// Two live processes use one name, which ought to be unique in the cluster.
    SameName {
        /// The member that this process knew.
        known: Peer,
        /// The process that came later.
        other: Peer,
    },
    /// The cluster is full, so it does not take in this peer.
    TooManyMembers(Peer),
    /// `majority`: this voter has no record, or has not finished its first start. It asks what it has to
    /// know.
    Recovering,
    /// `majority`: nothing has changed for a while in what keeps this voter from its vote.
    NoVoteYet(NotReady),
    /// `majority`: another voter has no record, or has not finished its first start.
    VoterRecovers(Peer),
    /// `majority`: this voter votes from now on, and is in this epoch.
    Recovered(Epoch),
    /// `majority`: this voter has no record, and its settings do not let it take part in a first start.
    FoundingRefused(Founding),
    /// `majority`: this voter was restarted. It votes for no process for so long, since it may have forgotten
    /// a promise.
    RestartGrace(Duration),
    /// `majority`: a voter did not vote for this process.
    Denied {
        /// The voter that denied.
        voter: Peer,
        /// Whether it was asked for a pre-vote or a vote.
        stage: Stage,
        /// Why.
        denial: Denial,
    },
    /// `majority`: these voters count for this process from now on.
    VotersChanged {
        /// The configuration that names them.
        config: VoterConfig,
        /// The `--voters` that this process was started with. They count once a majority has them.
        given: BTreeSet<String>,
    },
    /// `majority`: another lease counts for this process from now on.
    LeaseInUse {
        /// The configuration's lease, in milliseconds.
        lease_ms: u32,
        /// The configuration's bound, in milliseconds.
        bound_ms: u32,
        /// The `--lease` that this process was started with, in milliseconds. It takes effect when a majority
        /// has it.
        given_ms: u32,
    },
    /// `majority`: a peer was started with other `--voters`. A change begins when a majority agrees.
    VotersDiffer {
        /// That peer.
        peer: Peer,
        /// Neither has a record. Then another `--lease` counts, too, and all have to agree.
        first_start: bool,
    },
    /// An operator has cordoned this process, or it stands aside after a resignation.
    StandsAside {
        /// For how long it is no candidate; none: it is cordoned.
        aside: Option<Duration>,
    },
    /// This process is a candidate again.
    StandsAgain,
    /// At its start this process waits for its application to be healthy.
    AwaitsApplication {
        /// What has to say so.
        complaints: Complaints,
    },
    /// The application of this pod counts as healthy from now on, or does not.
    Application {
        /// Why it does not; none: it does.
        complaints: Complaints,
    },
    /// The leader is to resign, and waits for the holds of its applications.
    WaitsForHolds {
        /// How many are out.
        holds: usize,
        /// How long it waits at most.
        at_most: Duration,
    },
    /// The leader resigns in favour of another.
    Resigning {
        /// The process that leads next; none: an election decides.
        successor: Option<Peer>,
        /// Why: [`Reason::Resign`] or [`Reason::Transfer`].
        reason: Reason,
    },
}
