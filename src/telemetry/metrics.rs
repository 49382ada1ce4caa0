//! The metrics, in a registry of their own, as Prometheus text.
//!
//! Every series exists from the start, so that the first increase of a counter can be seen. What depends on
//! the moment of asking (the leader, its time in office, the time without one) is computed when a scrape
//! asks, like every other answer. What only `--safety majority` has is left out without it.

mod own_process;
mod peer_security;
mod requests;

use crate::election::{ElectionOutcome, LeaseReason, Moment, Reason, State, Status};
use own_process::OwnProcess;
use peer_security::PeerSecurity;
use prometheus::core::Collector;
use prometheus::{
    Counter, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
    Opts, Registry, TextEncoder,
};
use requests::Requests;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The results of a look-up.
const LOOKUPS: [&str; 3] = ["found", "empty", "unknown"];
/// From a millisecond (crash evidence on loopback) to an election that takes several rounds.
const ELECTION_SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];
/// From crash evidence on loopback to a lost majority.
const LEADERLESS_SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 0.35, 0.5, 1.0, 1.5, 2.5, 10.0, 60.0];
/// From a host's own loopback to the failure timeout.
const ROUND_TRIP_SECONDS: [f64; 12] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0];

/// Which way a message went: from this process, and to it.
const SENT: &str = "sent";
const RECEIVED: &str = "received";

/// All metrics of one process. A clone is the same metrics.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    /// What only `majority` shows.
    voting: Registry,
    lease_remaining: Gauge,
    voters: IntGauge,
    role: RoleMetrics,
    elections: Elections,
    traffic: Traffic,
    peer_security: PeerSecurity,
    requests: Requests,
}

/// The part of this process in its election, at the time of a scrape.
struct RoleMetrics {
    /// Set when a scrape asks: what the process is called is in its status.
    process_info: IntGaugeVec,
    is_leader: IntGauge,
    has_leader: IntGauge,
    candidate: IntGauge,
    unhealthy: IntGauge,
    leader_since: Gauge,
    master_status: IntGauge,
    epoch: IntGauge,
    members: IntGaugeVec,
    leases: Leases,
}

/// The lease in use.
struct Leases {
    in_use: Gauge,
    worst_delay: Gauge,
    reason: IntGaugeVec,
}

/// What the elections and the time between them came to.
struct Elections {
    ended: IntCounterVec,
    duration: Histogram,
    leader_changes: IntCounterVec,
    leaderless: HistogramVec,
    leaderless_seconds: Counter,
    /// Up to when the time without a leader has been counted; none while there is a leader, and before the
    /// start.
    leaderless_counted_to: Mutex<Option<Moment>>,
    pauses: IntCounter,
}

/// What went to and fro between processes, and how discovery fared.
struct Traffic {
    messages: IntCounterVec,
    round_trip: Histogram,
    lookups: IntCounterVec,
    unknown_frames: IntCounter,
    connections_refused: IntCounter,
}

impl RoleMetrics {
    fn registered(new: Families<'_>, cluster: &str) -> prometheus::Result<RoleMetrics> {
        let members = new.gauges(
            "bellwether_members",
            "Members known to this process, itself included, by their state.",
            &["state"],
        )?;
        for state in [State::Alive, State::Failed] {
            members.with_label_values(&[state_name(state)]);
        }
        let master = new.gauges(
            "leader_election_master_status",
            "Whether this process leads, at the time of the scrape, under client-go's name.",
            &["name"],
        )?;
        Ok(RoleMetrics {
            process_info: new.gauges(
                "bellwether_process_info",
                "The election that this process belongs to, its name there and its safety level; always 1.",
                &["election", "name", "safety"],
            )?,
            is_leader: new
                .gauge("bellwether_is_leader", "Whether this process leads, at the time of the scrape.")?,
            has_leader: new.gauge(
                "bellwether_has_leader",
                "Whether this process knows a leader, itself perhaps, at the time of the scrape.",
            )?,
            candidate: new.gauge(
                "bellwether_candidate",
                "Whether this process may lead: its priority is not 0, it is neither cordoned nor standing \
                 aside, and its application is healthy. A leader may lead on.",
            )?,
            unhealthy: new.gauge(
                "bellwether_application_unhealthy",
                "Whether the application beside this process is not healthy.",
            )?,
            leader_since: new.real(
                "bellwether_leader_since_timestamp_seconds",
                "When the leader that this process knows was elected, by the leader's own clock, since the \
                 Unix epoch; 0 without a leader.",
            )?,
            master_status: master.with_label_values(&[cluster]),
            epoch: new
                .gauge("bellwether_epoch", "The epoch of this process: the number of the leader's term.")?,
            members,
            leases: Leases::registered(new)?,
        })
    }
}

