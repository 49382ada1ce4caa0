//! A bounded pool of threads for jobs that block.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// After how long without a job a thread of a [`Pool`] ends.
pub const IDLE_AFTER: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send + 'static>;

/// Threads for jobs that block: started when needed, never more than the bound, ended when idle for
/// [`IDLE_AFTER`].
///
/// A job that panics costs its thread nothing where panics unwind. When the pool is dropped its idle threads
/// end; jobs that run or wait are still carried out, and the drop does not wait for them.
pub struct Pool {
    shared: Arc<Shared>,
}

/// The job was not taken: as many run and wait as are allowed. Nothing has changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the pool {pool} is full: {threads} threads are busy, and {waiting} more jobs wait")]
pub struct Saturated {
    /// The pool's name.
    pub pool: String,
    /// Threads that it has.
    pub threads: usize,
    /// Jobs that wait for one.
    pub waiting: usize,
}

struct Shared {
    name: String,
    threads_max: usize,
    queue_max: usize,
    stack_bytes: usize,
    idle_after: Duration,
    state: Mutex<State>,
    job_waits: Condvar,
}

/// Invariants: `idle <= threads <= threads_max`, `queue.len() <= idle + queue_max`. A thread that is idle
/// takes a job that waits before it ends, so each idle thread stands for one waiting job.
#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl Pool {
    /// A pool of at most `threads_max` threads of `stack_bytes` each, named `name`, for which at most
    /// `queue_max` jobs wait. It starts with no thread.
    pub fn new(name: &str, threads_max: usize, queue_max: usize, stack_bytes: usize) -> Pool {
        Pool::with_idle_after(name, threads_max, queue_max, stack_bytes, IDLE_AFTER)
    }

    fn with_idle_after(
        name: &str,
        threads_max: usize,
        queue_max: usize,
        stack_bytes: usize,
        idle_after: Duration,
    ) -> Pool {
        Pool {
            shared: Arc::new(Shared {
                name: name.to_owned(),
                threads_max,
                queue_max,
                stack_bytes,
                idle_after,
                state: Mutex::default(),
                job_waits: Condvar::new(),
            }),
        }
    }

    /// Has a thread carry out `job`: an idle one, else a new one, else, where the queue has room, the next
    /// that is free. It never waits.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) -> Result<(), Saturated> {
        let mut state = self.shared.lock();
        let job: Job = Box::new(job);
        let job = if state.queue.len() < state.idle {
            job
        } else if state.threads < self.shared.threads_max {
            match self.shared.grow(job) {
                Ok(()) => {
                    state.threads += 1;
                    return Ok(());
                }
                // The system has no thread left for us; those that there are may still take it.
                Err(job) => job,
            }
        } else {
            job
        };
        let room = state.idle + if state.threads > 0 { self.shared.queue_max } else { 0 };
        if state.queue.len() >= room {
            return Err(Saturated {
                pool: self.shared.name.clone(),
                threads: state.threads,
                waiting: state.queue.len(),
            });
        }
        state.queue.push_back(job);
        self.shared.job_waits.notify_one();
        Ok(())
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.shared.lock().threads
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.job_waits.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No job runs under the lock, and each change of the state is complete before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread with its first job, or gives the job back.
    fn grow(self: &Arc<Shared>, job: Job) -> Result<(), Job> {
        // The job is handed over in a slot, so that it can be taken back when there is no thread.
        let slot = Arc::new(Mutex::new(Some(job)));
        let take = |slot: &Mutex<Option<Job>>| slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (shared, handed_over) = (Arc::clone(self), Arc::clone(&slot));
        let thread = thread::Builder::new()
            .name(self.name.clone())
            .stack_size(self.stack_bytes)
            .spawn(move || shared.work(take(&handed_over)));
        match thread {
            Ok(_) => Ok(()),
            Err(_) => match take(&slot) {
                Some(job) => Err(job),
                None => Ok(()),
            },
        }
    }

    /// What a thread does until it ends.
    fn work(&self, mut job: Option<Job>) {
        while let Some(next) = job {
            // The hook has reported a panic by now; where it has not ended the process, the thread goes on.
            let _ = catch_unwind(AssertUnwindSafe(next));
            job = self.next_job();
        }
    }

    /// The next job, or `None` after a while without one: then the thread is not counted any more, and must
    /// end.
    fn next_job(&self) -> Option<Job> {
        let mut state = self.lock();
        let idle_since = Instant::now();
        state.idle += 1;
        loop {
            if let Some(job) = state.queue.pop_front() {
                state.idle -= 1;
                return Some(job);
            }
            let left = self.idle_after.saturating_sub(idle_since.elapsed());
            if state.closed || left.is_zero() {
                state.idle -= 1;
                state.threads -= 1;
                return None;
            }
            state = self.job_waits.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    const STACK_BYTES: usize = 128 * 1024;
    const PATIENCE: Duration = Duration::from_secs(5);

    /// A job that says that it has begun and runs until it is let go.
    fn held() -> (impl FnOnce() + Send + 'static, Receiver<()>, Sender<()>) {
        let (begun, has_begun) = channel();
        let (let_go, release) = channel::<()>();
        let job = move || {
            begun.send(()).unwrap();
            let _ = release.recv();
        };
        (job, has_begun, let_go)
    }

    fn until(mut condition: impl FnMut() -> bool) {
        let start = Instant::now();
        while !condition() {
            assert!(start.elapsed() < PATIENCE, "never came true");
            thread::yield_now();
        }
    }

    #[test]
    fn refuses_what_no_thread_can_take_at_once() {
        let pool = Pool::new("test", 2, 0, STACK_BYTES);
        let (first, first_begun, let_first_go) = held();
        let (second, second_begun, _let_second_go) = held();
        pool.run(first).unwrap();
        pool.run(second).unwrap();
        first_begun.recv_timeout(PATIENCE).unwrap();
        second_begun.recv_timeout(PATIENCE).unwrap();
        let full = pool.run(|| ()).unwrap_err();
        assert_eq!((full.threads, full.waiting), (2, 0));
        drop(let_first_go);
        let (third, third_begun, _let_third_go) = held();
        let mut third = Some(third);
        until(|| pool.shared.lock().idle == 1);
        pool.run(third.take().unwrap()).unwrap();
        // A job has claimed the idle thread before that has woken.
        assert!(pool.run(|| ()).is_err());
        third_begun.recv_timeout(PATIENCE).unwrap();
        assert_eq!(pool.threads(), 2);
    }

    #[test]
    fn grows_when_the_idle_thread_is_spoken_for() {
        for _ in 0..50 {
            let pool = Pool::new("test", 2, 0, STACK_BYTES);
            pool.run(|| ()).unwrap();
            until(|| pool.shared.lock().idle == 1);
            let (first, first_begun, _let_first_go) = held();
            let (second, second_begun, _let_second_go) = held();
            pool.run(first).unwrap();
            pool.run(second).unwrap();
            first_begun.recv_timeout(PATIENCE).unwrap();
            second_begun.recv_timeout(PATIENCE).unwrap();
        }
    }

    #[test]
    fn queues_so_many_and_no_more() {
        let pool = Pool::new("test", 1, 2, STACK_BYTES);
        let (job, begun, let_go) = held();
        pool.run(job).unwrap();
        begun.recv_timeout(PATIENCE).unwrap();
        let (done, is_done) = channel();
        for number in 0..2 {
            let done = done.clone();
            pool.run(move || done.send(number).unwrap()).unwrap();
        }
        assert_eq!(pool.run(|| ()).unwrap_err().waiting, 2);
        drop(let_go);
        assert_eq!(is_done.recv_timeout(PATIENCE).unwrap(), 0);
        assert_eq!(is_done.recv_timeout(PATIENCE).unwrap(), 1);
    }

    #[test]
    fn a_panicking_job_costs_no_thread() {
        let pool = Pool::new("test", 1, 1, STACK_BYTES);
        pool.run(|| panic!("on purpose")).unwrap();
        let (done, is_done) = channel();
        pool.run(move || done.send(()).unwrap()).unwrap();
        is_done.recv_timeout(PATIENCE).unwrap();
        assert_eq!(pool.threads(), 1);
    }

    #[test]
    fn idle_threads_end_and_come_back() {
        let pool = Pool::with_idle_after("test", 4, 0, STACK_BYTES, Duration::from_millis(10));
        for _ in 0..3 {
            pool.run(|| ()).unwrap();
            until(|| pool.threads() == 0);
        }
    }

    #[test]
    fn a_dropped_pool_carries_out_what_waits() {
        let pool = Pool::new("test", 1, 1, STACK_BYTES);
        let (job, begun, let_go) = held();
        pool.run(job).unwrap();
        begun.recv_timeout(PATIENCE).unwrap();
        let (done, is_done) = channel();
        pool.run(move || done.send(()).unwrap()).unwrap();
        let shared = Arc::clone(&pool.shared);
        drop(pool);
        drop(let_go);
        is_done.recv_timeout(PATIENCE).unwrap();
        until(|| shared.lock().threads == 0);
    }
}
