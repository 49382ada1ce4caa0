//! The channel between members: with which credentials, and how many links have it.

use super::Families;
use prometheus::{IntCounter, IntGauge, IntGaugeVec, Registry};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

/// The series of the channel.
pub(super) struct PeerSecurity {
    registry: Registry,
    pub(super) unauthenticated: IntCounter,
    keys: IntGaugeVec,
    pub(super) unusable: IntGauge,
    links: IntGaugeVec,
    former: IntGauge,
    /// Only a process with a certificate has this series.
    expires: Mutex<Option<IntGauge>>,
}

impl PeerSecurity {
    pub(super) fn registered(new: Families<'_>) -> prometheus::Result<PeerSecurity> {
        let links = new.gauges(
            "bellwether_peer_links",
            "Links with other members, by their channel: clear, or sealed (authenticated and encrypted).",
            &["channel"],
        )?;
        for channel in ["clear", "sealed"] {
            links.with_label_values(&[channel]).set(0);
        }
        Ok(PeerSecurity {
            registry: new.0.clone(),
            unauthenticated: new.counter(
                "bellwether_authentications_failed_total",
                "Connections with a peer that did not prove itself, or to which this process could not prove \
                 itself.",
            )?,
            keys: new.gauges(
                "bellwether_peer_key",
                "The keys that this process accepts from peers, by their fingerprint; it sends the one whose \
                 value is 1. With certificates: its own (1) and those of the authorities (0).",
                &["fingerprint"],
            )?,
            unusable: new.gauge(
                "bellwether_peer_credentials_unusable",
                "Whether the files of the credentials have changed into something of no use; those from \
                 before still count.",
            )?,
            links,
            former: new.gauge(
                "bellwether_peer_links_former",
                "Links that were made with other credentials than the present ones, and wait to be renewed.",
            )?,
            expires: Mutex::default(),
        })
    }

    /// The credentials that count now, by their fingerprints; the first is sent. `expires`: when the
    /// certificate ends, since the Unix epoch.
    pub(super) fn credentials(&self, fingerprints: &[String], expires: Option<Duration>) {
        self.unusable.set(0);
        self.keys.reset();
        for (index, fingerprint) in fingerprints.iter().enumerate() {
            self.keys.with_label_values(&[fingerprint]).set(i64::from(index == 0));
        }
        if let Some(end) = expires {
            let _ = self.expires_at(i64::try_from(end.as_secs()).unwrap_or(i64::MAX));
        }
    }

    fn expires_at(&self, seconds: i64) -> prometheus::Result<()> {
        // The gauge is a clone of one in the registry, and sound at every unlock.
        let mut expires = self.expires.lock().unwrap_or_else(PoisonError::into_inner);
        if expires.is_none() {
            *expires = Some(Families(&self.registry).gauge(
                "bellwether_peer_certificate_expiry_timestamp_seconds",
                "When this process's certificate ends; from then on peers refuse new links with it.",
            )?);
        }
        if let Some(gauge) = &*expires {
            gauge.set(seconds);
        }
        Ok(())
    }

    pub(super) fn links(&self, clear: usize, sealed: usize, former: usize) {
        let number = |links| i64::try_from(links).unwrap_or(i64::MAX);
        self.links.with_label_values(&["clear"]).set(number(clear));
        self.links.with_label_values(&["sealed"]).set(number(sealed));
        self.former.set(number(former));
    }
}
