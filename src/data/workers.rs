//! Threads that make runs ahead of the program, and hand them over in order.

use super::error::LoadError;
use super::pass::{Pass, Run};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};

/// Where the runs of a pass come from.
pub(super) enum Runs<I> {
    /// The calling thread makes each when it is asked for; the next one's number.
    Here(usize),
    /// Workers make them.
    There(Workers<I>),
}

impl<I: Send + 'static> Runs<I> {
    /// With `workers` threads, that are at work on one run each and keep `ahead` more ready.
    pub(super) fn new(pass: &Arc<Pass<I>>, workers: usize, ahead: usize) -> Result<Self, LoadError> {
        match workers {
            0 => Ok(Self::Here(0)),
            _ => Workers::start(pass, workers, ahead).map(Self::There),
        }
    }

    /// The next run; there must be one.
    pub(super) fn next(&mut self, pass: &Pass<I>) -> Run<I> {
        match self {
            Self::Here(next) => {
                *next += 1;
                pass.make(*next - 1, || false)
            }
            Self::There(workers) => workers.shared.take(),
        }
    }

    /// Ends the workers.
    pub(super) fn end(&mut self) {
        *self = Self::Here(0);
    }
}

/// Threads at work on a pass. Dropping it ends and joins them: each finishes the sample it is at.
pub(super) struct Workers<I> {
    shared: Arc<Shared<I>>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared<I> {
    pass: Arc<Pass<I>>,
    /// Runs that are taken on before the first of them is handed over.
    window: usize,
    state: Mutex<State<I>>,
    /// The run that comes next has been made.
    made: Condvar,
    /// A run has been handed over, so another can be taken on; or the pass is over.
    room: Condvar,
    over: AtomicBool,
}

struct State<I> {
    /// Runs that have been handed over.
    taken: usize,
    /// The runs that follow those and have been taken on; `None` for those at work.
    runs: VecDeque<Option<Run<I>>>,
}

impl<I: Send + 'static> Workers<I> {
    fn start(pass: &Arc<Pass<I>>, workers: usize, ahead: usize) -> Result<Self, LoadError> {
        let workers = workers.min(pass.runs());
        let shared = Arc::new(Shared {
            pass: pass.clone(),
            window: workers.saturating_add(ahead),
            state: Mutex::new(State { taken: 0, runs: VecDeque::new() }),
            made: Condvar::new(),
            room: Condvar::new(),
            over: AtomicBool::new(false),
        });
        let mut started = Self { shared, threads: Vec::with_capacity(workers) };
        for worker in 0..workers {
            let shared = started.shared.clone();
            let thread = Builder::new().name(format!("samples-{worker}")).spawn(move || shared.work());
            started.threads.push(thread.map_err(|error| LoadError::Worker { worker, reason: error.to_string() })?);
        }
        Ok(started)
    }
}

impl<I> Drop for Workers<I> {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // Under the lock, so that no worker is between looking and waiting.
        drop(self.shared.state());
        self.shared.room.notify_all();
        for thread in self.threads.drain(..) {
            // Its panics are caught where they happen, and handed over.
            let _ = thread.join();
        }
    }
}

impl<I: Send + 'static> Shared<I> {
    /// A worker's life.
    fn work(&self) {
        while let Some(number) = self.take_on() {
            let run = self.pass.make(number, || self.over.load(Ordering::Relaxed));
            let mut state = self.state();
            // What is handed over is at the front and made, so this one is still there.
            let behind = number - state.taken;
            state.runs[behind] = Some(run);
            drop(state);
            if behind == 0 {
                self.made.notify_one();
            }
        }
    }

    /// The next run to be made, when there is room for it.
    fn take_on(&self) -> Option<usize> {
        let mut state = self.state();
        loop {
            let number = state.taken + state.runs.len();
            if self.over.load(Ordering::Relaxed) || number == self.pass.runs() {
                return None;
            }
            if state.runs.len() < self.window {
                state.runs.push_back(None);
                return Some(number);
            }
            state = self.room.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Waits for the next run.
    fn take(&self) -> Run<I> {
        let mut state = self.state();
        loop {
            if let Some(run) = state.runs.front_mut().and_then(Option::take) {
                state.runs.pop_front();
                state.taken += 1;
                drop(state);
                self.room.notify_one();
                return run;
            }
            state = self.made.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

impl<I> Shared<I> {
    fn state(&self) -> MutexGuard<'_, State<I>> {
        // Nothing that can panic happens under the lock.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