impl Elections {
    fn registered(new: Families<'_>) -> prometheus::Result<Elections> {
        let ended = new.counters(
            "bellwether_elections_total",
            "Elections that this process took part in, by how they ended for it.",
            &["outcome"],
        )?;
        let leader_changes = new.counters(
            "bellwether_leader_changes_total",
            "Leaders or epochs that were new to this process, by why there was a change.",
            &["reason"],
        )?;
        let leaderless = new.histograms(
            "bellwether_leaderless_duration_seconds",
            "From the last sign of the former leader, or from the start, to the announcement of the next \
             one, by why there was a change.",
            "reason",
            &LEADERLESS_SECONDS,
        )?;
        for outcome in ElectionOutcome::ALL {
            ended.with_label_values(&[outcome.name()]);
        }
        for reason in Reason::ALL {
            leader_changes.with_label_values(&[reason.name()]);
            leaderless.with_label_values(&[reason.name()]);
        }
        Ok(Elections {
            ended,
            duration: new.histogram(
                "bellwether_election_duration_seconds",
                "From the beginning of an election to its end for this process.",
                &ELECTION_SECONDS,
            )?,
            leader_changes,
            leaderless,
            leaderless_seconds: new.add(Counter::new(
                "bellwether_leaderless_seconds_total",
                "Time for which this process knew no leader, since it began to look for one.",
            ))?,
            leaderless_counted_to: Mutex::new(None),
            pauses: new.counter(
                "bellwether_pauses_total",
                "How often this process found that it had not run for longer than the failure timeout. A \
                 leader of classic counts what is longer than its lease in use.",
            )?,
        })
    }
}

impl Traffic {
    fn registered(new: Families<'_>) -> prometheus::Result<Traffic> {
        let lookups = new.counters(
            "bellwether_dns_lookups_total",
            "DNS look-ups of the Service, by their result: empty is an answer without addresses, unknown is \
             none.",
            &["result"],
        )?;
        for result in LOOKUPS {
            lookups.with_label_values(&[result]);
        }
        Ok(Traffic {
            messages: new.counters(
                "bellwether_messages_total",
                "Messages between processes, by their type and direction.",
                &["type", "direction"],
            )?,
            round_trip: new.histogram(
                "bellwether_heartbeat_rtt_seconds",
                "From a heartbeat of this process, while it leads, to its acknowledgement.",
                &ROUND_TRIP_SECONDS,
            )?,
            lookups,
            unknown_frames: new.counter(
                "bellwether_unknown_frames_total",
                "Frames of a kind that this version does not know, from peers of a newer one perhaps; they \
                 are skipped.",
            )?,
            connections_refused: new.counter(
                "bellwether_connections_refused_total",
                "Connections refused at the peer port: of another election, with an id or version that \
                 cannot be, no proper handshake, or too late with it.",
            )?,
        })
    }
}

impl Metrics {
    /// The metrics of a process of the election of this name.
    #[allow(clippy::expect_used)] // All names below are valid and differ; the tests make them.
    pub fn new(cluster: &str) -> Metrics {
        Metrics::registered(cluster).expect("invariant: metric names are valid and differ")
    }

    fn registered(cluster: &str) -> prometheus::Result<Metrics> {
        let (registry, voting) = (Registry::new(), Registry::new());
        let (new, new_voting) = (Families(&registry), Families(&voting));
        let version = &["version"];
        new.gauges("bellwether_build_info", "The version that runs; the value is always 1.", version)?
            .with_label_values(&[env!("CARGO_PKG_VERSION")])
            .set(1);
        registry.register(Box::new(OwnProcess::new()))?;
        Ok(Metrics(Arc::new(Inner {
            lease_remaining: new_voting.real(
                "bellwether_lease_remaining_seconds",
                "How much is left of this process's lease at the time of the scrape; 0 where it does not \
                 lead.",
            )?,
            voters: new_voting.gauge(
                "bellwether_voters",
                "How many voters there are, as this process knows; 0 before it has recovered.",
            )?,
            role: RoleMetrics::registered(new, cluster)?,
            elections: Elections::registered(new)?,
            traffic: Traffic::registered(new)?,
            peer_security: PeerSecurity::registered(new)?,
            requests: Requests::registered(new)?,
            registry,
            voting,
        })))
    }

    /// Counts a message to a peer, by the name of its [`Body`](crate::election::Body).
    pub fn sent(&self, body_name: &'static str) {
        self.0.traffic.messages.with_label_values(&[body_name, SENT]).inc();
    }

