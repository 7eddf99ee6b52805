//! Environments that make steps in a fixed order.

use super::environment::{Running, Shown};
use crate::random::RandomStream;
use burn_core::tensor::Device;
use burn_rl::{Batchable, Policy, ToObservation};
use burn_train::{EpisodeSummary, RLComponentsTypes};
use core::mem::take;
use std::collections::VecDeque;
use std::io;

/// A step of an environment.
pub(super) struct Transition<RLC: RLComponentsTypes> {
    pub state: RLC::State,
    pub action: RLC::Action,
    pub next_state: RLC::State,
    pub reward: f64,
    /// Whether the episode has ended, by itself or by its length.
    pub ends: bool,
    /// What the policy says of the action.
    pub context: RLC::ActionContext,
    /// The episode up to this step.
    pub episode: EpisodeSummary,
}

/// An environment, and what it is doing.
struct Actor<RLC: RLComponentsTypes> {
    environment: Running<RLC::State, RLC::Action>,
    /// The state to act on, until it does.
    state: Option<RLC::State>,
    /// The state that it acts on, the action, and what the policy says of that.
    acts: Option<(RLC::State, RLC::Action, RLC::ActionContext)>,
    steps: usize,
    reward: f64,
}

/// Environments whose actions a policy chooses, in groups of neighbours: for a group at once.
pub(super) struct Actors<RLC: RLComponentsTypes> {
    actors: Vec<Actor<RLC>>,
    group_size: usize,
    /// The group whose steps are next.
    group: usize,
    /// Steps that were made, and not yet taken.
    made: VecDeque<Transition<RLC>>,
    policy: RLC::Policy,
    /// Whether the policy may not draw.
    is_deterministic: bool,
    device: Device,
}

impl<RLC: RLComponentsTypes> Actors<RLC> {
    /// Starts an environment for each of `streams`, which it draws from.
    ///
    /// # Errors
    ///
    /// When a thread cannot be started.
    pub(super) fn start(
        init: &RLC::EnvInit,
        streams: impl IntoIterator<Item = Option<RandomStream>>,
        group_size: usize,
        policy: RLC::Policy,
        is_deterministic: bool,
        device: Device,
    ) -> io::Result<Self> {
        let actor = |stream| {
            let environment = Running::start::<RLC::Env>(init.clone(), stream)?;
            Ok(Actor { environment, state: None, acts: None, steps: 0, reward: 0.0 })
        };
        let actors = streams.into_iter().map(actor).collect::<io::Result<Vec<_>>>()?;
        let policy = policy.to_device(&device);
        let made = VecDeque::new();
        let mut actors = Self { actors, group_size, group: 0, made, policy, is_deterministic, device };
        (0..actors.groups()).for_each(|group| actors.see(group));
        Ok(actors)
    }

    fn groups(&self) -> usize {
        self.actors.len().div_ceil(self.group_size)
    }

    /// Chooses the first actions of all groups: from then on each makes a step [ahead](Self::next).
    pub(super) fn go_ahead(&mut self) {
        (0..self.groups()).for_each(|group| self.choose(group));
    }

    /// The next step: of the environments in order, again and again. A group's next actions are chosen once its steps are made, and before
    /// the first of them is returned.
    pub(super) fn next(&mut self) -> Transition<RLC> {
        if self.made.is_empty() {
            let group = self.group;
            self.see(group);
            self.choose(group);
            self.group = (group + 1) % self.groups();
        }
        self.made.pop_front().expect("a group has an environment, and each has made a step")
    }

    /// The next step of a group by itself, which makes none ahead.
    pub(super) fn step(&mut self) -> Transition<RLC> {
        self.choose(0);
        self.see(0);
        self.made.pop_front().expect("the group has an environment")
    }

    fn group(&mut self, group: usize) -> &mut [Actor<RLC>] {
        let first = group * self.group_size;
        let end = self.actors.len().min(first + self.group_size);
        &mut self.actors[first..end]
    }

