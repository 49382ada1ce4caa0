//! Blocking TCP between the processes of a cluster: a listener, links, a bounded pool of threads, and crash
//! evidence.
//!
//! A *link* is an open connection over which each side has said which process it is. Usually a pair has one;
//! when both dial at once it has two, until one of them is idle. Messages go over the newest, are read from
//! all, and an unused link is closed. A link has one thread that reads it, blocking. Any thread may
//! write to it, and never waits. A peer whose socket takes no more of our few bytes has stopped reading, and
//! its link is cut. So nothing that a peer does can hold up the driver.
//!
//! Reports go to one sink, in the order of each link: [`Report::Opened`], messages, [`Report::Closed`]. The
//! sink may block (a bounded queue); no lock is held meanwhile. [`Connections`] turns the reports of several
//! links of a peer into the events that the election machine knows.

mod acceptor;
mod announced_values;
#[cfg(test)]
#[path = "../../tests/support/authority.rs"]
mod authority;
mod connections;
mod credential_rotation;
mod dial;
mod dialer;
mod handshake_limits;
mod hello_check;
mod identity_check;
mod link;
mod link_limits;
mod link_table;
mod session;
#[cfg(test)]
mod tests;

pub use announced_values::Announced;
pub use connections::Connections;

use crate::base::{Budget, Holder, LogEvent, RateLimit, Share, step};
use crate::channel::{Credentials, Keys};
use crate::election::{AnnouncedValues, Event, Incarnation, Message, Peer, ProcessId};
use crate::net::{Limits, Listener, Place, Places, Pool};
use crate::wire;
use announced_values::Announcements;
use handshake_limits::Admission;
use link::Link;
use link_table::LinkTable;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many links there are at most: two for each member, as when both sides dial at once.
pub const LINKS_MAX: usize = 2 * crate::election::MEMBERS_MAX;
/// How many links there are with one host at most, besides [`LINKS_PER_NAME_MAX`] for each address there that
/// discovery names.
const LINKS_PER_HOST_MAX: usize = 16;
const LINKS_PER_NAME_MAX: usize = 4;
/// How many links there are at most with hosts that discovery does not name: each costs a thread.
const LINKS_WITH_STRANGERS_MAX: usize = LINKS_MAX / 4;
/// How many connections may be in the handshake at the peer port.
pub const STRANGERS_MAX: usize = 256;
/// How many of them from one address: a host of many processes may start all of them at once.
const STRANGERS_PER_HOST_MAX: usize = STRANGERS_MAX / 2;
/// How many dials are under way at a time, and how many wait for a thread.
pub const DIALS_MAX: usize = 16;
/// How many more with hosts that discovery does not name: strangers that do not answer hold up no member.
pub const DIALS_WITH_STRANGERS_MAX: usize = 8;
const DIALS_WAITING_MAX: usize = 2 * crate::election::MEMBERS_MAX;
/// A link over which nothing has been said for this long is closed, if it is not sought or not the only one.
pub const IDLE_AFTER: Duration = Duration::from_secs(10);
/// How long a frame may take from its first byte to its last.
pub const FRAME_DEADLINE: Duration = Duration::from_secs(2);
const STACK_BYTES: usize = 128 * 1024;
/// What others can make this process log: a burst of lines, and then one each time that this passes. Hosts
/// that discovery does not name have as many lines of their own, so that they hide no member's.
const LOG_LINES: u32 = 6;
const LOG_LINE_EVERY: Duration = Duration::from_secs(10);

/// What the transport needs to know.
#[derive(Clone)]
pub struct TransportSettings {
    /// Peers of another cluster are refused.
    pub cluster: String,
    /// Peers of another level are refused; in `majority` also a second live process of one name.
    pub safety: wire::SafetyCode,
    /// This process. Its address may be unspecified: it is then found out from the route to the first peer.
    pub me: Peer,
    /// What it announces to the applications of all members.
    pub announce: AnnouncedValues,
    /// With what this process proves itself to peers, and what it asks of them.
    pub credentials: Arc<Credentials>,
    /// What the buffers of all links share with others.
    pub budget: Budget,
    /// How long a dial may take, and the handshake after it as well.
    pub dial_timeout: Duration,
    /// How long sent bytes may stay unacknowledged by the peer's kernel before its link is given up.
    pub unacknowledged_max: Duration,
}

