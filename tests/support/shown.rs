//! The status port of a process whose state a test sets.

use bellwether::base::{Budget, Reading, boottime};
use bellwether::election::{
    Candidacy, Epoch, Incarnation, Incumbent, Peer, Priority, ProcessId, Role, Sign, Status,
};
use bellwether::http::{self, Feed, Room, Server, Snapshot, Source, Unheld};
use bellwether::net::{self, Limits};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a process shows: the state, as the driver last published it.
pub struct Shown {
    status: Mutex<Status>,
    feed: Feed,
    watchers: AtomicI64,
    pub cut: AtomicI64,
    /// What the driver has heard of applications, and whether it has room for more.
    pub signs: Mutex<Vec<Sign>>,
    pub full: AtomicBool,
    /// For how long the watchers' thread stands still after its next look at the state.
    pub held_up_ms: AtomicU64,
}

impl Shown {
    fn snapshot(&self) -> Snapshot {
        let status = Arc::new(self.status.lock().unwrap().clone());
        let (now, reading) = (boottime(), Reading::take());
        if std::thread::current().name() == Some("watch") {
            std::thread::sleep(Duration::from_millis(self.held_up_ms.swap(0, Ordering::Relaxed)));
        }
        Snapshot {
            status,
            now,
            reading,
            turned: now,
            health: Ok(()),
            took_part: true,
            announced: Arc::default(),
        }
    }

    /// Publishes another state, as the driver does.
    pub fn publish(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status.lock().unwrap());
        self.feed.observe(|| self.snapshot());
    }

    /// The epoch that is shown.
    pub fn epoch(&self) -> u64 {
        self.status.lock().unwrap().epoch.0
    }

    pub fn elects(&self, epoch: u64) {
        self.publish(|status| status.epoch = Epoch(epoch));
    }

    /// Waits until this number of clients watch.
    pub fn watched_by(&self, watchers: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.watchers.load(Ordering::Relaxed) != watchers as i64 {
            assert!(Instant::now() < deadline, "{} watch", self.watchers.load(Ordering::Relaxed));
            std::thread::yield_now();
        }
    }
}

struct Shows(Arc<Shown>);

impl Source for Shows {
    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }
    fn feed(&self) -> &Feed {
        &self.0.feed
    }
    fn metrics(&self) -> String {
        String::new()
    }
    fn watchers(&self, more: i64) {
        self.0.watchers.fetch_add(more, Ordering::Relaxed);
    }
    fn sign(&self, sign: Sign) -> Result<(), Unheld> {
        if self.0.full.load(Ordering::Relaxed) {
            return Err(Unheld::Busy);
        }
        self.0.signs.lock().unwrap().push(sign);
        Ok(())
    }
    fn watcher_cut(&self) {
        self.0.cut.fetch_add(1, Ordering::Relaxed);
    }
}

/// A process that leads in epoch 1, and its status port.
pub fn serve(limits: Limits, watchers_max: usize) -> (Server, Arc<Shown>) {
    let me = Peer {
        id: ProcessId(Uuid::from_u128(1)),
        incarnation: Incarnation(7),
        name: "web-0".to_owned(),
        address: (Ipv4Addr::LOCALHOST, 4041).into(),
        priority: Priority::DEFAULT,
        revision: String::new(),
    };
    let status = Status {
        cluster: "test".to_owned(),
        me: me.clone(),
        role: Role::Leading,
        epoch: Epoch(1),
        leader: Some(Incumbent { peer: me, elected_at_ms: 0 }),
        members: Vec::new(),
        valid_until: None,
        voting: None,
        cut_off: false,
        holds: 0,
        candidacy: Candidacy::default(),
        answer_ttl: Duration::from_secs(3600),
        lease: None,
        worst_delay: None,
        lease_reason: None,
    };
    let shown = Arc::new(Shown {
        status: Mutex::new(status),
        feed: Feed::new(Incarnation(7)),
        watchers: AtomicI64::new(0),
        cut: AtomicI64::new(0),
        signs: Mutex::default(),
        full: AtomicBool::new(false),
        held_up_ms: AtomicU64::new(0),
    });
    let listener = net::listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let room = Room { budget: Budget::new(8 << 20), watchers_max };
    let server = http::start_with(listener, Shows(Arc::clone(&shown)), limits, room).unwrap();
    (server, shown)
}