    /// Waits for the environments of a group.
    fn see(&mut self, group: usize) {
        let mut made = take(&mut self.made);
        for actor in self.group(group) {
            let Shown { result, state } = actor.environment.show();
            actor.state = Some(state);
            let (Some(result), Some((state, action, context))) = (result, actor.acts.take()) else { continue };
            actor.steps += 1;
            actor.reward += result.reward;
            let episode = EpisodeSummary { episode_length: actor.steps, cum_reward: actor.reward };
            let ends = result.done || result.truncated;
            if ends {
                (actor.steps, actor.reward) = (0, 0.0);
            }
            let (next_state, reward) = (result.next_state, result.reward);
            made.push_back(Transition { state, action, next_state, reward, ends, context, episode });
        }
        self.made = made;
    }

    /// Chooses the next actions of a group.
    fn choose(&mut self, group: usize) {
        let device = self.device.clone();
        let states = { self.group(group).iter_mut() }.map(|actor| actor.state.take().expect("it was seen"));
        let states: Vec<_> = states.collect();
        let observations = states.iter().map(|state| state.to_observation(&device)).collect();
        let (actions, contexts) = self.policy.action(Batchable::batch(observations), self.is_deterministic);
        let actions = actions.unbatch();
        assert!(
            actions.len() == states.len() && contexts.len() == states.len(),
            "`Policy::action` gave {} actions and {} contexts for {} observations: it has to give one of each",
            actions.len(),
            contexts.len(),
            states.len(),
        );
        let chosen = states.into_iter().zip(actions.into_iter().zip(contexts));
        for (actor, (state, (action, context))) in self.group(group).iter_mut().zip(chosen) {
            let action = RLC::Action::from(action);
            actor.environment.act(action.clone());
            actor.acts = Some((state, action, context));
        }
    }

    /// Has the policy choose from now on as this one does.
    pub(super) fn update(&mut self, state: RLC::PolicyState) {
        let mut policy = self.policy.clone();
        policy.update(state);
        self.policy = policy.to_device(&self.device);
    }

    /// The state of the policy.
    pub(super) fn policy(&self) -> RLC::PolicyState {
        self.policy.state()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_rl::{
        Environment, EnvironmentInit, LearnerTransitionBatch, PolicyLearner, PolicyState, RLTrainOutput, StepResult,
        ToAction,
    };
    use burn_train::RLComponentsMarker;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts its steps; an episode has 2.
    struct Count {
        number: usize,
        steps: usize,
    }

    /// The environment, and its steps so far.
    type Counted = (usize, usize);

    impl Environment for Count {
        type State = Counted;
        type Action = Chosen;
        const MAX_STEPS: usize = 2;

        fn state(&self) -> Counted {
            (self.number, self.steps)
        }

        fn step(&mut self, _: Chosen) -> StepResult<Counted> {
            self.steps += 1;
            StepResult { next_state: self.state(), reward: 1.0, done: false, truncated: self.steps.is_multiple_of(2) }
        }

        fn reset(&mut self) {}
    }

    /// What is given to a policy, or by it, for some environments.
    #[derive(Clone, Debug, PartialEq)]
    struct List(Vec<usize>);

    impl Batchable for List {
        fn batch(lists: Vec<Self>) -> Self {
            Self(lists.into_iter().flat_map(|list| list.0).collect())
        }

        fn unbatch(self) -> Vec<Self> {
            self.0.into_iter().map(|item| Self(vec![item])).collect()
        }
    }

    impl ToObservation<List> for Counted {
        fn to_observation(&self, _: &Device) -> List {
            List(vec![self.0])
        }
    }

    /// An action.
    #[derive(Clone)]
    struct Chosen;

    impl From<List> for Chosen {
        fn from(_: List) -> Self {
            Self
        }
    }

    impl ToAction<List> for Chosen {
        fn to_action(&self, _: &Device) -> List {
            List(vec![])
        }
    }

    #[derive(Clone)]
    struct Versioned(usize);

    impl PolicyState for Versioned {
        type Record = ();

        fn into_record(self) {}

        fn load_record(&self, (): ()) -> Self {
            self.clone()
        }
    }

    /// The version of the policy that has chosen, and the environments that it has chosen for at once.
    #[derive(Clone, Debug)]
    struct Context {
        version: usize,
        of: Vec<usize>,
        is_deterministic: bool,
    }

    impl burn_train::ItemLazy for Context {
        fn sync(self) -> Result<Self, burn_backend::ExecutionError> {
            Ok(self)
        }
    }

    impl Policy for Versioned {
        type Observation = List;
        type ActionDistribution = List;
        type Action = List;
        type ActionContext = Context;
        type PolicyState = Self;

        fn forward(&mut self, of: List) -> List {
            of
        }

        fn action(&mut self, of: List, is_deterministic: bool) -> (List, Vec<Context>) {
            let context = Context { version: self.0, of: of.0.clone(), is_deterministic };
            (of.clone(), vec![context; of.0.len()])
        }

        fn update(&mut self, of: Self) {
            self.0 = of.0;
        }

        fn state(&self) -> Self {
            self.clone()
        }

        fn to_device(self, _: &Device) -> Self {
            self
        }

        fn load_record(self, (): ()) -> Self {
            self
        }
    }

    struct Learner;

    impl PolicyLearner for Learner {
        type TrainContext = ();
        type InnerPolicy = Versioned;
        type Record = ();

        fn train(&mut self, _: LearnerTransitionBatch<Versioned>) -> RLTrainOutput<(), Versioned> {
            RLTrainOutput { policy: Versioned(0), item: () }
        }

        fn policy(&self) -> Versioned {
            Versioned(0)
        }

        fn update_policy(&mut self, _: Versioned) {}

        fn record(&self) {}

        fn load_record(self, (): ()) -> Self {
            self
        }

        fn device(&self) -> Device {
            Device::flex()
        }
    }

    /// Environments with the numbers of the order in which they are made.
    fn actors<I: EnvironmentInit<Count> + Send + 'static>(
        init: &I,
        count: usize,
        group: usize,
        is_deterministic: bool,
    ) -> Actors<RLComponentsMarker<Count, I, Learner>> {
        let streams = vec![None; count];
        Actors::start(init, streams, group, Versioned(0), is_deterministic, Device::flex()).expect("threads")
    }