/// What happened to links.
#[derive(Debug)]
pub enum Report {
    /// A link is open.
    Opened(Peer),
    /// A link ended.
    Closed {
        /// The peer.
        id: ProcessId,
        /// Its incarnation.
        incarnation: Incarnation,
        /// Whether the peer crashed: the link ended unannounced, and a dial at once was refused or answered
        /// by another incarnation.
        crashed: bool,
    },
    /// What is an event by itself. A peer crashed whose link has ended before, or was never told of. A dial
    /// was refused, or reached this process itself. A peer has no room. Or: where peers reach this process,
    /// from the route to one of them.
    Event(Event),
    /// A message arrived.
    Received {
        /// The sender.
        from: ProcessId,
        /// The sender's incarnation.
        incarnation: Incarnation,
        /// What.
        message: Message,
        /// What the message has of the budget, until the driver looks at it.
        _held: Share,
    },
}

/// Counts what goes over the links. Called on many threads; must not block.
pub trait Counts: Send + Sync + 'static {
    /// A message of this name is to be sent, whether or not a link takes it.
    fn sent(&self, name: &'static str);
    /// A message of this name arrived.
    fn received(&self, name: &'static str);
    /// A frame of an unknown kind was skipped.
    fn unknown_frame(&self);
    /// A connection was refused.
    fn refused(&self);
    /// A peer did not prove that it is a member, or this process did not prove it to a peer.
    fn unauthenticated(&self);
    /// What this process proves itself with from now on, and what it accepts.
    fn peer_keys(&self, keys: &Keys);
    /// The files of the credentials have changed, and are of no use.
    fn peer_keys_unusable(&self);
    /// There are these links now.
    fn links(&self, links: LinkCounts);
}

/// How many links there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkCounts {
    /// In clear.
    pub clear: usize,
    /// Authenticated and encrypted.
    pub sealed: usize,
    /// Those of `clear` and `sealed` that were made with other credentials than the present ones.
    pub former: usize,
}

/// Where reports go. It may block.
pub type Sink = Arc<dyn Fn(Report) + Send + Sync>;

/// The transport of one process. Dropping it closes the port, but not the links: see [`Transport::close`].
pub struct Transport {
    inner: Arc<Inner>,
    listener: Listener,
}

/// What its threads share.
struct Inner {
    settings: TransportSettings,
    stamp: wire::Stamp,
    listen_port: u16,
    sink: Sink,
    counts: Arc<dyn Counts>,
    table: Mutex<LinkTable>,
    seek_changed: std::sync::Condvar,
    places: Places,
    links: Pool,
    dials: Pool,
    stranger_dials: Pool,
    log: Mutex<RateLimit>,
    strangers_log: Mutex<RateLimit>,
}

