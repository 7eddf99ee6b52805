//! The queues of streams, where `CUDA_EMULATOR_QUEUES` asks for them: work that is given to a stream runs when something waits for it,
//! as late as a GPU may run it. Without them it runs when it is given.
//!
//! The work of a stream runs in the order in which it was given. An event is a place in its stream; a stream that waits for an event
//! does so when its own work reaches that place.

use crate::settings::settings;
use crate::status::SUCCESS;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// What a stream runs, which gives CUDA's status.
type Work = Box<dyn FnOnce() -> c_int + Send>;

/// A place in a stream: behind so many entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    stream: usize,
    entries: u64,
}

enum Entry {
    Work(Work),
    Wait(Place),
}

#[derive(Default)]
struct Queue {
    entries: VecDeque<Entry>,
    given: u64,
    done: u64,
}

struct Queues {
    /// By the number of their stream.
    all: BTreeMap<usize, Queue>,
    /// The first error of work, which every wait returns.
    error: c_int,
}

fn queues() -> MutexGuard<'static, Queues> {
    static QUEUES: Mutex<Queues> = Mutex::new(Queues::new());
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether streams have queues. The default stream, number 0, has none: it waits for all others.
pub fn has(stream: usize) -> bool {
    settings().queues.is_some() && stream != 0
}

/// Gives work to a stream.
pub fn give(stream: usize, work: impl FnOnce() -> c_int + Send + 'static) -> c_int {
    if !has(stream) {
        return match wait_for_all() {
            SUCCESS => work(),
            error => error,
        };
    }
    queues().add(stream, Entry::Work(Box::new(work)));
    SUCCESS
}

/// The place behind all that a stream has been given.
pub fn place(stream: usize) -> Place {
    match has(stream) {
        true => Place { stream, entries: queues().all.entry(stream).or_default().given },
        false => Place::default(),
    }
}

/// Lets a stream wait for a place.
pub fn wait_in(stream: usize, place: Place) -> c_int {
    if !has(stream) {
        return wait_for(place);
    }
    queues().add(stream, Entry::Wait(place));
    SUCCESS
}

/// Runs what comes before a place, and returns the first error of any work. One thread at a time sleeps before; those that come meanwhile do
/// not, so that what a thread waits for runs before what another one has waited for longer.
pub fn wait_for(place: Place) -> c_int {
    static SLEEPS: AtomicBool = AtomicBool::new(false);
    if let Some(milliseconds) = settings().queues
        && !queues().is_done(place)
        && !SLEEPS.swap(true, Ordering::Relaxed)
    {
        thread::sleep(Duration::from_millis(milliseconds));
        SLEEPS.store(false, Ordering::Relaxed);
    }
    let mut queues = queues();
    queues.run(place);
    queues.error
}

/// Runs all that a stream has been given.
pub fn wait_for_stream(stream: usize) -> c_int {
    wait_for(place(stream))
}

/// Runs all that streams have been given.
pub fn wait_for_all() -> c_int {
    if settings().queues.is_none() {
        return SUCCESS;
    }
    let mut queues = queues();
    let places: Vec<_> = queues.all.iter().map(|(&stream, queue)| Place { stream, entries: queue.given }).collect();
    places.into_iter().for_each(|place| queues.run(place));
    queues.error
}

impl Queues {
    const fn new() -> Self {
        Self { all: BTreeMap::new(), error: SUCCESS }
    }

    fn add(&mut self, stream: usize, entry: Entry) {
        let queue = self.all.entry(stream).or_default();
        queue.entries.push_back(entry);
        queue.given += 1;
    }

    fn is_done(&self, place: Place) -> bool {
        self.all.get(&place.stream).is_none_or(|queue| queue.done >= place.entries)
    }

    fn run(&mut self, place: Place) {
        while let Some(queue) = self.all.get_mut(&place.stream).filter(|queue| queue.done < place.entries) {
            let Some(entry) = queue.entries.pop_front() else { break };
            queue.done += 1;
            match entry {
                Entry::Work(work) => {
                    let status = work();
                    if self.error == SUCCESS {
                        self.error = status;
                    }
                }
                Entry::Wait(place) => self.run(place),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Place, Queues};
    use std::sync::mpsc;

    #[test]
    fn work_runs_when_it_is_waited_for_and_behind_what_it_waits_for() {
        let (send, ran) = mpsc::channel();
        let mut queues = Queues::new();
        let add = |queues: &mut Queues, stream, name| {
            let send = send.clone();
            let work = move || {
                send.send(name).expect("it is read");
                0
            };
            queues.add(stream, Entry::Work(Box::new(work)));
        };
        add(&mut queues, 1, "1a");
        add(&mut queues, 2, "2a");
        queues.add(1, Entry::Wait(Place { stream: 2, entries: 1 }));
        add(&mut queues, 2, "2b");
        add(&mut queues, 1, "1b");
        add(&mut queues, 1, "1c");
        assert!(ran.try_recv().is_err(), "nothing waits");
        queues.run(Place { stream: 1, entries: 3 });
        assert_eq!(ran.try_iter().collect::<Vec<_>>(), ["1a", "2a", "1b"]);
        queues.run(Place { stream: 2, entries: 2 });
        queues.run(Place { stream: 2, entries: 2 });
        assert_eq!(ran.try_iter().collect::<Vec<_>>(), ["2b"]);
    }

    #[test]
    fn the_first_error_stays_and_what_follows_runs() {
        let mut queues = Queues::new();
        for status in [0, 700, 716, 0] {
            queues.add(1, Entry::Work(Box::new(move || status)));
        }
        queues.run(Place { stream: 1, entries: 1 });
        assert_eq!(queues.error, 0);
        queues.run(Place { stream: 1, entries: 4 });
        assert_eq!((queues.error, queues.all[&1].done), (700, 4));
    }
}
