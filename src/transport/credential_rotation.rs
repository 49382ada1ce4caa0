//! After a change of credentials, links are made anew: one at a time, and the leader's last. The old link
//! goes when the new one stands, and stays where no new one can be made. Each side renews the links that it
//! has made with former credentials: the other side may have read its files before or after.

use crate::election::Moment;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// How long after a renewal the same address is tried again, if its link is still the old one.
const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Which renewal comes next.
#[derive(Debug, Default)]
pub(super) struct Renewal {
    under_way: Option<SocketAddr>,
    /// When an address may be tried again. It has no entry without a former link.
    not_before: BTreeMap<SocketAddr, Moment>,
}

/// A link of former credentials.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Former {
    /// Where the peer is dialled.
    pub(super) address: SocketAddr,
    /// Whether it leads to the leader.
    pub(super) to_leader: bool,
}

impl Renewal {
    /// The address to dial now, if one is due and no other renewal is under way.
    pub(super) fn next(&mut self, former: &[Former], now: Moment) -> Option<SocketAddr> {
        self.not_before.retain(|address, _| former.iter().any(|link| link.address == *address));
        if self.under_way.is_some() {
            return None;
        }
        let waits = |link: &&Former| self.not_before.get(&link.address).is_none_or(|then| *then <= now);
        // A leader's link waits for all others, also for those that have just failed.
        let others = former.iter().any(|link| !link.to_leader);
        let due = former.iter().filter(|link| !(link.to_leader && others)).find(waits)?;
        self.under_way = Some(due.address);
        Some(due.address)
    }

    /// A dial to this address is over.
    pub(super) fn dialled(&mut self, address: SocketAddr, now: Moment) {
        if self.under_way == Some(address) {
            self.under_way = None;
            self.not_before.insert(address, now.plus(AGAIN_AFTER));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(port: u16, to_leader: bool) -> Former {
        Former { address: SocketAddr::from(([127, 0, 0, 1], port)), to_leader }
    }

    fn at(ms: u64) -> Moment {
        Moment(Duration::from_millis(ms))
    }

    #[test]
    fn one_at_a_time_and_the_leaders_last() {
        let (one, two, leader) = (link(1, false), link(2, false), link(3, true));
        let mut renewal = Renewal::default();
        assert_eq!(renewal.next(&[leader, one, two], at(0)), Some(one.address));
        assert_eq!(renewal.next(&[leader, one, two], at(0)), None, "one at a time");
        renewal.dialled(two.address, at(0));
        assert_eq!(renewal.next(&[leader, one, two], at(0)), None, "that was another dial");
        renewal.dialled(one.address, at(0));
        assert_eq!(renewal.next(&[leader, two], at(0)), Some(two.address));
        renewal.dialled(two.address, at(0));
        assert_eq!(renewal.next(&[leader], at(0)), Some(leader.address));
        renewal.dialled(leader.address, at(0));
        assert_eq!(renewal.next(&[], at(0)), None);
        assert!(renewal.not_before.is_empty(), "nothing is kept of renewed links");
    }

    #[test]
    fn a_link_that_cannot_be_renewed_is_tried_again_and_holds_the_leaders_up() {
        let (one, two, leader) = (link(1, false), link(2, false), link(3, true));
        let mut renewal = Renewal::default();
        assert_eq!(renewal.next(&[one, two, leader], at(0)), Some(one.address));
        renewal.dialled(one.address, at(0));
        assert_eq!(renewal.next(&[one, two, leader], at(0)), Some(two.address), "the next in the meantime");
        renewal.dialled(two.address, at(0));
        assert_eq!(renewal.next(&[one, leader], at(1_999)), None);
        assert_eq!(renewal.next(&[one, leader], at(2_000)), Some(one.address));
    }
}