impl Transport {
    /// Listens on `listener` and reports to `sink`.
    ///
    /// # Errors
    /// If the operating system refuses a thread.
    pub fn start(
        settings: TransportSettings,
        listener: TcpListener,
        sink: Sink,
        counts: Arc<dyn Counts>,
    ) -> io::Result<Transport> {
        let inner = Arc::new(Inner {
            stamp: wire::Stamp { cluster: settings.cluster.clone(), id: settings.me.id },
            listen_port: listener.local_addr()?.port(),
            table: Mutex::new(LinkTable::new(
                settings.me.address,
                settings.budget.clone(),
                Announcements::new(settings.me.id, settings.announce.clone()),
            )),
            settings,
            sink,
            counts,
            seek_changed: std::sync::Condvar::new(),
            places: Places::default(),
            links: Pool::new("link", LINKS_MAX, 0, STACK_BYTES),
            dials: Pool::new("dial", DIALS_MAX, DIALS_WAITING_MAX, STACK_BYTES),
            stranger_dials: Pool::new("dial", DIALS_WITH_STRANGERS_MAX, DIALS_WAITING_MAX, STACK_BYTES),
            log: Mutex::new(RateLimit::new(LOG_LINES, LOG_LINE_EVERY)),
            strangers_log: Mutex::new(RateLimit::new(LOG_LINES, LOG_LINE_EVERY)),
        });
        let limits = Limits {
            connections_max: STRANGERS_MAX,
            connections_per_host_max: STRANGERS_PER_HOST_MAX,
            receive_bytes_max: wire::HELLO_BYTES_MAX,
            receive_deadline: Duration::from_secs(1).max(inner.settings.dial_timeout),
            idle_deadline: Duration::from_secs(1),
            write_deadline: Duration::from_secs(1),
        };
        let acceptor = acceptor::Acceptor { inner: Arc::clone(&inner), admission: Admission::new() };
        let listener = Listener::spawn("peer-port", listener, limits, acceptor)?;
        if let Some(keys) = inner.settings.credentials.keys() {
            inner.counts.peer_keys(&keys);
        }
        let seeker = Arc::clone(&inner);
        std::thread::Builder::new()
            .name("seeker".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || dialer::seek(&seeker))?;
        Ok(Transport { inner, listener })
    }

    /// Whether the peer port accepts connections.
    pub fn listening(&self) -> bool {
        self.listener.alive()
    }

    /// Sends without waiting: over the newest link to `to`, else over one that is dialled to `address` for
    /// it. What cannot be delivered is dropped.
    pub fn send(&self, to: ProcessId, address: SocketAddr, message: &Message) {
        let frame = match wire::encode_message(&self.inner.stamp, message) {
            Ok(frame) => frame,
            Err(error) => {
                // The machine bounds all that it sends; this would be a bug, and dropping one message is
                // allowed.
                let event = LogEvent::warn("message_dropped").with("message", message.body.name());
                return self.inner.warn(event, format_args!("a message was not sent: {error}"));
            }
        };
        self.inner.counts.sent(message.body.name());
        step("sent", message.body.name(), Some(to));
        if !self.inner.write(to, &frame) {
            self.inner.send_by_dialling(to, address, frame);
        }
    }

    /// Keeps trying to have a link with the process at each of these addresses, until the next call.
    pub fn seek(&self, addresses: BTreeSet<SocketAddr>) {
        self.inner.table().seek(addresses);
        self.inner.seek_changed.notify_one();
    }

    /// Ends all links with a peer, and tells it that there is no room for it.
    pub fn refuse(&self, id: ProcessId) {
        let links = self.inner.table().links(id);
        for link in links {
            link.refuse();
        }
    }

    /// Says which members the election knows to be alive. A connection that names one of them counts only
    /// once that member has confirmed it.
    pub fn know(&self, members: impl Iterator<Item = Peer>) {
        self.inner.table().know(members);
    }

    /// What the processes of this election announce, as far as they have been connected.
    pub fn announced(&self) -> Arc<Announced> {
        self.inner.table().announcements.all()
    }

    /// Says which process leads. After a change of credentials its link is renewed last.
    pub fn led_by(&self, leader: Option<ProcessId>) {
        self.inner.table().led_by(leader);
    }

    /// Says which addresses discovery names. A peer advertises one of them, or the address that it connects
    /// from.
    pub fn name(&self, addresses: BTreeSet<SocketAddr>) {
        self.inner.table().name(addresses);
    }

    #[cfg(test)]
    pub(crate) fn names(&self, address: SocketAddr) -> bool {
        self.inner.table().names_host(address.ip())
    }

    /// Accepts and dials no more, and ends all links, announced as deliberate.
    pub fn close(self) {
        let Transport { inner, listener } = self;
        listener.stop();
        let links = inner.table().close();
        inner.seek_changed.notify_one();
        for link in links {
            link.say_bye();
        }
    }
}

