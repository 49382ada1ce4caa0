//! A cluster under attack: what attackers know of it, what is watched meanwhile, and what has to hold once
//! they are gone.

use crate::client::{Claim, home_port};
use crate::harness::{Real, processes, voters};
use crate::history::{Violation, dual, violations};
use crate::rounds::{PATIENCE, acquainted, is_ready};
use crate::sampler::{Place, Samplers, TIMEOUT};
use crate::usage::Usage;
use crate::wait::within;
use crate::wire::{Peer, bye};
use bellwether::demo::process_cluster::{Agreement, Sighting};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// `--lease` and `--answer-timeout` of all processes here.
pub const LEASE: Duration = Duration::from_millis(1000);
const ANSWER_TIMEOUT: Duration = Duration::from_millis(200);
/// What a row does not choose otherwise. Leases are fixed: processes without optimisations share two cores
/// with their attackers here. How short leases may be on a busy machine is what `cargo bench --bench
/// flapping` shows.
const FLAGS: [(&str, &str); 9] = [
    ("--lease-mode", "fixed"),
    ("--lease", "1000ms"),
    ("--heartbeat", "200ms"),
    ("--answer-timeout", "200ms"),
    ("--coordinator-timeout", "600ms"),
    ("--stable-margin", "100ms"),
    ("--refresh", "300ms"),
    ("--forget-after", "1s"),
    ("--preempt", "never"),
];
/// How long a cluster may take to agree once the attackers are gone: silence, and a few rounds.
pub const RECOVERY: Duration = Duration::from_secs(5);
/// What a busy machine adds to that and to a failover, in times of the slowest answer to a sampler. That
/// counts as its [`TIMEOUT`] at most.
const ANSWERS: u32 = 50;
/// What processes without optimisations add to a failover.
const SLACK: Duration = Duration::from_millis(1500);
/// For how long two may lead in `classic`, and the slowest answer besides: as long as an announcement is on
/// its way.
const CLASSIC_DUAL_MAX: Duration = Duration::from_millis(100);
/// How many lines of its log a failed test shows of each process.
const LOG_LINES: usize = 60;
/// Between two questions to one process.
const ASK_EVERY: Duration = Duration::from_millis(2);
/// Between two attempts of an attacker that is turned away.
const PACE: Duration = Duration::from_millis(5);
/// Above the milliseconds since 1970, the epochs that no process has to believe begin here.
pub const EPOCHS_ABOVE_CLOCK: u64 = 1 << 32;

/// Milliseconds since 1970.
pub fn clock_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// `--safety` of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    Classic,
    Majority,
}

/// Tells attackers to hang up.
#[derive(Default)]
pub struct Stop(AtomicBool);

impl Stop {
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct StopAtEnd<'a>(&'a Stop);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// What one attacker does, again and again, on a thread of its own.
pub type Attacker<'a> = Box<dyn Fn(&Stop) + Send + Sync + 'a>;

/// Asks each process, from now on, whether it leads.
fn samplers(real: &Real) -> Samplers {
    let places = (0..real.n()).map(|place| {
        let http = SocketAddr::from((Ipv4Addr::LOCALHOST, real.ports(place).http));
        Place { http, enter: Box::new(|| {}), pause: ASK_EVERY }
    });
    Samplers::start(places.collect())
}

/// A cluster that agreed on a leader before it was attacked. All are honest in it.
pub struct Siege {
    pub level: Level,
    pub real: Real,
    /// Its leader before the attack.
    pub before: Agreement,
    /// What each process says of itself in a handshake, by place.
    pub victims: Vec<Peer>,
    samplers: Samplers,
    config: Value,
    leaderless: Vec<f64>,
    resident_kib: Vec<u64>,
    states: TempDir,
    secret: Option<TempDir>,
}

impl Siege {
    /// A cluster of `n` with these flags more. Each process has a state folder in either level.
    pub fn begin(level: Level, n: usize, more: &[&str]) -> Siege {
        let mut siege = Siege::planned(level, n, more);
        siege.start_all();
        siege
    }

