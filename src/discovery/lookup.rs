//! A look-up: every name asked once, and what came of it together with what was known before.

use super::{DiscoverySettings, Family, Resolution};
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet};

/// The most addresses that a look-up reports. Of more, those given as addresses come first, then those of the
/// lowest order; the rest is left out, and the log says so.
pub const CANDIDATES_MAX: usize = 1024;

/// The outcome of one look-up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lookup {
    /// The outcome as a whole.
    pub result: LookupResult,
    /// Whether every name answered with addresses, so that nothing in `result` is kept from an earlier
    /// look-up.
    pub complete: bool,
    /// How many addresses were left out to hold [`CANDIDATES_MAX`].
    pub left_out: usize,
    /// What each name answered, ordered by name. Empty in the report that comes before the first question.
    pub names: Vec<NameAnswer>,
    /// What is wrong while this is the latest look-up, for people; none: nothing is, or not for long enough.
    pub warning: Option<String>,
}

/// What a look-up says about where peers may be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LookupResult {
    /// All addresses where peers may be; at least one. A name, or one address family of it, that did not
    /// answer with addresses this time stands here for what it last stood for. So an address that is missing
    /// here is missing from a good answer. The set is always the whole list.
    Found(BTreeSet<SocketAddr>),
    /// The name servers say that no address is published.
    Empty,
    /// No name server gave an answer.
    Unknown {
        /// Why, for people.
        reason: String,
    },
}

impl LookupResult {
    /// Its name as a metric's label.
    pub fn name(&self) -> &'static str {
        match self {
            LookupResult::Found(_) => "found",
            LookupResult::Empty => "empty",
            LookupResult::Unknown { .. } => "unknown",
        }
    }
}

/// What one name answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NameAnswer {
    /// The name as it was asked for.
    pub name: String,
    /// To the question for A records.
    pub v4: Resolution,
    /// To the question for AAAA records.
    pub v6: Resolution,
}

impl NameAnswer {
    /// The first reason why a question could not be answered, with the record type asked for.
    pub fn unknown(&self) -> Option<(Family, &str)> {
        match (&self.v4, &self.v6) {
            (Resolution::Unknown(reason), _) => Some((Family::V4, reason)),
            (_, Resolution::Unknown(reason)) => Some((Family::V6, reason)),
            _ => None,
        }
    }

    /// Whether it stands for an address at all.
    pub fn found(&self) -> bool {
        matches!(self.v4, Resolution::Found(_)) || matches!(self.v6, Resolution::Found(_))
    }
}

/// Where to look, and what is remembered of earlier answers.
#[derive(Debug)]
pub(super) struct Sources {
    /// Given as addresses: no question to ask.
    literals: BTreeSet<SocketAddr>,
    names: BTreeMap<String, Name>,
}

#[derive(Debug, Default)]
struct Name {
    ports: BTreeSet<u16>,
    /// What it last stood for, with port 0. At most [`CANDIDATES_MAX`] each.
    v4: BTreeSet<SocketAddr>,
    v6: BTreeSet<SocketAddr>,
}

impl Sources {
    pub(super) fn new(settings: &DiscoverySettings) -> Sources {
        let mut sources = Sources { literals: BTreeSet::new(), names: BTreeMap::new() };
        let service = settings.service.iter().map(|name| (name, settings.peer_port));
        let peers = settings.peers.iter().map(|(host, port)| (host, *port));
        for (host, port) in service.chain(peers) {
            match literal(host) {
                Some(address) => {
                    sources.literals.insert(SocketAddr::new(address, port));
                }
                None => {
                    let name = sources.names.entry(host.clone()).or_default();
                    name.ports.insert(port);
                }
            }
        }
        sources
    }

    /// What can be reported before the first question, if there is a question to wait for.
    pub(super) fn before_dns(&self) -> Option<Lookup> {
        let worth_it = !self.literals.is_empty() && !self.names.is_empty();
        worth_it.then(|| self.conclude(Vec::new(), false))
    }

    /// Asks for every name once.
    pub(super) fn look_up(&mut self, resolve: &mut impl FnMut(&str, Family) -> Resolution) -> Lookup {
        let mut complete = true;
        let mut answers = Vec::with_capacity(self.names.len());
        for (name, known) in &mut self.names {
            let answer = NameAnswer {
                name: name.clone(),
                v4: resolve(name, Family::V4),
                v6: resolve(name, Family::V6),
            };
            complete &= known.learn(&answer);
            answers.push(answer);
        }
        self.conclude(answers, complete)
    }

    fn conclude(&self, names: Vec<NameAnswer>, complete: bool) -> Lookup {
        let mut left_out = 0;
        let result = if !self.literals.is_empty() || names.iter().any(NameAnswer::found) {
            let (addresses, rest) = self.addresses();
            left_out = rest;
            LookupResult::Found(addresses)
        } else {
            match names.iter().find_map(|name| Some((&name.name, name.unknown()?))) {
                None => LookupResult::Empty,
                Some((name, (family, reason))) => {
                    LookupResult::Unknown { reason: format!("{name} ({}): {reason}", family.record()) }
                }
            }
        };
        Lookup { result, complete, left_out, names, warning: None }
    }

