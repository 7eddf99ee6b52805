//! Threads that make batches ahead of the program, and hand them over in order.

use super::batching::{Batching, Loaded};
use super::cut::{Cut, Cutter};
use super::error::LoadError;
use super::panic::discard;
use super::pass::Run;
use super::worker_stream::WorkerStream;
use crate::panic::caught;
use crate::random::begun;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Threads at work on a pass. Dropping it ends and joins them: each finishes the sample or the batch it is at.
pub(super) struct Workers<I, O> {
    shared: Arc<Shared<I, O>>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared<I, O> {
    batching: Batching<I, O>,
    /// Runs that may be taken on and not handed over, those in batches included.
    window: usize,
    /// How many of them a batch counts for.
    runs_of_batch: usize,
    state: Mutex<State<I, O>>,
    /// The batch that comes next has been made, or there is none.
    made: Condvar,
    /// There is something to take on, or the pass is over.
    work: Condvar,
    over: AtomicBool,
}

struct State<I, O> {
    /// Runs that have been taken on.
    runs_taken: usize,
    /// Where batches are cut: the last of those runs, from the first that has not been cut; `None` for those at
    /// work.
    runs: VecDeque<Option<Run<I>>>,
    cutter: Cutter<I>,
    /// Batches that have been handed over.
    handed: usize,
    /// The batches that follow those.
    batches: VecDeque<Batch<I, O>>,
    /// Workers that wait for something to do.
    idle: usize,
    /// The panic that a worker ended with, which ends the pass.
    panicked: Option<LoadError>,
}

enum Batch<I, O> {
    /// Its samples are known.
    Cut(Cut<I>),
    /// A worker is at it.
    AtWork,
    Made(Loaded<O>),
}

/// What a worker takes on. Batches are numbered from the first of the pass.
enum Task<I> {
    /// The samples of a run, of which batches are cut.
    Samples(usize),
    /// A run that is a batch.
    Whole(usize),
    /// A batch of these samples.
    Batch(usize, Cut<I>),
}

impl<I: Send + 'static, O: Send + 'static> Workers<I, O> {
    /// `workers` threads, that are at work on a run or a batch each and keep `prefetch` batches more ready.
    pub(super) fn start(
        batching: Batching<I, O>,
        cutter: Cutter<I>,
        workers: usize,
        prefetch: usize,
    ) -> Result<Self, LoadError> {
        let workers = workers.min(batching.pass.runs());
        let runs_of_batch = batching.runs_of_batch();
        let shared = Arc::new(Shared {
            batching,
            window: workers.saturating_add(prefetch.saturating_mul(runs_of_batch)),
            runs_of_batch,
            state: Mutex::new(State {
                runs_taken: 0,
                runs: VecDeque::new(),
                cutter,
                handed: 0,
                batches: VecDeque::new(),
                idle: 0,
                panicked: None,
            }),
            made: Condvar::new(),
            work: Condvar::new(),
            over: AtomicBool::new(false),
        });
        let mut started = Self { shared, threads: Vec::with_capacity(workers) };
        for worker in 0..workers {
            let (shared, stream) = (started.shared.clone(), WorkerStream::take());
            let thread = Builder::new().name(format!("loader-{worker}"));
            let thread = thread.spawn(move || {
                if let Err(panic) = caught(|| stream.run(|| shared.work())) {
                    shared.die(worker, panic);
                }
            });
            started.threads.push(thread.map_err(|error| LoadError::Worker { worker, reason: error.to_string() })?);
        }
        Ok(started)
    }

    /// Waits for the next batch, if there is one, or for the panic of a worker.
    pub(super) fn next(&mut self) -> Option<Loaded<O>> {
        let shared = &*self.shared;
        let mut state = shared.state();
        loop {
            match state.batches.pop_front() {
                Some(Batch::Made(loaded)) => {
                    state.handed += 1;
                    shared.wake(state);
                    return Some(loaded);
                }
                Some(unmade) => state.batches.push_front(unmade),
                None if shared.is_done(&state) => break,
                None => {}
            }
            if let Some(panicked) = state.panicked.take() {
                return Some(Err(panicked));
            }
            state = shared.made.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        // A worker that has made its last batch may still panic.
        self.end();
        self.shared.state().panicked.take().map(Err)
    }
}

impl<I, O> Workers<I, O> {
    /// Ends the workers, and waits for them.
    fn end(&mut self) {
        self.shared.end(&self.shared.state());
        for thread in self.threads.drain(..) {
            // Its panics are caught, and returned by the next batch.
            let _ = thread.join();
        }
    }
}

impl<I, O> Drop for Workers<I, O> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<I: Send + 'static, O: Send + 'static> Shared<I, O> {
    /// A worker's life.
    fn work(&self) {
        while let Some(task) = self.take_on() {
            match task {
                Task::Samples(number) => {
                    let run = self.batching.pass.make(number, || self.is_over());
                    self.put_samples(number, run);
                }
                Task::Whole(number) => {
                    let run = self.batching.make_whole(number, || self.is_over());
                    if !self.is_over() {
                        self.put_batch(number, self.load(self.batching.whole(number, run)));
                    }
                }
                Task::Batch(number, cut) => self.put_batch(number, self.load(Ok(cut))),
            }
        }
    }

