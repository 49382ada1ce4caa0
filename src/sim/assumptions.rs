//! What `--safety majority` assumes of its operator, and so no fault breaks. Not too many records are lost at
//! a time. A changed `--voters` names a process that knows the former voters.

use super::fault::Kind;
use super::node::Node;
use super::world::World;
use crate::election::Safety;
use std::collections::BTreeSet;

impl World {
    /// Whether the promise covers the loss of this record. Fewer than half of the voters may be without one
    /// then, also of the fewest that there will be in this run. The others have to be a majority for it to
    /// recover. A voter that is founding counts as one with a record: another may vote on its word. Of every
    /// list of voters that a process was started with, one voter keeps its record. Where none does, those
    /// named cannot tell what they do from a first start.
    pub(super) fn may_lose_disk(&self, place: usize) -> bool {
        let voters = |p: &Node| p.disk.record.as_ref()?.vote.as_ref().map(|vote| vote.config.voters.len());
        if !self.plan.majority() || voters(&self.nodes[place]).is_none() {
            return true;
        }
        let started = || self.nodes.iter().filter(|p| p.starts > 0);
        // One that has not finished its first start has lost nothing.
        let fresh = |p: &Node| p.starts == 1 && p.runs() && self.plan.places[p.place].starts_at.is_some();
        let without = started().filter(|p| p.place == place || voters(p).is_none() && !fresh(p)).count();
        let planned = self.plan.faults.iter().filter_map(|fault| match fault.kind {
            Kind::Revote { voters, .. } => Some(voters.count_ones() as usize),
            _ => None,
        });
        let enough =
            started().filter_map(voters).chain(planned).min().is_some_and(|fewest| 2 * without < fewest);
        let named = |p: &Node| match &p.settings.safety {
            Safety::Majority { voters } => self.known_to(voters, Some(place)),
            Safety::Classic => true,
        };
        enough && started().all(named)
    }

    /// Whether one of these voters has a record that names voters, but for one place that may lose its own.
    pub(super) fn known_to(&self, voters: &BTreeSet<String>, but: Option<usize>) -> bool {
        let knows = |p: &&Node| p.disk.record.as_ref().is_some_and(|record| record.vote.is_some());
        self.nodes.iter().filter(knows).any(|p| Some(p.place) != but && voters.contains(&p.name))
    }
}