    /// The addresses, and how many were left out.
    fn addresses(&self) -> (BTreeSet<SocketAddr>, usize) {
        let mut named: BTreeSet<SocketAddr> = self.names.values().flat_map(Name::addresses).collect();
        named.retain(|address| !self.literals.contains(address));
        let total = self.literals.len() + named.len();
        let all = self.literals.iter().chain(&named).copied();
        let kept: BTreeSet<SocketAddr> = all.take(CANDIDATES_MAX).collect();
        let left_out = total - kept.len();
        (kept, left_out)
    }
}

impl Name {
    /// Takes over what a good answer says, and returns whether the answer was one to both questions. "No such
    /// addresses" for one family is a good answer only beside addresses of the other. A name without any
    /// address removes no candidate, since a pod that asks is itself published under its Service's name.
    fn learn(&mut self, answer: &NameAnswer) -> bool {
        let mut complete = answer.found();
        for (fresh, known) in [(&answer.v4, &mut self.v4), (&answer.v6, &mut self.v6)] {
            match fresh {
                Resolution::Found(addresses) => {
                    *known = addresses.iter().take(CANDIDATES_MAX).copied().collect();
                }
                Resolution::Empty if answer.found() => known.clear(),
                Resolution::Empty => {}
                Resolution::Unknown(_) => complete = false,
            }
        }
        complete
    }

    fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let hosts = self.v4.iter().chain(&self.v6);
        hosts.flat_map(|host| self.ports.iter().map(|port| with_port(*host, *port)))
    }
}

/// Keeps what else belongs to an address (the scope of an IPv6 one).
fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