    /// The same of one from a peer.
    pub fn received(&self, body_name: &'static str) {
        self.0.traffic.messages.with_label_values(&[body_name, RECEIVED]).inc();
    }

    /// Counts a look-up: "found" (addresses), "empty" (no address is published) or "unknown" (no name server
    /// could say).
    pub fn lookup(&self, result: &'static str) {
        self.0.traffic.lookups.with_label_values(&[result]).inc();
    }

    /// Counts a heartbeat that was acknowledged after this long.
    pub fn heartbeat_round_trip(&self, round_trip: Duration) {
        self.0.traffic.round_trip.observe(round_trip.as_secs_f64());
    }

    /// Counts a frame that this version does not know.
    pub fn unknown_frame(&self) {
        self.0.traffic.unknown_frames.inc();
    }

    /// Counts a connection that was refused at the peer port.
    pub fn connection_refused(&self) {
        self.0.traffic.connections_refused.inc();
    }

    /// Counts a connection whose peer did not prove itself, or to whose peer this process did not.
    pub fn unauthenticated(&self) {
        self.0.peer_security.unauthenticated.inc();
    }

    /// Begins the series of the messages that this process may see.
    pub fn begin_messages(&self, names: impl Iterator<Item = &'static str>) {
        for (name, direction) in names.flat_map(|name| [(name, SENT), (name, RECEIVED)]) {
            self.0.traffic.messages.with_label_values(&[name, direction]);
        }
    }

    /// Begins the series of the status API's paths.
    pub fn begin_requests(&self, paths: &[&'static str]) {
        self.0.requests.begin(paths);
    }

    /// Counts a request to the status API, by its path (one of a fixed list) and the status of the answer.
    pub fn answered(&self, path: &'static str, status: u16, took: Duration) {
        self.0.requests.answered(path, status, took);
    }

    /// This number of clients has begun to watch; below zero: has stopped.
    pub fn watchers(&self, more: i64) {
        self.0.requests.watchers.add(more);
    }

    /// Counts a client that was cut off, since it did not take what it was told.
    pub fn watcher_cut(&self) {
        self.0.requests.watchers_cut.inc();
    }

    /// Shows the credentials that count now, by their fingerprints; the first is sent. `expires`: when the
    /// certificate ends, since the Unix epoch.
    pub fn peer_keys(&self, fingerprints: &[String], expires: Option<Duration>) {
        self.0.peer_security.credentials(fingerprints, expires);
    }

    /// Shows that the files of the credentials are of no use.
    pub fn peer_keys_unusable(&self) {
        self.0.peer_security.unusable.set(1);
    }

    /// Shows how many links there are, by their channel, and how many have former credentials.
    pub fn links(&self, clear: usize, sealed: usize, former: usize) {
        self.0.peer_security.links(clear, sealed, former);
    }

    /// Counts an election that ended after this long for this process.
    pub(super) fn election(&self, outcome: ElectionOutcome, lasted: Option<Duration>) {
        self.0.elections.ended.with_label_values(&[outcome.name()]).inc();
        if let Some(lasted) = lasted {
            self.0.elections.duration.observe(lasted.as_secs_f64());
        }
    }

    /// Counts a pause.
    pub(super) fn pause(&self) {
        self.0.elections.pauses.inc();
    }

    /// Counts a new leader, or a new epoch, and how long there was no leader before it.
    pub(super) fn leader_change(&self, reason: Reason, leaderless: Option<Duration>) {
        let elections = &self.0.elections;
        elections.leader_changes.with_label_values(&[reason.name()]).inc();
        if let Some(leaderless) = leaderless {
            elections.leaderless.with_label_values(&[reason.name()]).observe(leaderless.as_secs_f64());
        }
    }

    /// Counts the time without a leader up to `now`. From then on there is no leader, or there is one, or,
    /// without a change, it stays as it is.
    pub(super) fn leaderless(&self, now: Moment, change: Option<bool>) {
        let elections = &self.0.elections;
        let mut counted_to = elections.leaderless_counted_to.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = *counted_to {
            elections.leaderless_seconds.inc_by(now.since(before).as_secs_f64());
        }
        let leaderless = change.unwrap_or(counted_to.is_some());
        // Never back: two scrapes may come with their moments in the wrong order.
        *counted_to = leaderless.then(|| counted_to.map_or(now, |before| before.max(now)));
    }

    /// All metrics as Prometheus text, for a scrape at `now`, when the driver last turned at `turned`.
    pub fn encode(&self, status: &Status, now: Moment, turned: Moment) -> String {
        let inner = &*self.0;
        let role = &inner.role;
        let leads = i64::from(status.leads(now, turned));
        let safety = if status.voting.is_some() { "majority" } else { "classic" };
        role.process_info.with_label_values(&[status.cluster.as_str(), &status.me.name, safety]).set(1);
        role.is_leader.set(leads);
        role.has_leader.set(i64::from(status.leader(now, turned).is_some()));
        // Rounded to whole seconds where the milliseconds do not fit; no clock is set so far off.
        let elected_at_ms = status.leader(now, turned).map_or(0, |leader| leader.elected_at_ms);
        role.leader_since.set(elected_at_ms as f64 / 1000.0);
        role.candidate.set(i64::from(status.me.rank().eligible()));
        role.unhealthy.set(i64::from(status.candidacy.complaints.any()));
        role.master_status.set(leads);
        role.leases.show(status);
        role.epoch.set(i64::try_from(status.epoch.0).unwrap_or(i64::MAX));
        for state in [State::Alive, State::Failed] {
            let count = status.members.iter().filter(|member| member.state == state).count();
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            role.members.with_label_values(&[state_name(state)]).set(count);
        }
        inner.requests.holds.set(i64::try_from(status.holds).unwrap_or(i64::MAX));
        self.leaderless(now, None);
        let mut families = inner.registry.gather();
        if let Some(voting) = &status.voting {
            let left =
                status.valid_until.filter(|_| leads == 1).map_or(Duration::ZERO, |until| until.since(now));
            inner.lease_remaining.set(left.as_secs_f64());
            let voters = voting.config.as_ref().map_or(0, |config| config.voters.len());
            inner.voters.set(i64::try_from(voters).unwrap_or(i64::MAX));
            families.extend(inner.voting.gather());
        }
        // Encoding fails for families without metrics alone, and gathering drops those.
        TextEncoder::new().encode_to_string(&families).unwrap_or_default()
    }
}

impl Leases {
    fn registered(new: Families<'_>) -> prometheus::Result<Leases> {
        Ok(Leases {
            in_use: new.real(
                "bellwether_lease_in_use_seconds",
                "For how long the leader may be silent, by its latest heartbeat; 0 before the first one, and \
                 without a leader.",
            )?,
            worst_delay: new.real(
                "bellwether_worst_delay_seconds",
                "The worst delay that an adaptive lease goes by; 0 where leases are fixed, and before \
                 anything is learnt.",
            )?,
            reason: new.gauges(
                "bellwether_lease_reason",
                "What makes the leader's lease as long as it is: 1 for that, 0 for all else and elsewhere.",
                &["reason"],
            )?,
        })
    }

