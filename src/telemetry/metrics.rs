//! The metrics, in a registry of their own, as Prometheus text.
//!
//! Every series exists from the start, so that the first increase of a counter can be seen. What depends on the moment
//! of asking (who leads, for how long, and how long nobody has) is computed when a scrape asks, like every other answer.
//! What only `--safety majority` has is left out without it.

use crate::election::{Body, Moment, Outcome, Reason, State, View};
use prometheus::core::Collector;
use prometheus::process_collector::ProcessCollector;
use prometheus::{
    Counter, Gauge, GaugeVec, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
    Opts, Registry, TextEncoder,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The results of a look-up.
const LOOKUPS: [&str; 3] = ["found", "empty", "unknown"];
/// From a millisecond (crash evidence on loopback) to an election that takes several rounds.
const ELECTION_SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];
/// From a host's own loopback to the failure timeout.
const ROUND_TRIP_SECONDS: [f64; 12] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0];

/// Which way a message went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From this process.
    Sent,
    /// To it.
    Received,
}

impl Direction {
    const ALL: [Direction; 2] = [Direction::Sent, Direction::Received];

    fn name(self) -> &'static str {
        match self {
            Direction::Sent => "sent",
            Direction::Received => "received",
        }
    }
}

/// All metrics of one process. A clone is the same metrics.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    /// What only `majority` shows.
    voting: Registry,
    lease_remaining: Gauge,
    voters: IntGauge,
    /// Set when a scrape asks: what the process is called is in its view.
    process_info: IntGaugeVec,
    is_leader: IntGauge,
    has_leader: IntGauge,
    master_status: IntGauge,
    epoch: IntGauge,
    members: IntGaugeVec,
    elections: IntCounterVec,
    election_duration: Histogram,
    leader_changes: IntCounterVec,
    leaderless_seconds: Counter,
    /// Up to when the time without a leader has been counted; none while there is a leader, and before the start.
    leaderless_counted_to: Mutex<Option<Moment>>,
    messages: IntCounterVec,
    round_trip: Histogram,
    lookups: IntCounterVec,
    pauses: IntCounter,
    unknown_frames: IntCounter,
    connections_refused: IntCounter,
}

impl Metrics {
    /// The metrics of a process of the cluster of this name.
    #[allow(clippy::expect_used)] // All names below are valid and differ; the tests make them.
    pub fn new(cluster: &str) -> Metrics {
        Metrics::registered(cluster).expect("invariant: metric names are valid and differ")
    }