/// An IP address written as such, in brackets or not.
fn literal(host: &str) -> Option<IpAddr> {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(host).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::time::Duration;

    const SERVICE: &str = "app.ns.svc.";

    fn sources(service: Option<&str>, peers: &[(&str, u16)]) -> Sources {
        Sources::new(&DiscoverySettings {
            service: service.map(str::to_owned),
            peers: peers.iter().map(|(host, port)| (host.to_string(), *port)).collect(),
            peer_port: 4041,
            refresh: Duration::from_secs(5),
            refresh_hurried: Duration::from_secs(1),
        })
    }

    fn found(ips: &[&str]) -> Resolution {
        Resolution::Found(ips.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), 0)).collect())
    }

    fn again() -> Resolution {
        Resolution::Unknown("try again".into())
    }

    fn set(addresses: &[&str]) -> LookupResult {
        LookupResult::Found(addresses.iter().map(|address| address.parse().unwrap()).collect())
    }

    /// Looks up with the same two answers for every name.
    fn look(sources: &mut Sources, v4: &Resolution, v6: &Resolution) -> Lookup {
        sources.look_up(&mut |_: &str, family| match family {
            Family::V4 => v4.clone(),
            Family::V6 => v6.clone(),
        })
    }

    #[test]
    fn merges_both_families() {
        let mut sources = sources(Some(SERVICE), &[]);
        let lookup = look(&mut sources, &found(&["198.18.0.1"]), &found(&["fd00::1"]));
        assert_eq!(lookup.result, set(&["198.18.0.1:4041", "[fd00::1]:4041"]));
        assert!(lookup.complete);
    }

    #[test]
    fn one_family_alone_is_a_complete_answer() {
        let mut sources = sources(Some(SERVICE), &[]);
        let lookup = look(&mut sources, &found(&["198.18.0.1"]), &Resolution::Empty);
        assert_eq!(lookup.result, set(&["198.18.0.1:4041"]));
        assert!(lookup.complete);
        let lookup = look(&mut sources, &Resolution::Empty, &found(&["fd00::1"]));
        assert_eq!(lookup.result, set(&["[fd00::1]:4041"]), "A records are gone, and that was said");
        assert!(lookup.complete);
    }

    #[test]
    fn keeps_empty_and_unknown_apart() {
        let mut sources = sources(Some(SERVICE), &[]);
        let lookup = look(&mut sources, &Resolution::Empty, &Resolution::Empty);
        assert_eq!((lookup.result, lookup.complete), (LookupResult::Empty, false));
        for (v4, v6, record) in
            [(again(), again(), "A"), (again(), Resolution::Empty, "A"), (Resolution::Empty, again(), "AAAA")]
        {
            let lookup = look(&mut sources, &v4, &v6);
            let reason = format!("{SERVICE} ({record}): try again");
            assert_eq!(lookup.result, LookupResult::Unknown { reason });
            assert!(!lookup.complete);
        }
    }

    #[test]
    fn a_family_that_cannot_be_asked_keeps_what_it_had() {
        let mut sources = sources(Some(SERVICE), &[]);
        look(&mut sources, &found(&["198.18.0.1", "198.18.0.2"]), &found(&["fd00::1"]));
        let lookup = look(&mut sources, &again(), &found(&["fd00::2"]));
        let kept = set(&["198.18.0.1:4041", "198.18.0.2:4041", "[fd00::2]:4041"]);
        assert_eq!((lookup.result, lookup.complete), (kept, false));
        let lookup = look(&mut sources, &found(&["198.18.0.3"]), &again());
        let kept = set(&["198.18.0.3:4041", "[fd00::2]:4041"]);
        assert_eq!((lookup.result, lookup.complete), (kept, false));
    }

    #[test]
    fn a_name_that_is_empty_or_unknown_keeps_what_it_had() {
        let mut sources = sources(Some(SERVICE), &[("198.18.9.9", 7000)]);
        look(&mut sources, &found(&["198.18.0.1"]), &found(&["fd00::1"]));
        let all = set(&["198.18.0.1:4041", "[fd00::1]:4041", "198.18.9.9:7000"]);
        for (v4, v6) in [
            (Resolution::Empty, Resolution::Empty),
            (again(), Resolution::Empty),
            (Resolution::Empty, again()),
            (again(), again()),
        ] {
            let lookup = look(&mut sources, &v4, &v6);
            assert_eq!((lookup.result, lookup.complete), (all.clone(), false), "{v4:?} {v6:?}");
        }
        let lookup = look(&mut sources, &found(&["198.18.0.2"]), &Resolution::Empty);
        let fresh = set(&["198.18.0.2:4041", "198.18.9.9:7000"]);
        assert_eq!((lookup.result, lookup.complete), (fresh, true));
    }

    #[test]
    fn addresses_given_as_such_need_no_question() {
        let peers = [("198.18.0.1", 1), ("fd00::1", 2), ("[fd00::2]", 3), ("198.18.0.1", 1)];
        let mut sources = sources(None, &peers);
        let lookup = sources.look_up(&mut |name: &str, _| panic!("asked for {name}"));
        assert_eq!(lookup.result, set(&["198.18.0.1:1", "[fd00::1]:2", "[fd00::2]:3"]));
        assert!(lookup.complete);
        assert!(sources.before_dns().is_none(), "nothing to wait for");
    }

    #[test]
    fn addresses_given_as_such_do_not_wait_for_names() {
        let lookup = sources(Some(SERVICE), &[("198.18.0.1", 1)]).before_dns().unwrap();
        assert_eq!((lookup.result, lookup.complete), (set(&["198.18.0.1:1"]), false));
        assert!(sources(Some(SERVICE), &[]).before_dns().is_none());
    }

    #[test]
    fn asks_for_a_name_as_given_and_once_for_all_its_ports() {
        let peers = [("b", 1), ("b.", 2), ("b", 3)];
        let mut sources = sources(Some("b"), &peers);
        let mut asked = HashMap::new();
        let lookup = sources.look_up(&mut |name: &str, family| {
            *asked.entry((name.to_owned(), family.record())).or_insert(0) += 1;
            match (name, family) {
                ("b", Family::V4) => found(&["198.18.0.1"]),
                ("b.", Family::V4) => found(&["198.18.0.2"]),
                _ => Resolution::Empty,
            }
        });
        let wanted =
            ["b", "b."].iter().flat_map(|name| ["A", "AAAA"].map(|record| (name.to_string(), record)));
        assert_eq!(asked, wanted.map(|question| (question, 1)).collect());
        let all = ["198.18.0.1:1", "198.18.0.1:3", "198.18.0.1:4041", "198.18.0.2:2"];
        assert_eq!((lookup.result, lookup.complete), (set(&all), true));
    }

    #[test]
    fn one_name_of_several_that_answers_is_enough_for_found() {
        let mut sources = sources(None, &[("a", 1), ("b", 1), ("c", 1)]);
        let lookup = sources.look_up(&mut |name: &str, _| match name {
            "a" => again(),
            "b" => Resolution::Empty,
            _ => found(&["198.18.0.1"]),
        });
        assert_eq!((lookup.result, lookup.complete), (set(&["198.18.0.1:1"]), false));
    }

    #[test]
    fn leaves_out_what_exceeds_the_limit_always_the_same() {
        let many: BTreeSet<SocketAddr> =
            (0..3000u16).map(|n| SocketAddr::from(([198, 18, (n >> 8) as u8, n as u8], 0))).collect();
        let mut sources = sources(Some(SERVICE), &[("198.19.255.255", 1)]);
        let lookup = look(&mut sources, &Resolution::Found(many.clone()), &found(&["fd00::1"]));
        let LookupResult::Found(kept) = lookup.result else {
            panic!("{lookup:?}");
        };
        assert_eq!(kept.len(), CANDIDATES_MAX);
        assert!(kept.contains(&"198.19.255.255:1".parse().unwrap()), "given by hand comes first");
        let lowest = many.iter().take(CANDIDATES_MAX - 1).map(|address| with_port(*address, 4041));
        assert!(lowest.into_iter().all(|address| kept.contains(&address)));
        assert!(lookup.left_out > 0);
    }

    #[test]
    fn nowhere_to_look_is_empty() {
        let lookup = sources(None, &[]).look_up(&mut |_: &str, _| again());
        assert_eq!((lookup.result, lookup.complete), (LookupResult::Empty, true));
    }
}
