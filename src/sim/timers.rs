//! The timers and pauses of the simulated processes, on their own clocks.

use super::clock::{MS, Ns};
use super::node::NodeInstance;
use super::queue::Item;
use super::world::World;
use crate::election::{Event, Timer};

impl World {
    /// Counted from the beginning of the turn.
    pub(super) fn arm(&mut self, place: usize, timer: Timer, after: Ns) {
        let process = &mut self.nodes[place];
        let due = process.fed() + after;
        process.timers[timer as usize] = Some(due);
        let at = process.when(self.now, due);
        self.queue.put(at, Item::Timer(process.instance(), timer));
    }

    pub(super) fn timer_due(&mut self, instance: NodeInstance, timer: Timer) {
        let process = &mut self.nodes[instance.place];
        let due = process.timers[timer as usize];
        if process.runs_as(instance)
            && !process.held_up()
            && due.is_some_and(|due| process.is_due(self.now, due))
        {
            process.timers[timer as usize] = None;
            self.feed(instance.place, Event::Timer(timer));
        }
    }

    /// Timers run on a clock that has changed.
    pub(super) fn rearm(&mut self, place: usize) {
        let process = &self.nodes[place];
        for timer in Timer::ALL {
            if let Some(due) = process.timers[timer as usize] {
                let at = process.when(self.now, due);
                self.queue.put(at, Item::Timer(process.instance(), timer));
            }
        }
    }

    pub(super) fn turn_due(&mut self, instance: NodeInstance) {
        let process = &self.nodes[instance.place];
        if !process.runs_as(instance) {
            return;
        }
        let every = super::clock::ns(process.settings.turn_every());
        let due = process.fed() + every;
        if process.is_due(self.now, due) && !process.held_up() {
            self.feed(instance.place, Event::Turn);
            return self.queue.put(self.now + every, Item::Turn(instance));
        }
        let at = process.when(self.now, due).max(self.now + MS);
        self.queue.put(at, Item::Turn(instance));
    }

    /// A pause or a slow step is over: first what has waited longest is done, then what came in, then the
    /// timers.
    pub(super) fn resume(&mut self, instance: NodeInstance) {
        let process = &mut self.nodes[instance.place];
        if !process.runs_as(instance) || process.paused_until > self.now {
            return;
        }
        process.paused_until = 0;
        match process.busy.take() {
            Some(busy) if busy.until > self.now => {
                process.busy = Some(busy);
                return;
            }
            Some(busy) => self.finish(instance.place, busy),
            None => {}
        }
        while self.nodes[instance.place].runs_as(instance) && !self.nodes[instance.place].held_up() {
            let Some(input) = self.nodes[instance.place].inbox.pop_front() else { break };
            self.take(instance.place, input);
        }
        let mut armed: Vec<(Ns, Timer)> = Timer::ALL
            .into_iter()
            .filter_map(|t| Some((self.nodes[instance.place].timers[t as usize]?, t)))
            .collect();
        armed.sort_by_key(|(due, _)| *due);
        for (_, timer) in armed {
            self.timer_due(instance, timer);
        }
        self.seek(instance.place);
    }
}
