//! What the status API was asked: by path and status, and how long an answer took to make.

use super::Families;
use prometheus::{HistogramVec, IntCounter, IntCounterVec, IntGauge};
use std::time::Duration;

/// What is counted by its number. `?standby=` lets a client choose any status: the others are one series.
const STATUSES: [(u16, &str); 10] = [
    (200, "200"),
    (201, "201"),
    (204, "204"),
    (400, "400"),
    (403, "403"),
    (404, "404"),
    (405, "405"),
    (429, "429"),
    (500, "500"),
    (503, "503"),
];
/// From a short answer to one that a busy machine delays.
const ANSWER_SECONDS: [f64; 8] = [0.000_01, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.025, 0.1];

pub(super) struct Requests {
    answered: IntCounterVec,
    duration: HistogramVec,
    pub(super) watchers: IntGauge,
    pub(super) watchers_cut: IntCounter,
    pub(super) holds: IntGauge,
}

impl Requests {
    pub(super) fn registered(new: Families<'_>) -> prometheus::Result<Requests> {
        Ok(Requests {
            answered: new.counters(
                "bellwether_http_requests_total",
                "Requests to the status API, by their path and the status of the answer.",
                &["path", "status"],
            )?,
            duration: new.histograms(
                "bellwether_http_request_duration_seconds",
                "From the end of a request's head to its answer, the network not included.",
                "path",
                &ANSWER_SECONDS,
            )?,
            watchers: new.gauge(
                "bellwether_watchers",
                "Clients that wait for changes at /watch or /sse, at the time of the scrape.",
            )?,
            watchers_cut: new.counter(
                "bellwether_watchers_cut_total",
                "Clients of /watch or /sse that were cut off, since they did not take what they were told.",
            )?,
            holds: new.gauge(
                "bellwether_holds",
                "Holds of applications that are out: a resignation waits for them.",
            )?,
        })
    }

    /// Begins the series of these paths, so that their first request can be seen.
    pub(super) fn begin(&self, paths: &[&'static str]) {
        for path in paths {
            self.answered.with_label_values(&[path, "200"]);
            self.duration.with_label_values(&[path]);
        }
    }

    pub(super) fn answered(&self, path: &'static str, status: u16, took: Duration) {
        let known = STATUSES.iter().find(|(number, _)| *number == status);
        let status = known.map_or("other", |(_, text)| text);
        self.answered.with_label_values(&[path, status]).inc();
        self.duration.with_label_values(&[path]).observe(took.as_secs_f64());
    }
}
