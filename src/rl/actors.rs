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