    /// Which environment of a group is made first is the threads' affair: numbers are those of the first states seen.
    #[test]
    fn steps_are_those_of_the_environments_in_order() {
        let made = Arc::new(AtomicUsize::new(0));
        let init = move || Count { number: made.fetch_add(1, Ordering::Relaxed), steps: 0 };
        let mut actors = actors(&init, 3, 2, false);
        actors.go_ahead();
        let mut numbers = Vec::new();
        for step in 0..12 {
            let Transition { state, next_state, ends, context, episode, .. } = actors.next();
            numbers.push(state.0);
            let round = step / 3;
            assert_eq!((state.1, next_state.1), (round, round + 1), "step {step}");
            assert_eq!((ends, episode.episode_length), (round % 2 == 1, round % 2 + 1), "step {step}");
            assert_eq!(episode.cum_reward, (round % 2 + 1) as f64, "step {step}");
            let group = if step % 3 < 2 { 0..2 } else { 2..3 };
            assert_eq!(context.of.len(), group.len(), "step {step}");
            assert!(context.of.contains(&state.0) && !context.is_deterministic, "step {step}");
            // The policy of step s is version s + 1 from there on. A group's actions were chosen when its steps before were seen: before
            // the first of these was returned.
            let first = 3 * round + if step % 3 < 2 { 0 } else { 2 };
            assert_eq!(context.version, first.saturating_sub(3), "step {step}");
            actors.update(Versioned(step + 1));
        }
        assert!(numbers.chunks(3).all(|round| round == &numbers[..3]), "{numbers:?}");
    }

    #[test]
    fn an_evaluation_makes_no_step_ahead() {
        let init = || Count { number: 0, steps: 0 };
        let mut actors = actors(&init, 1, 1, true);
        for step in 0..4 {
            actors.update(Versioned(step));
            let Transition { context, .. } = actors.step();
            assert_eq!((context.version, context.is_deterministic), (step, true));
        }
    }

    #[test]
    #[should_panic(expected = "the environment fails")]
    fn a_panic_of_an_environment_is_the_trainings() {
        let init = || -> Count { panic!("the environment fails") };
        actors(&init, 2, 1, false);
    }
}