    /// Makes a batch. Its work on the device is issued and begun, so that it does not wait for the program to ask, and
    /// its errors are returned with the batch.
    fn load(&self, cut: Result<Cut<I>, LoadError>) -> Loaded<O> {
        begun(|| self.batching.load(cut))
    }

    /// The next thing to do, when there is one.
    fn take_on(&self) -> Option<Task<I>> {
        let mut state = self.state();
        loop {
            if self.is_over() || self.is_done(&state) {
                return None;
            }
            let cut = state.batches.iter().position(|batch| matches!(batch, Batch::Cut(_)));
            if let Some(behind) = cut
                && let Batch::Cut(cut) = std::mem::replace(&mut state.batches[behind], Batch::AtWork)
            {
                return Some(Task::Batch(state.handed + behind, cut));
            }
            let held = state.runs.len() + state.batches.len() * self.runs_of_batch;
            if !self.has_taken_all(&state) && held < self.window {
                state.runs_taken += 1;
                let number = state.runs_taken - 1;
                if !self.batching.pass.are_batches_fixed() {
                    state.runs.push_back(None);
                    return Some(Task::Samples(number));
                }
                state.batches.push_back(Batch::AtWork);
                return Some(Task::Whole(number));
            }
            state.idle += 1;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// Puts a run in its place, and cuts what batches can be cut.
    fn put_samples(&self, number: usize, run: Run<I>) {
        if self.is_over() {
            // It may end where the pass did, which is no failure of its own.
            return discard(run.items, true);
        }
        let mut state = self.state();
        let behind = number + state.runs.len() - state.runs_taken;
        state.runs[behind] = Some(run);
        let State { runs, cutter, batches, .. } = &mut *state;
        let mut failed = false;
        while let Some(run) = runs.front_mut().and_then(Option::take) {
            runs.pop_front();
            cutter.take(run);
            while let Some(cut) = cutter.cut() {
                failed |= cut.is_err();
                batches.push_back(cut.map_or_else(|failure| Batch::Made(Err(failure)), Batch::Cut));
            }
        }
        let discarded = std::mem::take(&mut cutter.discarded);
        self.wake(state);
        // There may be a failure to hand over, or nothing any more.
        self.made.notify_one();
        discard(discarded, failed);
    }

    fn put_batch(&self, number: usize, loaded: Loaded<O>) {
        let mut state = self.state();
        // What is handed over is at the front and made, so this one is still there.
        let behind = number - state.handed;
        state.batches[behind] = Batch::Made(loaded);
        drop(state);
        if behind == 0 {
            self.made.notify_one();
        }
    }

    /// Wakes workers that wait for something to do, if there are any: a call of the system.
    fn wake(&self, state: MutexGuard<'_, State<I, O>>) {
        let idle = state.idle;
        drop(state);
        if idle > 0 {
            self.work.notify_all();
        }
    }
}

impl<I: 'static, O> Shared<I, O> {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Whether there is nothing to come.
    fn is_done(&self, state: &State<I, O>) -> bool {
        self.has_taken_all(state) && state.runs.is_empty() && state.batches.is_empty()
    }

    /// Whether no run is to be taken on any more: where the stream has ended, or a sample has failed, those behind are
    /// empty.
    fn has_taken_all(&self, state: &State<I, O>) -> bool {
        state.runs_taken == self.batching.pass.runs() || state.cutter.has_all()
    }
}

impl<I, O> Shared<I, O> {
    /// Has workers end that look for something to do; `_locked`, so that none is between looking and waiting.
    fn end(&self, _locked: &MutexGuard<'_, State<I, O>>) {
        self.over.store(true, Ordering::Relaxed);
        self.work.notify_all();
    }

    /// Ends the pass with the panic of a worker. The first panic is reported.
    fn die(&self, worker: usize, panic: String) {
        let mut state = self.state();
        state.panicked.get_or_insert(LoadError::WorkerPanic { epoch: self.batching.pass.epoch, worker, panic });
        self.end(&state);
        drop(state);
        self.made.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State<I, O>> {
        // None of the user's code runs under the lock. What panics there all the same ends the pass, so the state that it
        // leaves is not used to make batches.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
