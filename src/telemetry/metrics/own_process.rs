//! What the process itself uses: memory, descriptors, threads, processor time.

use prometheus::core::{Collector, Desc};
use prometheus::process_collector::ProcessCollector;
use prometheus::proto::{Counter, MetricFamily};
use rustix::time::{ClockId, clock_gettime};

const PROCESSOR_TIME: &str = "process_cpu_seconds_total";

/// The collector of the crate, with all of the processor time. The crate counts whole seconds, and a process
/// at rest uses one in a quarter of an hour.
pub(super) struct OwnProcess(ProcessCollector);

impl OwnProcess {
    pub(super) fn new() -> OwnProcess {
        OwnProcess(ProcessCollector::for_self())
    }
}

impl Collector for OwnProcess {
    fn desc(&self) -> Vec<&Desc> {
        self.0.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = self.0.collect();
        let used = clock_gettime(ClockId::ProcessCPUTime);
        let seconds = used.tv_sec as f64 + used.tv_nsec as f64 / 1e9;
        for family in families.iter_mut().filter(|family| family.name() == PROCESSOR_TIME) {
            for metric in family.mut_metric() {
                let mut counter = Counter::default();
                counter.set_value(seconds);
                metric.set_counter(counter);
            }
        }
        families
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_has_fractions_and_grows() {
        let own = OwnProcess::new();
        let used = || {
            let families = own.collect();
            let family = families.iter().find(|family| family.name() == PROCESSOR_TIME);
            family.map_or(0.0, |family| family.get_metric()[0].get_counter().get_value())
        };
        let before = used();
        while used() == before {
            std::hint::spin_loop();
        }
        assert!(used().fract() > 0.0, "{}", used());
    }
}
