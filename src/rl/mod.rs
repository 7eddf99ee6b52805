//! Reinforcement learning with burn-train (its feature `rl`), in a fixed order.
//!
//! burn-train's `RLStrategies::OffPolicyStrategy` runs each environment, and the policy, in a thread of its own. Transitions are stored in the
//! order in which they arrive, and whether an action is chosen before or after the policy is updated depends on which message is there first.
//! Two runs differ, with one environment too. [`off_policy`] does the same work in an order that no thread decides:
//!
//! ```text
//! n environments, of which each `autobatch_size` neighbours are a group
//! start       for each group: choose the actions by the policy, at once
//! step t      of environment t mod n. If it is the first of its group: wait for the steps of the group, and choose its next actions
//! store       the steps, when `train_interval` were made
//! train       behind that, `train_steps` times, if `train_batch_size` steps are stored and `warmup_steps` were made:
//!             sample `train_batch_size` steps, and train on them. Then the policy chooses as it has learned
//! evaluate    behind that, when another `eval_interval` steps were made: `eval_episodes` episodes of an environment of its own
//! ```
//!
//! The count of steps begins as burn-train's: at 1, so that `num_steps(s)` makes s - 1 steps; behind a checkpoint of step c at c + 1.
//!
//! Each environment is a thread, and makes its steps while others do and while the policy is trained. Everything else runs on the thread that
//! trains. So an action is chosen by the policy that was trained on steps up to those before its group's last ones.
//!
//! Random numbers: call `set_random_seed` in the thread that trains, or enter a stream there. The policy, the samples and the training draw
//! from that stream. Environment `e` is made in, and draws from, the stream `internal(stream, "environment")`, `fork_index(e)`; that of
//! the evaluation from `internal(stream, "evaluation")`. What an environment draws by another generator has to be seeded by the program:
//!
//! ```
//! use burn_deterministic::{RandomStream, StreamRng};
//!
//! struct CartPole {
//!     /// For the state in which an episode begins.
//!     rng: StreamRng,
//!     // ..
//! }
//!
//! impl CartPole {
//!     // For `RLTraining::new(directory, CartPole::new)`.
//!     fn new() -> Self {
//!         Self { rng: RandomStream::current().expect("the environment's thread has one").rng() }
//!     }
//! }
//! ```
//!
//! A training that goes on from a checkpoint of burn-train's has other bits than one that did not stop: burn-train saves the policy and the
//! learner, and neither the stored steps nor the environments.

mod actors;
mod environment;

use crate::random::RandomStream;
use actors::{Actors, Transition};
use burn_core::data::dataloader::Progress;
use burn_core::tensor::Device;
use burn_rl::{Policy, PolicyLearner, SliceAccess, ToAction, ToObservation, TransitionBuffer};
use burn_train::train::WorkerFailure;
use burn_train::{
    AgentEvaluationEvent, EvaluationItem, EventProcessorTraining, Interrupter, OffPolicyConfig, RLComponents,
    RLComponentsTypes, RLEvent, RLEventProcessorType, RLStrategies, RLStrategy, TrainingError,
};
use std::io;
use std::sync::Arc;

/// The strategy of burn-train's `RLTraining` that trains on stored steps, in the [fixed order](self):
/// `RLTraining::with_learning_strategy(rl::off_policy(config))`, in place of `RLStrategies::OffPolicyStrategy(config)`.
///
/// The settings mean what they do there. The number of environments and `autobatch_size` change what is computed; how many threads run
/// at once, and how long a step of an environment takes, do not.
///
/// # Panics
///
/// When `num_envs`, `autobatch_size`, `train_interval` or `train_batch_size` is 0, or `replay_buffer_size` less than a batch: nothing would be
/// trained. The training panics as an environment does, in a step that it has to wait for.
///
/// `launch` returns when the steps have ended that environments make ahead.
pub fn off_policy<RLC>(config: OffPolicyConfig) -> RLStrategies<RLC>
where
    RLC: RLComponentsTypes + 'static,
    RLC::PolicyObs: SliceAccess,
    RLC::PolicyAction: SliceAccess,
{
    let OffPolicyConfig { num_envs, autobatch_size, train_interval, train_batch_size, replay_buffer_size, .. } = config;
    assert!(
        0 < train_batch_size && train_batch_size <= replay_buffer_size,
        "off-policy training with train_batch_size {train_batch_size} and replay_buffer_size {replay_buffer_size}: a batch has to have \
         steps, and no more than are stored"
    );
    assert!(
        num_envs.min(autobatch_size).min(train_interval) > 0,
        "off-policy training with num_envs {num_envs}, autobatch_size {autobatch_size} and train_interval {train_interval}: each has \
         to be 1 or more"
    );
    RLStrategies::Custom(Arc::new(OffPolicy { config }))
}

struct OffPolicy {
    config: OffPolicyConfig,
}