    fn registered(cluster: &str) -> prometheus::Result<Metrics> {
        let registry = Registry::new();
        let process_info = IntGaugeVec::new(
            Opts::new(
                "bellwether_process_info",
                "Which cluster this process belongs to, its name there and its safety level; the value is always 1.",
            ),
            &["cluster", "name", "safety"],
        )?;
        let is_leader =
            IntGauge::new("bellwether_is_leader", "Whether this process leads, at the time of the scrape.")?;
        let has_leader = IntGauge::new(
            "bellwether_has_leader",
            "Whether this process knows a leader, itself perhaps, at the time of the scrape.",
        )?;
        let master = IntGaugeVec::new(
            Opts::new(
                "leader_election_master_status",
                "Whether this process leads its cluster, at the time of the scrape, under client-go's name.",
            ),
            &["name"],
        )?;
        let epoch =
            IntGauge::new("bellwether_epoch", "The epoch of this process: the number of the leader's term.")?;
        let members = IntGaugeVec::new(
            Opts::new(
                "bellwether_members",
                "Members known to this process, itself included, by their state.",
            ),
            &["state"],
        )?;
        let elections = counters(
            "bellwether_elections_total",
            "Elections that this process took part in, by how they ended for it.",
            &["outcome"],
        )?;
        let election_duration = Histogram::with_opts(
            HistogramOpts::new(
                "bellwether_election_duration_seconds",
                "From the beginning of an election to its end for this process.",
            )
            .buckets(ELECTION_SECONDS.to_vec()),
        )?;
        let leader_changes = counters(
            "bellwether_leader_changes_total",
            "Leaders or epochs that were new to this process, by why there was a change.",
            &["reason"],
        )?;
        let leaderless_seconds = Counter::new(
            "bellwether_leaderless_seconds_total",
            "Time for which this process knew no leader, since it began to look for one.",
        )?;
        let messages = counters(
            "bellwether_messages_total",
            "Messages between processes, by their type and direction.",
            &["type", "direction"],
        )?;
        let round_trip = Histogram::with_opts(
            HistogramOpts::new(
                "bellwether_heartbeat_rtt_seconds",
                "From a heartbeat of this process, while it leads, to its acknowledgement.",
            )
            .buckets(ROUND_TRIP_SECONDS.to_vec()),
        )?;
        let lookups = counters(
            "bellwether_dns_lookups_total",
            "DNS look-ups of the Service, by their result: empty is an answer without addresses, unknown is none.",
            &["result"],
        )?;
        let pauses = IntCounter::new(
            "bellwether_pauses_total",
            "How often this process found that it had not run for longer than the failure timeout.",
        )?;
        let unknown_frames = IntCounter::new(
            "bellwether_unknown_frames_total",
            "Frames of a kind that this version does not know, from peers of a newer one perhaps; they are skipped.",
        )?;
        let connections_refused = IntCounter::new(
            "bellwether_connections_refused_total",
            "Connections refused at the peer port: of another cluster, with an id or version that cannot be, no proper \
             handshake, or too late with it.",
        )?;
        let build_info = GaugeVec::new(
            Opts::new("bellwether_build_info", "The version that runs; the value is always 1."),
            &["version"],
        )?;

        let lease_remaining = Gauge::new(
            "bellwether_lease_remaining_seconds",
            "How much is left of this process's lease at the time of the scrape; 0 where it does not lead.",
        )?;
        let voters = IntGauge::new(
            "bellwether_voters",
            "How many voters there are, as this process knows; 0 before it has recovered.",
        )?;
        let voting = Registry::new();
        voting.register(Box::new(lease_remaining.clone()))?;
        voting.register(Box::new(voters.clone()))?;

        for state in [State::Alive, State::Failed] {
            members.with_label_values(&[state_name(state)]);
        }
        for outcome in Outcome::ALL {
            elections.with_label_values(&[outcome.name()]);
        }
        for reason in Reason::ALL {
            leader_changes.with_label_values(&[reason.name()]);
        }
        for (message, direction) in Body::NAMES.iter().flat_map(|m| Direction::ALL.map(|d| (m, d))) {
            messages.with_label_values(&[*message, direction.name()]);
        }
        for result in LOOKUPS {
            lookups.with_label_values(&[result]);
        }
        let one: Gauge = build_info.with_label_values(&[env!("CARGO_PKG_VERSION")]);
        one.set(1.0);

        let all: [Box<dyn Collector>; 18] = [
            Box::new(process_info.clone()),
            Box::new(is_leader.clone()),
            Box::new(has_leader.clone()),
            Box::new(master.clone()),
            Box::new(epoch.clone()),
            Box::new(members.clone()),
            Box::new(elections.clone()),
            Box::new(election_duration.clone()),
            Box::new(leader_changes.clone()),
            Box::new(leaderless_seconds.clone()),
            Box::new(messages.clone()),
            Box::new(round_trip.clone()),
            Box::new(lookups.clone()),
            Box::new(pauses.clone()),
            Box::new(unknown_frames.clone()),
            Box::new(connections_refused.clone()),
            Box::new(build_info),
            Box::new(ProcessCollector::for_self()),
        ];
        for collector in all {
            registry.register(collector)?;
        }
        Ok(Metrics(Arc::new(Inner {
            registry,
            voting,
            lease_remaining,
            voters,
            process_info,
            is_leader,
            has_leader,
            master_status: master.with_label_values(&[cluster]),
            epoch,
            members,
            elections,
            election_duration,
            leader_changes,
            leaderless_seconds,
            leaderless_counted_to: Mutex::new(None),
            messages,
            round_trip,
            lookups,
            pauses,
            unknown_frames,
            connections_refused,
        })))
    }