impl Inner {
    fn table(&self) -> MutexGuard<'_, LinkTable> {
        // A panicking thread ends the process in the sidecar; where it doesn't, the table is valid at every
        // unlock.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, report: Report) {
        (self.sink)(report);
    }

    /// Logs what others made happen, a few times a minute at most. What they wrote is to stand in it as
    /// `{:?}`: it then cannot pass for more than it is.
    fn warn(&self, event: LogEvent, text: std::fmt::Arguments<'_>) {
        event.say_within_shared(&self.log, text);
    }

    /// The same of what a process at this host made happen. The table must not be locked meanwhile.
    fn warn_of(&self, host: IpAddr, event: LogEvent, text: std::fmt::Arguments<'_>) {
        let named = self.table().names_host(host);
        event.say_within_shared(self.log_of(named), text);
    }

    fn log_of(&self, named: bool) -> &Mutex<RateLimit> {
        if named { &self.log } else { &self.strangers_log }
    }

    /// A place for a link with this host; none, and a warning, where there is none left.
    fn place(&self, host: IpAddr) -> Option<Place> {
        let names = self.table().names_of(host);
        let place = link_limits::take(&self.places, host, names);
        if place.is_none() {
            let event = LogEvent::warn("connection_given_up").with("address", host.to_string());
            self.warn_of(host, event, format_args!("a connection was given up: too many links are open"));
        }
        place
    }

    /// What a peer at this host counts as, for the budget.
    fn holder(&self, host: IpAddr) -> Holder {
        if self.table().names_host(host) { Holder::Named } else { Holder::Stranger }
    }

    /// Whether a link was made with other credentials than the present ones. A link in clear has none, and
    /// the switch to a proof is a restart.
    fn is_former(&self, link: &Link) -> bool {
        let present = self.settings.credentials.keys();
        link.channel.keys().is_some_and(|made| present.is_none_or(|keys| !Arc::ptr_eq(made, &keys)))
    }

    /// Shows how many links there are. The table is locked meanwhile, so that the latest numbers stay.
    fn count_links(&self, table: &LinkTable) {
        let mut counts = LinkCounts::default();
        for link in table.all_links() {
            let sealed = link.channel.keys().is_some();
            counts.sealed += usize::from(sealed);
            counts.clear += usize::from(!sealed);
            counts.former += usize::from(self.is_former(link));
        }
        self.counts.links(counts);
    }

    /// Counts a failed authentication, and logs it.
    fn unauthenticated(&self, remote: SocketAddr, why: &dyn std::fmt::Display) {
        self.counts.unauthenticated();
        let named = self.table().names_host(remote.ip());
        self.settings.credentials.failed(remote, named, why);
        let event = LogEvent::warn("peer_unauthenticated").with("address", remote.to_string());
        event.say_within_shared(self.log_of(named), format_args!("no link with a process: {why}"));
    }

    /// What this process says first on every connection. `token` names the dial; zero: it answers one.
    fn hello(&self, token: u64) -> Vec<u8> {
        let peer = Peer { address: self.table().advertised(), ..self.settings.me.clone() };
        let hello = wire::Hello {
            version_min: wire::VERSION_MIN,
            version_max: wire::VERSION,
            cluster: self.settings.cluster.clone(),
            peer,
            safety: self.settings.safety,
            token,
            announce: self.settings.announce.clone(),
        };
        // Config bounds every text in it; an empty Hello is refused by the other side as damaged.
        wire::encode_hello(&hello).unwrap_or_default()
    }

    /// Writes a frame to the newest link of a peer that takes it; false if there is none. Each link is tried
    /// once. A failed link is in the table until its reading thread has found that out. That thread may be
    /// waiting for the driver, and this is the driver's thread.
    fn write(&self, to: ProcessId, frame: &[u8]) -> bool {
        let links = self.table().links(to);
        links.iter().any(|link| link.write(frame))
    }
}

/// The line of a peer that this process refuses.
fn refused(peer: &Peer) -> LogEvent {
    LogEvent::warn("peer_refused").peer(peer)
}