impl OffPolicy {
    /// The environments of the training, and that of the evaluation.
    fn start<RLC: RLComponentsTypes>(
        &self,
        init: &RLC::EnvInit,
        policy: &RLC::Policy,
        device: &Device,
    ) -> io::Result<[Actors<RLC>; 2]> {
        // Without a seed an environment that draws gets the error of a thread without one.
        let stream = RandomStream::current().ok();
        let of_use = |name| stream.as_ref().map(|stream| stream.internal(name));
        let environments = of_use("environment");
        let of_each = (0..self.config.num_envs as u64)
            .map(|index| environments.as_ref().map(|environments| environments.fork_index(index)));
        let start = |streams, group_size, is_deterministic| {
            Actors::start(init, streams, group_size, policy.clone(), is_deterministic, device.clone())
        };
        let training = start(of_each.collect::<Vec<_>>(), self.config.autobatch_size, false)?;
        Ok([training, start(vec![of_use("evaluation")], 1, true)?])
    }
}

/// Tells burn-train of what happens.
struct Events<RLC: RLComponentsTypes> {
    processor: RLEventProcessorType<RLC>,
    interrupter: Interrupter,
}

impl<RLC: RLComponentsTypes> Events<RLC> {
    fn train(&mut self, event: RLEvent<RLC::TrainingOutput, RLC::ActionContext>) {
        self.interrupter.fail_on_error(self.processor.process_train(event));
    }

    fn evaluate(&mut self, event: AgentEvaluationEvent<RLC::ActionContext>) {
        self.interrupter.fail_on_error(self.processor.process_valid(event));
    }
}

impl<RLC> RLStrategy<RLC> for OffPolicy
where
    RLC: RLComponentsTypes,
    RLC::PolicyObs: SliceAccess,
    RLC::PolicyAction: SliceAccess,
{
    /// The events are those of burn-train's strategy; but an episode that is cut for its length ends too.
    fn train_loop(
        &self,
        components: RLComponents<RLC>,
        learner: &mut RLC::LearningAgent,
        starting_epoch: usize,
        init: RLC::EnvInit,
    ) -> (RLC::Policy, RLEventProcessorType<RLC>) {
        let config = &self.config;
        let mut events = Events::<RLC> { processor: components.event_processor, interrupter: components.interrupter };
        let started = self.start::<RLC>(&init, &learner.policy(), &components.inference_device);
        let [mut training, mut evaluation] = match started {
            Ok(started) => started,
            Err(error) => {
                let message = format!("starting the thread of an environment: {error}; train with fewer environments");
                events.interrupter.fail(TrainingError::Workers(vec![WorkerFailure { device_id: 0, message }]));
                return (learner.policy(), events.processor);
            }
        };
        training.go_ahead();
        let device = learner.device();
        let mut stored = TransitionBuffer::new(config.replay_buffer_size, &device);
        let mut checkpointer = components.checkpointer;
        let mut next_evaluation = config.eval_interval + starting_epoch - 1;
        let mut progress = Progress::new(starting_epoch, components.num_steps, Some("steps".to_owned()));
        while progress.items_processed < progress.items_total && !events.interrupter.should_stop() {
            for _ in 0..config.train_interval {
                let Transition { state, action, next_state, reward, ends, context, episode } = training.next();
                progress.items_processed += 1;
                events.train(RLEvent::EnvStep(EvaluationItem::new(context, progress.clone(), None)));
                if ends {
                    events.train(RLEvent::EpisodeEnd(EvaluationItem::new(episode, progress.clone(), None)));
                }
                let [state, next_state] = [state, next_state].map(|state| state.to_observation(&device));
                stored.push(state, next_state, action.to_action(&device), reward as f32, ends);
                if events.interrupter.should_stop() {
                    break;
                }
            }
            let may_train = stored.len() >= config.train_batch_size && progress.items_processed >= config.warmup_steps;
            if may_train && config.train_steps > 0 {
                for _ in 0..config.train_steps {
                    let trained = learner.train(stored.sample(config.train_batch_size));
                    events.train(RLEvent::TrainStep(EvaluationItem::new(trained.item, progress.clone(), None)));
                }
                training.update(learner.policy().state());
            }
            let made = progress.items_processed;
            if config.eval_interval > 0 && next_evaluation <= made {
                events.evaluate(AgentEvaluationEvent::Start(config.eval_episodes));
                evaluation.update(learner.policy().state());
                self.evaluate(&mut evaluation, &mut events);
                let last = made - (made - next_evaluation) % config.eval_interval;
                if let Some(checkpointer) = &mut checkpointer {
                    checkpointer.checkpoint(&training.policy(), learner, last, &components.event_store);
                }
                next_evaluation = last + config.eval_interval;
                events.evaluate(AgentEvaluationEvent::End);
            }
        }
        (learner.policy(), events.processor)
    }
}

impl OffPolicy {
    /// Runs the episodes of an evaluation.
    fn evaluate<RLC: RLComponentsTypes>(&self, environment: &mut Actors<RLC>, events: &mut Events<RLC>) {
        let episodes = self.config.eval_episodes;
        for number in 1..=episodes {
            for step in 0.. {
                let Transition { ends, context, episode, .. } = environment.step();
                let progress = Progress::new(step, step, Some("steps".to_owned()));
                events.evaluate(AgentEvaluationEvent::EnvStep(EvaluationItem::new(context, progress, None)));
                if ends {
                    let progress = Progress::new(number, episodes, Some("episodes".to_owned()));
                    events.evaluate(AgentEvaluationEvent::EpisodeEnd(EvaluationItem::new(episode, progress, None)));
                    break;
                }
                if events.interrupter.should_stop() {
                    return;
                }
            }
        }
    }
}
