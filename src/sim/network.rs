//! The network as data: both ends of each connection between processes, and the way from each place to each
//! other one.

use super::clock::Ns;
use super::link_faults::{LinkFaults, Table};
use super::node::NodeInstance;
use crate::election::Message;
use core::net::SocketAddr;

/// One process's end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// Which incarnation it is connected with.
    pub(super) start: u32,
    /// Which connection it is; both ends have the same number.
    pub(super) link: u64,
    pub(super) address: SocketAddr,
    pub(super) used: Ns,
}

/// All connections; the first index is the place whose end or way it is.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) ends: Table<Option<End>>,
    /// Which incarnation of each peer the driver takes messages from.
    pub(super) connections: Table<Option<u32>>,
    pub(super) faults: Table<LinkFaults>,
    pub(super) fifo: Table<Ns>,
    /// How many connections there have been.
    pub(super) links: u64,
    pub(super) held: Table<Vec<(NodeInstance, NodeInstance, Message)>>,
    /// The span of silence that an end is in, and whether it is in one.
    pub(super) silence: Table<(u32, bool)>,
    pub(super) delay: Ns,
    pub(super) jitter: Ns,
    pub(super) link_timeout: Ns,
}

impl Network {
    pub(super) fn new(places: usize, delay: Ns, jitter: Ns, link_timeout: Ns) -> Network {
        Network {
            ends: Table::new(places),
            connections: Table::new(places),
            faults: Table::new(places),
            fifo: Table::new(places),
            links: 0,
            held: Table::new(places),
            silence: Table::new(places),
            delay,
            jitter,
            link_timeout,
        }
    }

    /// Which incarnation of a peer a process holds a connection with.
    pub(super) fn connected_with(&self, place: usize, other: usize) -> Option<u32> {
        self.ends[place][other].map(|end| end.start)
    }

    /// The number of the connection that a process has with another; 0 if there is none.
    pub(super) fn link(&self, place: usize, other: usize) -> u64 {
        self.ends[place][other].map_or(0, |end| end.link)
    }
}