    /// The same with a secret that no attacker holds.
    pub fn sealed(level: Level, n: usize) -> Siege {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "k7Jt0vV9w2QmYx4cZr8sLp1nBf6hDg3e\n").unwrap();
        let mut siege = Siege::planned(level, n, &["--peer-secret-file", file.to_str().unwrap()]);
        siege.secret = Some(folder);
        siege.start_all();
        siege
    }

    /// The same before its first start.
    pub fn planned(level: Level, n: usize, more: &[&str]) -> Siege {
        let usual = FLAGS.into_iter().filter(|(flag, _)| !more.contains(flag));
        let usual = usual.flat_map(|(flag, value)| [flag, value]);
        let flags: Vec<&str> = usual.chain(more.iter().copied()).collect();
        let real = if level == Level::Majority { voters(n, &flags) } else { processes(n, &flags) };
        let samplers = samplers(&real);
        let before = Agreement { leader: 0, epoch: 0, since: Instant::now() };
        let states = tempfile::tempdir().unwrap();
        Siege {
            level,
            real,
            before,
            victims: Vec::new(),
            samplers,
            config: Value::Null,
            leaderless: Vec::new(),
            resident_kib: Vec::new(),
            states,
            secret: None,
        }
    }

    fn start_all(&mut self) {
        (0..self.real.n()).for_each(|place| self.start(place));
        self.settled();
    }

    /// Waits until all agree and are ready; takes down what must not change.
    pub fn settled(&mut self) {
        self.real.agree(0, PATIENCE).unwrap();
        acquainted(&self.real).unwrap();
        self.ready();
        self.before = self.real.agree(0, PATIENCE).unwrap();
        self.config = self.voters(self.before.leader);
        self.leaderless = (0..self.real.n()).map(|place| self.leaderless(place)).collect();
        self.resident_kib = self.usages().iter().map(|usage| usage.resident_kib).collect();
        self.victims = (0..self.real.n()).map(|place| self.scout(place)).collect();
    }

    /// Waits until the process of the highest rank leads, as `--preempt always` wants it. A first start may
    /// elect another one, and a transfer to a voter in its restart grace is tried again only later.
    pub fn led_by_the_best(&mut self) {
        // All have the same priority, and then the greatest id ranks highest.
        let best = (0..self.real.n()).max_by_key(|place| self.victims[*place].id);
        let led = within(PATIENCE, || (Some(self.agreed().leader) == best).then_some(()));
        assert!(led.is_some(), "the process of the highest rank does not lead");
        self.settled();
    }

    /// What a process says of itself to any stranger. With a secret it says nothing, and strangers have what
    /// its status port says.
    fn scout(&self, place: usize) -> Peer {
        if self.secret.is_some() {
            let members = self.members(place);
            let me =
                members["members"].as_array().unwrap().iter().find(|member| member["me"] == true).unwrap();
            let id: uuid::Uuid = me["id"].as_str().unwrap().parse().unwrap();
            let name = me["name"].as_str().unwrap().to_owned();
            let address = self.address(place);
            return Peer { id: id.as_u128(), name, address, ..self.stranger(0).peer };
        }
        let stranger = self.stranger(900 + place as u16);
        let scout = Claim { peer: Peer { priority: 0, ..stranger.peer.clone() }, ..stranger };
        let mut link = scout.link(self.address(place)).expect("no stranger gets in");
        link.send(&bye());
        link.answered.clone()
    }

    /// Waits until each process that runs is ready.
    pub fn ready(&self) {
        let ready = |place| within(PATIENCE, || is_ready(&self.real, place).then_some(())).is_some();
        assert!(self.real.running().into_iter().all(ready), "not all are ready");
    }

    /// What all that run agree on, soon.
    pub fn agreed(&self) -> Agreement {
        self.real.agree(0, self.recovery()).unwrap_or_else(|late| panic!("{late}\n{}", self.told()))
    }

    /// What each process that runs says of the members, and the end of its log: why they do not agree.
    fn told(&self) -> String {
        let told = |place: usize| {
            let (_, members) = self.real.answer(place, "/members");
            let log = self.real.log(place);
            let before = log.lines().count().saturating_sub(LOG_LINES);
            let last: Vec<&str> = log.lines().skip(before).collect();
            format!("{} has {members}\n{}", self.real.name(place), last.join("\n"))
        };
        self.real.running().into_iter().map(told).collect::<Vec<_>>().join("\n")
    }

    /// Waits until these places name one leader, which leads itself and is not at `but`. Their epochs may
    /// differ. Returns its place.
    pub fn led(&self, places: &[usize], but: Option<usize>) -> usize {
        let led = |sightings: &[Sighting]| {
            let named = |place: &usize| Some(&sightings[*place].answer.as_ref()?.leader.as_ref()?.name);
            let names: BTreeSet<_> = places.iter().map(named).collect();
            let leads = |place: &usize| {
                let itself = sightings[*place].answer.as_ref().is_some_and(|answer| answer.is_leader);
                itself && names.iter().eq([&Some(&self.real.name(*place))])
            };
            places.iter().copied().find(leads).filter(|place| Some(*place) != but)
        };
        self.real.until("one leader that all name", 2 * self.usual(), led).unwrap()
    }

    /// The peer port of a place.
    pub fn address(&self, place: usize) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.real.ports(place).peer))
    }

    /// The status port of a place.
    pub fn http(&self, place: usize) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.real.ports(place).http))
    }

    /// The places of all that did not lead before the attack.
    pub fn followers(&self) -> Vec<usize> {
        (0..self.real.n()).filter(|place| *place != self.before.leader).collect()
    }

    /// A process that does not belong to the cluster, with an address of its own. Only its word says that it
    /// belongs.
    pub fn stranger(&self, number: u16) -> Claim {
        let [high, low] = number.to_be_bytes();
        let source = Ipv4Addr::new(127, 1, high, low);
        Claim {
            cluster: self.real.cluster().to_owned(),
            safety: u8::from(self.level == Level::Majority),
            peer: Peer {
                id: fastrand::u128(..),
                incarnation: fastrand::u64(..),
                name: format!("stranger-{number}"),
                address: (source, home_port()).into(),
                priority: 100,
                revision: String::new(),
            },
            source,
        }
    }

    /// A stranger under the id, the incarnation, the name and the address of a member.
    pub fn impostor(&self, place: usize) -> Claim {
        Claim { peer: self.victims[place].clone(), ..self.stranger(66) }
    }

    /// Attacks, while `body` does what honest processes and operators do.
    pub fn during<T>(&mut self, attackers: Vec<Attacker<'_>>, body: impl FnOnce(&mut Siege) -> T) -> T {
        let result = self.besieged(&attackers, body);
        self.never_two();
        result
    }

    /// Attacks for so long.
    pub fn attack(&mut self, lasting: Duration, attackers: Vec<Attacker<'_>>) {
        self.during(attackers, |_| std::thread::sleep(lasting));
    }

    /// Attacks with all that two cores can carry, while `body` runs. In `classic` a process that gets no
    /// processor time for a lease may be replaced before it knows, and what the attackers have left in queues
    /// takes processor time until all agree again.
    pub fn flood<T>(&mut self, attackers: Vec<Attacker<'_>>, body: impl FnOnce(&mut Siege) -> T) -> T {
        let result = self.besieged(&attackers, body);
        match self.level {
            Level::Classic => {
                self.agreed();
                self.no_epoch_went_back();
                self.samplers = samplers(&self.real);
            }
            Level::Majority => self.never_two(),
        }
        result
    }

    fn besieged<T>(&mut self, attackers: &[Attacker<'_>], body: impl FnOnce(&mut Siege) -> T) -> T {
        let stop = Stop::default();
        let result = std::thread::scope(|scope| {
            let _stop = StopAtEnd(&stop);
            for attacker in attackers {
                scope.spawn(|| {
                    while !stop.is_over() {
                        attacker(&stop);
                        std::thread::sleep(PACE);
                    }
                });
            }
            body(self)
        });
        self.none_ended();
        result
    }

    /// Starts the process of a place. In `classic` it waits for all others before its first election.
    pub fn start(&mut self, place: usize) {
        let all = self.real.n().to_string();
        self.start_with(place, &["--expect", &all]);
    }

    /// Starts the process of a place with these flags more.
    pub fn start_with(&mut self, place: usize, flags: &[&str]) {
        self.samplers.watched(place).life.lock().unwrap().life += 1;
        let state = self.state(place);
        let folder: &[&str] = match self.level {
            Level::Classic => &["--state-dir", state.to_str().unwrap()],
            Level::Majority => &[],
        };
        std::fs::create_dir_all(&state).unwrap();
        self.real.start(place, &[folder, flags].concat()).unwrap();
    }

    /// The state folder of a place.
    pub fn state(&self, place: usize) -> PathBuf {
        match self.level {
            Level::Classic => self.states.path().join(self.real.name(place)),
            Level::Majority => self.real.state(place),
        }
    }

    /// Kills the process of a place.
    pub fn kill(&mut self, place: usize) {
        self.real.kill(place);
        self.real.end(place);
    }

    /// Takes away what a process that has ended kept.
    pub fn empty(&mut self, place: usize) {
        self.samplers.watched(place).life.lock().unwrap().folder += 1;
        std::fs::remove_dir_all(self.state(place)).unwrap();
    }

    /// Ends the process of a place as an operator does.
    pub fn stop(&mut self, place: usize) {
        self.real.signal(place, Signal::TERM);
        self.real.end(place);
    }

    /// The configuration of voters that a process stores; null in `classic`.
    pub fn voters(&self, place: usize) -> Value {
        let mut voters = self.members(place)["voters"].clone();
        if let Value::Object(fields) = &mut voters {
            // These rise with each election.
            fields.retain(|name, _| !["epoch", "version"].contains(&name.as_str()));
        }
        voters
    }

    fn members(&self, place: usize) -> Value {
        let (_, body) = self.real.answer(place, "/members");
        serde_json::from_str(&body).unwrap()
    }

    /// The names of the members that a process lists.
    pub fn listed(&self, place: usize) -> BTreeSet<String> {
        let members = self.members(place);
        let members = members["members"].as_array().into_iter().flatten();
        members.map(|member| member["name"].as_str().unwrap().to_owned()).collect()
    }

    /// No process has ended by itself.
    pub fn none_ended(&mut self) {
        for place in self.real.running() {
            if let Ok(status) = self.real.wait(place, Duration::ZERO) {
                panic!("{} has ended: {status}", self.real.name(place));
            }
        }
    }

    /// No two have led at one instant, and no epoch has gone back.
    pub fn never_two(&self) {
        if self.level == Level::Classic {
            let dual = self.dual();
            assert!(
                dual <= CLASSIC_DUAL_MAX + self.slowest_answer(),
                "two answered for {dual:?} that they lead"
            );
            return self.no_epoch_went_back();
        }
        let found = violations(&self.samplers.observers());
        // A stranger may be named by a process that follows it; that is another finding.
        let found = found.iter().find(|v| !matches!(v, Violation::Shared { .. }));
        assert!(found.is_none(), "{}", found.unwrap());
    }

    /// For how long two have answered at most that they lead.
    pub fn dual(&self) -> Duration {
        Duration::from_nanos(dual(&self.samplers.observers()).longest)
    }

    fn no_epoch_went_back(&self) {
        let observers = self.samplers.observers();
        let back = observers.iter().flat_map(|o| o.own_violations()).next();
        assert!(back.is_none(), "{}", back.unwrap());
    }

    /// The attack has changed nothing: the same leader leads in the same epoch, and no process was without
    /// it.
    pub fn undisturbed(&self) {
        let now = self.agreed();
        let led = |at: &Agreement| format!("{} in epoch {}", self.real.name(at.leader), at.epoch);
        assert_eq!(led(&now), led(&self.before), "an attack has changed the leader");
        for (place, before) in self.leaderless.iter().enumerate() {
            let more = self.leaderless(place) - before;
            assert!(more == 0.0, "{} knew no leader for {more} s", self.real.name(place));
        }
    }

    /// For how many seconds a process has known no leader.
    fn leaderless(&self, place: usize) -> f64 {
        self.real.metric(place, "bellwether_leaderless_seconds_total").unwrap()
    }

    /// The attackers have hung up. What has to hold now: one leader, the voters as they were, epochs that
    /// leave room, another leader as soon as this one dies, and all of it once more after a full restart.
    pub fn lift(mut self) {
        let all: Vec<usize> = (0..self.real.n()).collect();
        let now = self.agreed();
        self.unchanged(&now);
        let others: Vec<usize> = all.iter().copied().filter(|place| *place != now.leader).collect();
        let at = self.real.kill(now.leader);
        let next = self.real.agree_among(&others, now.epoch, PATIENCE).unwrap();
        let took = next.since.saturating_duration_since(at);
        assert!(took <= self.usual(), "after the attack, another leader took {took:?}");
        others.iter().for_each(|place| _ = self.real.kill(*place));
        all.iter().for_each(|place| _ = self.real.end(*place));
        all.iter().for_each(|place| self.start(*place));
        let last = self.real.agree(next.epoch - 1, self.recovery()).unwrap();
        self.unchanged(&last);
        let honest: BTreeSet<String> = all.iter().map(|place| self.real.name(*place)).collect();
        let listed = || all.iter().map(|place| self.listed(*place));
        let only_honest = within(self.recovery(), || listed().all(|names| names == honest).then_some(()));
        assert!(only_honest.is_some(), "after a restart, members are {:?}", listed().collect::<Vec<_>>());
        self.none_ended();
        self.never_two();
    }

    /// How long a failover takes at most without an attack.
    pub fn usual(&self) -> Duration {
        let lease = match self.level {
            Level::Classic => Duration::ZERO,
            Level::Majority => LEASE + 2 * ANSWER_TIMEOUT,
        };
        lease + SLACK + ANSWERS * self.slowest_answer()
    }

    /// How long agreement takes at most after an attack.
    pub fn recovery(&self) -> Duration {
        RECOVERY + ANSWERS * self.slowest_answer()
    }

    /// How busy the machine was. A sampler that is woken late takes an answer for slower than it may be.
    fn slowest_answer(&self) -> Duration {
        let observers = self.samplers.observers();
        let slowest = observers.iter().map(|observer| observer.slowest).max().unwrap_or_default();
        Duration::from_nanos(slowest).min(TIMEOUT)
    }

    fn unchanged(&self, now: &Agreement) {
        assert!(now.epoch <= clock_ms() + EPOCHS_ABOVE_CLOCK + 1_000, "the epoch is {}", now.epoch);
        for place in self.real.running() {
            let same = within(self.recovery(), || (self.voters(place) == self.config).then_some(()));
            let (name, seen) = (self.real.name(place), self.voters(place));
            assert!(same.is_some(), "{name} stores {seen}, and the voters were {}", self.config);
        }
    }

    /// By how much the memory of a process has grown at its peak, of the process that has grown the most.
    /// Only for processes that have not been restarted.
    pub fn resident_more_kib(&self) -> u64 {
        let peaks = self.usages().into_iter().map(|usage| usage.resident_peak_kib);
        peaks.zip(&self.resident_kib).map(|(peak, before)| peak.saturating_sub(*before)).max().unwrap()
    }

    fn usages(&self) -> Vec<Usage> {
        let pids = (0..self.real.n()).map(|place| self.real.pid(place).unwrap());
        pids.map(|pid| Usage::of(pid).unwrap()).collect()
    }
}
