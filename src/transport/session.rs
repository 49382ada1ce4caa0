//! A link from the handshake to its end, and what its end says about the peer.

use super::Inner;
use super::dial::{DialOutcome, dial_through};
use super::hello_check::Introduction;
use super::identity_check::{Claim, Way, say_bye, settle};
use super::link::{End, LOOK_EVERY, Link, RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES, read};
use super::link_table::Dialled;
use crate::base::{LogEvent, step};
use crate::channel::Channel;
use crate::election::Peer;
use crate::wire;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// After how long a silence the kernel asks whether the other host is there, and how often from then on. The
/// limit on unacknowledged bytes ends the link where no answer comes.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(1);

/// Takes a checked connection into the table and reads it to its end, on a thread of the link pool.
/// `received` holds bytes that came after the peer's Hello. `dialled`: by this
/// process.
pub(super) fn serve(
    inner: &Arc<Inner>,
    Introduction { peer, announce }: Introduction,
    channel: Channel,
    received: Vec<u8>,
    claim: Claim,
    dialled: bool,
) {
    let (id, incarnation) = (peer.id, peer.incarnation);
    if prepare(inner, channel.stream()).is_err() {
        return;
    }
    let Ok(remote) = channel.stream().peer_addr() else { return };
    let host = remote.ip().to_canonical();
    let held = inner.settings.budget.share(inner.holder(host));
    let link = Arc::new(Link::new(peer.clone(), host, channel, held));
    let (former, waiting) = enter(inner, &link);
    drop(claim);
    let Some(waiting) = waiting else {
        if !inner.table().closed() {
            let event = LogEvent::warn("connection_given_up").peer(&peer);
            inner.warn_of(host, event, format_args!("a connection was given up: too many are open"));
        }
        return link.say_bye();
    };
    // Another incarnation has come: the one before is gone, and that is this link's doing to report, in
    // order. Where votes are counted that proves nothing: this thread may have been held up, and the former
    // incarnation may be the one that comes late.
    let crashed = inner.settings.safety != wire::SafetyCode::Majority;
    for old in former {
        old.cut();
        old.tell_closed(inner, crashed);
    }
    inner.table().announcements.said(id, announce);
    link.tell_opened(inner);
    for frame in waiting {
        link.write(&frame);
    }
    let end = read(inner, &link, received, dialled);
    step("link_ended", "link", Some(id));
    let deliberate = link.closing() || matches!(end, End::Deliberate);
    leave(inner, &link);
    let crashed = match end {
        End::Protocol(what) => {
            let event = LogEvent::warn("connection_closed").peer(&link.peer);
            inner.warn_of(host, event, format_args!("the connection was closed: {what}"));
            false
        }
        _ if deliberate => false,
        _ => evidence(inner, &link.peer),
    };
    step("judged", if crashed { "crash" } else { "link_down" }, Some(id));
    link.tell_closed(inner, crashed);
    if crashed {
        // Its other links are over too. The evidence may be wrong: something on the path may refuse in its
        // name. Were these links kept, this process would never seek a link with it again.
        for other in inner.table().links(id).iter().filter(|other| other.peer.incarnation == incarnation) {
            other.cut();
        }
    }
    inner.seek_changed.notify_one();
}

/// Takes a link into the table. Hands out the links of another incarnation, and what has waited for this one;
/// none: there is no room for it.
fn enter(inner: &Inner, link: &Arc<Link>) -> (Vec<Arc<Link>>, Option<Vec<Vec<u8>>>) {
    let mut table = inner.table();
    let former = table.former(link.peer.id, link.peer.incarnation);
    let waiting = table.add(link);
    inner.count_links(&table);
    (former, waiting)
}

/// Takes a link out of the table, and ends it.
fn leave(inner: &Inner, link: &Arc<Link>) {
    let mut table = inner.table();
    table.remove(link);
    inner.count_links(&table);
    drop(table);
    link.cut();
}

/// Deadlines and limits of a socket that will be a link.
fn prepare(inner: &Inner, stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    let socket = socket2::SockRef::from(stream);
    // A write asks for more where that is too little.
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    // A standing link is silent, so the kernel has to ask whether the other host is still there.
    let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE_AFTER).with_interval(KEEPALIVE_EVERY);
    socket.set_tcp_keepalive(&keepalive)?;
    // Without this, a link over a cut network stays open for a quarter of an hour and is slow for minutes
    // after.
    socket.set_tcp_user_timeout(Some(inner.settings.unacknowledged_max))
}

/// Gives a checked connection to a thread that reads it.
pub(super) fn hand_over(
    inner: &Arc<Inner>,
    newcomer: Introduction,
    channel: Channel,
    rest: Vec<u8>,
    claim: Claim,
) -> Dialled {
    let job = Arc::clone(inner);
    let id = newcomer.peer.id;
    let place = match channel.stream().peer_addr() {
        Ok(remote) => inner.place(remote.ip().to_canonical()),
        Err(_) => None,
    };
    let Some(place) = place else {
        say_bye(&channel);
        return Dialled::Failed;
    };
    let event = LogEvent::warn("connection_given_up").peer(&newcomer.peer);
    let begun = inner.links.run(move || {
        serve(&job, newcomer, channel, rest, claim, true);
        drop(place);
    });
    match begun {
        Ok(()) => Dialled::Linked(id),
        Err(saturated) => {
            inner.warn(event, format_args!("a connection was given up: {saturated}"));
            Dialled::Failed
        }
    }
}

/// Gathers evidence about a peer whose link ended unannounced: whether it crashed. A fresh dial at once
/// tells: 150 ms later, in a pod that is being deleted, nothing would be left to refuse it.
///
/// Refused: it is gone. Answered by another incarnation: it is gone, and that is a new link. Answered by the
/// same one: a blip, and a new link. Silence: nothing is known.
pub(super) fn evidence(inner: &Arc<Inner>, peer: &Peer) -> bool {
    if !inner.table().probe(peer.id, peer.incarnation) {
        return false;
    }
    let crashed = match dial_through(inner, peer.address) {
        Ok(DialOutcome::Peer { peer: found, channel, rest }) => {
            let same_incarnation = found.peer.id == peer.id && found.peer.incarnation == peer.incarnation;
            match settle(inner, &found.peer, Way::Dialled(peer.address)) {
                Ok(claim) => _ = hand_over(inner, *found, channel, rest, claim),
                Err(_) => say_bye(&channel),
            }
            !same_incarnation
        }
        // The address is this process's own by now, or was never that peer's from here.
        Ok(DialOutcome::Self_) => false,
        Ok(DialOutcome::Refused { .. }) => false,
        Err(error) => error.kind() == ErrorKind::ConnectionRefused,
    };
    inner.table().probed(peer.id, peer.incarnation);
    crashed
}