    fn show(&self, status: &Status) {
        self.in_use.set(status.lease.unwrap_or_default().as_secs_f64());
        self.worst_delay.set(status.worst_delay.unwrap_or_default().as_secs_f64());
        for reason in LeaseReason::ALL {
            let counts = status.lease_reason == Some(reason);
            self.reason.with_label_values(&[reason.name()]).set(i64::from(counts));
        }
    }
}

/// Makes metrics that this registry shows from then on.
#[derive(Clone, Copy)]
struct Families<'a>(&'a Registry);

impl Families<'_> {
    fn add<C: Collector + Clone + 'static>(self, made: prometheus::Result<C>) -> prometheus::Result<C> {
        let metric = made?;
        self.0.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    fn counter(self, name: &str, help: &str) -> prometheus::Result<IntCounter> {
        self.add(IntCounter::new(name, help))
    }

    fn gauge(self, name: &str, help: &str) -> prometheus::Result<IntGauge> {
        self.add(IntGauge::new(name, help))
    }

    /// A gauge of a number with a fraction.
    fn real(self, name: &str, help: &str) -> prometheus::Result<Gauge> {
        self.add(Gauge::new(name, help))
    }

    fn counters(self, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntCounterVec> {
        self.add(IntCounterVec::new(Opts::new(name, help), labels))
    }

    fn gauges(self, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntGaugeVec> {
        self.add(IntGaugeVec::new(Opts::new(name, help), labels))
    }

    fn histogram(self, name: &str, help: &str, buckets: &[f64]) -> prometheus::Result<Histogram> {
        self.add(Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.to_vec())))
    }

    /// One for each value of a label.
    fn histograms(
        self,
        name: &str,
        help: &str,
        label: &str,
        buckets: &[f64],
    ) -> prometheus::Result<HistogramVec> {
        self.add(HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), &[label]))
    }
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Alive => "alive",
        State::Failed => "failed",
    }
}

#[cfg(test)]
mod tests;
