//! An environment in a thread of its own.

use crate::random::RandomStream;
use burn_rl::{Environment, EnvironmentInit, StepResult};
use std::io;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

/// What an environment shows before it is given an action.
pub(super) struct Shown<S> {
    /// What the last action led to, if there was one.
    pub result: Option<StepResult<S>>,
    /// The state to act on: that of a new episode, where the last one has ended.
    pub state: S,
}

/// An environment that makes a step for each action that it is given.
pub(super) struct Running<S, A> {
    /// None once the thread is to end.
    actions: Option<Sender<A>>,
    shown: Receiver<Shown<S>>,
    thread: Option<JoinHandle<()>>,
}

impl<S: Send + 'static, A: Send + 'static> Running<S, A> {
    /// The thread makes the environment, which may not leave it, and draws from `stream`.
    ///
    /// # Errors
    ///
    /// When the thread cannot be started.
    pub(super) fn start<E: Environment<State = S, Action = A>>(
        init: impl EnvironmentInit<E> + Send + 'static,
        stream: Option<RandomStream>,
    ) -> io::Result<Self> {
        let (actions, to_take) = channel();
        let (to_show, shown) = channel();
        let thread = Builder::new().name("environment".to_owned()).spawn(move || {
            let _draws = stream.map(|stream| stream.enter());
            let mut environment = init.init();
            environment.reset();
            let mut result = None;
            while to_show.send(Shown { result: result.take(), state: environment.state() }).is_ok() {
                let Ok(action) = to_take.recv() else { return };
                let step = environment.step(action);
                if step.done || step.truncated {
                    environment.reset();
                }
                result = Some(step);
            }
        })?;
        Ok(Self { actions: Some(actions), shown, thread: Some(thread) })
    }

    /// Waits for the environment.
    ///
    /// # Panics
    ///
    /// As the environment has panicked.
    pub(super) fn show(&mut self) -> Shown<S> {
        match self.shown.recv() {
            Ok(shown) => shown,
            Err(_) => self.panicked(),
        }
    }

    /// Has the environment take an action, once what it has shown is seen.
    ///
    /// # Panics
    ///
    /// As the environment has panicked.
    pub(super) fn act(&mut self, action: A) {
        let actions = self.actions.as_ref().expect("it is taken when the thread is to end");
        if actions.send(action).is_err() {
            self.panicked()
        }
    }

    fn panicked(&mut self) -> ! {
        let thread = self.thread.take().expect("a thread ends once");
        resume_unwind(thread.join().expect_err("a thread ends by itself when it panics"))
    }
}

impl<S, A> Drop for Running<S, A> {
    fn drop(&mut self) {
        self.actions = None;
        // A panic here has nobody to go to: what the environment has shown was enough.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
