//! Links that are sought, and links that a message waits for.

use super::dial::{DialOutcome, dial};
use super::identity_check::{Doubt, Way, say_bye, settle};
use super::link_table::Dialled;
use super::session::hand_over;
use super::{Inner, Report, refused};
use crate::base::{LogEvent, boottime};
use crate::channel::Reading;
use crate::election::{Event, Peer, ProcessId};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// How often the seeking thread looks whether the files of the credentials have changed.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How long the seeking thread sleeps at most.
const SEEK_EVERY: Duration = Duration::from_secs(1);

/// Dials what is sought, until the transport is closed.
pub(super) fn seek(inner: &Arc<Inner>) {
    let mut looked = boottime();
    loop {
        if boottime().since(looked) >= LOOK_EVERY {
            looked = boottime();
            look_at_credentials(inner);
        }
        let mut table = inner.table();
        if table.closed() {
            return;
        }
        let now = boottime();
        let (mut due, next) = table.due(now);
        // An address that is being dialled already is renewed by that dial, or after it.
        let renewed = table.renew(|link| inner.is_former(link), now);
        due.extend(renewed.filter(|address| table.dialling(*address)));
        if due.is_empty() {
            let wait = next.map_or(SEEK_EVERY, |next| next.since(now)).min(SEEK_EVERY);
            drop(
                inner
                    .seek_changed
                    .wait_timeout(table, wait.max(Duration::from_millis(1)))
                    .unwrap_or_else(PoisonError::into_inner),
            );
            continue;
        }
        drop(table);
        for address in due {
            begin(inner, address);
        }
    }
}

/// The files of the credentials may have changed.
pub(super) fn look_at_credentials(inner: &Inner) {
    match inner.settings.credentials.look() {
        Reading::Unchanged => {}
        Reading::Changed(keys) => {
            let fingerprints = keys.fingerprints();
            inner.counts.peer_keys(&keys);
            inner.count_links(&inner.table());
            LogEvent::info("credentials_changed")
                .with("sends", fingerprints.first().map_or("none", String::as_str))
                .with("accepts", fingerprints.join(","))
                .say("the peer credentials have changed");
        }
        Reading::Failed(error) => {
            inner.counts.peer_keys_unusable();
            LogEvent::error("credentials_unusable")
                .say(format_args!("{error}; those from before still count: write their content back"));
        }
    }
}

/// Dials an address, already marked as being dialled, on a thread of the pool.
pub(super) fn begin(inner: &Arc<Inner>, address: SocketAddr) {
    dial_on(inner, address, true);
}

/// `follows`: where a process answers that lives at another address, it is dialled there. What answers there
/// does not lead any further.
fn dial_on(inner: &Arc<Inner>, address: SocketAddr, follows: bool) {
    let job = Arc::clone(inner);
    let named = inner.table().names_host(address.ip());
    let dials = if named { &inner.dials } else { &inner.stranger_dials };
    let begun = dials.run(move || {
        let outcome = match dial(&job, address) {
            Ok(DialOutcome::Peer { peer, channel, rest }) => {
                match settle(&job, &peer.peer, Way::Dialled(address)) {
                    Ok(claim) => hand_over(&job, *peer, channel, rest, claim),
                    Err(doubt) => {
                        say_bye(&channel);
                        doubted(&job, &peer.peer, doubt, follows)
                    }
                }
            }
            Ok(DialOutcome::Self_) => {
                job.report(Report::Event(Event::ReachedSelf(address)));
                Dialled::Hopeless
            }
            Ok(DialOutcome::Refused { why, lasting }) => {
                let event = LogEvent::warn("dial_refused").with("address", address.to_string());
                job.warn_of(address.ip(), event, format_args!("{why}"));
                if lasting { Dialled::Hopeless } else { Dialled::Failed }
            }
            Err(error) => {
                if error.kind() == ErrorKind::ConnectionRefused {
                    job.report(Report::Event(Event::Refused(address)));
                }
                Dialled::Failed
            }
        };
        job.dial_over(address, outcome);
    });
    if begun.is_err() {
        inner.dial_over(address, Dialled::Failed);
    }
}

/// What becomes of a dial whose connection does not count.
fn doubted(inner: &Arc<Inner>, peer: &Peer, doubt: Doubt, follows: bool) -> Dialled {
    match doubt {
        Doubt::Refused(why, text) => {
            inner.warn_of(peer.address.ip(), refused(peer), format_args!("{text}"));
            if why.is_lasting() { Dialled::Hopeless } else { Dialled::Failed }
        }
        Doubt::LivesAt(_) if !inner.table().links(peer.id).is_empty() => Dialled::Linked(peer.id),
        Doubt::LivesAt(address) => {
            if follows && inner.table().dialling(address) {
                dial_on(inner, address, false);
            }
            Dialled::Failed
        }
    }
}

impl Inner {
    /// Keeps the frame and dials for it, unless a dial is under way.
    pub(super) fn send_by_dialling(self: &Arc<Inner>, to: ProcessId, address: SocketAddr, frame: Vec<u8>) {
        if self.table().wait(to, address, frame) {
            begin(self, address);
        } else {
            // A link may have come up between the look for one and now. Its own hand-over of waiting frames
            // was then too early for this frame. Each line takes the lock anew: it must not be held by the
            // one before.
            let linked = !self.table().links(to).is_empty();
            let waiting = if linked { self.table().take_waiting(to) } else { Vec::new() };
            for frame in waiting {
                self.write(to, &frame);
            }
        }
    }

    pub(super) fn dial_over(&self, address: SocketAddr, outcome: Dialled) {
        self.table().dialled(address, outcome, boottime());
        self.seek_changed.notify_one();
    }
}