    /// Counts a message, by the name of its [`Body`].
    pub fn message(&self, body_name: &'static str, direction: Direction) {
        self.0.messages.with_label_values(&[body_name, direction.name()]).inc();
    }

    /// Counts a look-up: "found" (addresses), "empty" (nobody is published) or "unknown" (nobody could say).
    pub fn lookup(&self, result: &'static str) {
        self.0.lookups.with_label_values(&[result]).inc();
    }

    /// Counts a heartbeat that was acknowledged after this long.
    pub fn heartbeat_round_trip(&self, round_trip: Duration) {
        self.0.round_trip.observe(round_trip.as_secs_f64());
    }

    /// Counts a frame that this version does not know.
    pub fn unknown_frame(&self) {
        self.0.unknown_frames.inc();
    }

    /// Counts a connection that was refused at the peer port.
    pub fn connection_refused(&self) {
        self.0.connections_refused.inc();
    }

    /// Counts an election that ended after this long for this process.
    pub(super) fn election(&self, outcome: Outcome, lasted: Option<Duration>) {
        self.0.elections.with_label_values(&[outcome.name()]).inc();
        if let Some(lasted) = lasted {
            self.0.election_duration.observe(lasted.as_secs_f64());
        }
    }

    /// Counts a pause.
    pub(super) fn pause(&self) {
        self.0.pauses.inc();
    }

    /// Counts a new leader, or a new epoch.
    pub(super) fn leader_change(&self, reason: Reason) {
        self.0.leader_changes.with_label_values(&[reason.name()]).inc();
    }

    /// Counts the time without a leader up to `now`. From then on there is no leader, or there is one, or, without a
    /// change, it stays as it is.
    pub(super) fn leaderless(&self, now: Moment, change: Option<bool>) {
        let mut counted_to = self.0.leaderless_counted_to.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = *counted_to {
            self.0.leaderless_seconds.inc_by(now.since(before).as_secs_f64());
        }
        let leaderless = change.unwrap_or(counted_to.is_some());
        // Never back: two scrapes may come with their moments in the wrong order.
        *counted_to = leaderless.then(|| counted_to.map_or(now, |before| before.max(now)));
    }

    /// All metrics as Prometheus text, for a scrape at `now`, when the driver last turned at `turned`.
    pub fn encode(&self, view: &View, now: Moment, turned: Moment) -> String {
        let inner = &*self.0;
        let leads = i64::from(view.leads(now, turned));
        let safety = if view.voting.is_some() { "majority" } else { "classic" };
        inner.process_info.with_label_values(&[view.cluster.as_str(), &view.me.name, safety]).set(1);
        inner.is_leader.set(leads);
        inner.has_leader.set(i64::from(view.leader(now, turned).is_some()));
        inner.master_status.set(leads);
        inner.epoch.set(i64::try_from(view.epoch.0).unwrap_or(i64::MAX));
        for state in [State::Alive, State::Failed] {
            let count = view.members.iter().filter(|member| member.state == state).count();
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            inner.members.with_label_values(&[state_name(state)]).set(count);
        }
        self.leaderless(now, None);
        let mut families = inner.registry.gather();
        if let Some(voting) = &view.voting {
            let left =
                view.valid_until.filter(|_| leads == 1).map_or(Duration::ZERO, |until| until.since(now));
            inner.lease_remaining.set(left.as_secs_f64());
            let voters = voting.config.as_ref().map_or(0, |config| config.voters.len());
            inner.voters.set(i64::try_from(voters).unwrap_or(i64::MAX));
            families.extend(inner.voting.gather());
        }
        // Encoding fails for families without metrics alone, and gathering drops those.
        TextEncoder::new().encode_to_string(&families).unwrap_or_default()
    }
}

fn counters(name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntCounterVec> {
    IntCounterVec::new(Opts::new(name, help), labels)
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Alive => "alive",
        State::Failed => "failed",
    }
}

#[cfg(test)]
mod tests;
