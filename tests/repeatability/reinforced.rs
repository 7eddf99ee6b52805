//! Reinforcement learning with burn-train: the weights do not depend on how long the steps of environments take.

use crate::process::{Folder, Program, arguments, report};
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::prelude::*;
use burn::rl::{
    Batchable, Environment, LearnerTransitionBatch, Policy, PolicyLearner, PolicyState, RLTrainOutput, SliceAccess,
    StepResult, ToAction, ToObservation,
};
use burn::tensor::Distribution;
use burn::tensor::activation::relu;
use burn::train::metric::{Adaptor, EpisodeLengthMetric, LossInput, LossMetric};
use burn::train::{ItemLazy, OffPolicyConfig, RLStrategies, RLTraining};
use burn_backend::ExecutionError;
use burn_deterministic::{
    Determinism, RandomStream, StreamRng, digest, enable_op_determinism, initialize, rl, set_random_seed,
};
use rand_core::Rng;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const FOLDER: &str = "BURN_DETERMINISTIC_REINFORCED_FOLDER";
/// Of an episode.
const MOST_STEPS: usize = 12;
const DISCOUNT: f32 = 0.9;

/// A point on a line, which is pushed to one side or the other, and should stay near 0.
struct Line {
    place: f32,
    speed: f32,
    steps: usize,
    rng: Option<StreamRng>,
    /// In microseconds: a step of this environment takes so long, and one behind it 0.
    delay: u64,
}

type State = [f32; 2];

impl Environment for Line {
    type State = State;
    type Action = Push;
    const MAX_STEPS: usize = MOST_STEPS;

    fn state(&self) -> State {
        [self.place, self.speed]
    }

    fn step(&mut self, push: Push) -> StepResult<State> {
        std::thread::sleep(Duration::from_micros(self.delay * (self.steps as u64 % 2)));
        self.speed += if push.0 { 0.25 } else { -0.25 };
        self.place += self.speed;
        self.steps += 1;
        let (done, truncated) = (self.place.abs() > 2.0, self.steps == MOST_STEPS);
        StepResult { next_state: self.state(), reward: f64::from(1.0 - self.place.abs()), done, truncated }
    }

    fn reset(&mut self) {
        let drawn = self.rng.as_mut().map_or(1, |rng| rng.next_u32() % 5);
        (self.place, self.speed, self.steps) = (drawn as f32 / 4.0 - 0.5, 0.0, 0);
    }
}

#[derive(Clone)]
struct Push(bool);

#[derive(Clone)]
struct Rows(Tensor<2>);

impl Batchable for Rows {
    fn batch(rows: Vec<Self>) -> Self {
        Self(Tensor::cat(rows.into_iter().map(|rows| rows.0).collect(), 0))
    }

    fn unbatch(self) -> Vec<Self> {
        self.0.split(1, 0).into_iter().map(Self).collect()
    }
}

impl SliceAccess for Rows {
    fn zeros_like(sample: &Self, capacity: usize, device: &Device) -> Self {
        Self(SliceAccess::zeros_like(&sample.0, capacity, device))
    }

    fn select(self, dim: usize, indices: Tensor<1, Int>) -> Self {
        Self(self.0.select(dim, indices))
    }

    fn slice_assign_inplace(&mut self, index: usize, value: Self) {
        self.0.slice_assign_inplace(index, value.0);
    }
}

impl ToObservation<Rows> for State {
    fn to_observation(&self, device: &Device) -> Rows {
        Rows(Tensor::from_data([*self], device))
    }
}

impl ToAction<Rows> for Push {
    fn to_action(&self, device: &Device) -> Rows {
        Rows(Tensor::from_data([[f32::from(u8::from(self.0))]], device))
    }
}

impl From<Rows> for Push {
    fn from(rows: Rows) -> Self {
        Self(rows.0.into_scalar::<f32>() > 0.5)
    }
}

/// The value of each push.
#[derive(Module, Debug)]
struct Values {
    hidden: Linear,
    output: Linear,
}

impl Values {
    fn forward(&self, states: Tensor<2>) -> Tensor<2> {
        self.output.forward(relu(self.hidden.forward(states)))
    }
}

#[derive(Clone)]
struct Greedy {
    values: Values,
    /// The share of pushes that are drawn.
    drawn: f64,
}

impl PolicyState for Values {
    type Record = ();

    fn into_record(self) {}

    fn load_record(&self, (): ()) -> Self {
        self.clone()
    }
}

impl Policy for Greedy {
    type Observation = Rows;
    type ActionDistribution = Rows;
    type Action = Rows;
    type ActionContext = ();
    type PolicyState = Values;

    fn forward(&mut self, states: Rows) -> Rows {
        Rows(self.values.forward(states.0))
    }

    fn action(&mut self, states: Rows, deterministic: bool) -> (Rows, Vec<()>) {
        let (count, device) = (states.0.dims()[0], states.0.device());
        let mut pushes = self.values.forward(states.0).argmax(1).float();
        if self.drawn > 0.0 && !deterministic {
            let draw = |distribution| Tensor::<2>::random([count, 1], distribution, &device);
            let is_drawn = draw(Distribution::Uniform(0.0, 1.0)).lower_elem(self.drawn);
            pushes = pushes.mask_where(is_drawn, draw(Distribution::Bernoulli(0.5)));
        }
        (Rows(pushes), vec![(); count])
    }

    fn update(&mut self, values: Values) {
        self.values = values;
    }

    fn state(&self) -> Values {
        self.values.clone()
    }

    fn to_device(self, device: &Device) -> Self {
        Self { values: self.values.to_device(device), ..self }
    }

    fn load_record(self, (): ()) -> Self {
        self
    }
}

struct Learner {
    values: Values,
    optimizer: ModuleOptimizer,
    drawn: f64,
}

#[derive(Clone)]
struct Loss(Tensor<1>);

impl ItemLazy for Loss {
    fn sync(self) -> Result<Self, ExecutionError> {
        Ok(Self(self.0.to_device(&Device::flex())))
    }
}

impl Adaptor<LossInput> for Loss {
    fn adapt(&self) -> LossInput {
        LossInput::new(self.0.clone())
    }
}

impl PolicyLearner for Learner {
    type TrainContext = Loss;
    type InnerPolicy = Greedy;
    type Record = ();

    fn train(&mut self, batch: LearnerTransitionBatch<Greedy>) -> RLTrainOutput<Loss, Values> {
        let next = self.values.valid().forward(batch.next_states.0).max_dim(1);
        let targets = batch.rewards + next * (batch.dones * -DISCOUNT + DISCOUNT);
        let device = Device::default().autodiff();
        let [states, pushes, targets] = [batch.states.0, batch.actions.0, targets].map(|of| of.to_device(&device));
        let values = self.values.forward(states).gather(1, pushes.int());
        let loss = (values - targets).powi_scalar(2).mean();
        let gradients = GradientsParams::from_grads(loss.backward(), &self.values);
        self.values = self.optimizer.step(1e-2, self.values.clone(), gradients);
        RLTrainOutput { policy: self.values.valid(), item: Loss(loss.detach()) }
    }

    fn policy(&self) -> Greedy {
        Greedy { values: self.values.valid(), drawn: self.drawn }
    }

    fn update_policy(&mut self, _: Greedy) {}

    fn record(&self) {}

    fn load_record(self, (): ()) -> Self {
        self
    }

    fn device(&self) -> Device {
        Device::default()
    }
}

/// Trains by the strategy, with so many environments, groups of so many, and the delays of the arguments.
pub fn reinforced() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(812);
    let [strategy, environments, group, delay] = &arguments()[..] else { panic!("four arguments") };
    let [environments, group] = [environments, group].map(|number| number.parse().expect("a number"));
    let delay: u64 = delay.parse().expect("a number");
    let config = OffPolicyConfig::new()
        .with_num_envs(environments)
        .with_autobatch_size(group)
        .with_train_batch_size(16)
        .with_replay_buffer_size(64)
        .with_train_interval(3)
        .with_warmup_steps(24)
        .with_eval_interval(50)
        .with_eval_episodes(2);
    let device = Device::default().autodiff();
    let layer = |inputs, outputs| LinearConfig::new(inputs, outputs).init(&device);
    let values = initialize(Values { hidden: layer(2, 16), output: layer(16, 2) }).expect("a seed");
    let (strategy, draws) = match strategy.as_str() {
        "ours" => (rl::off_policy(config), true),
        // Burn's threads have no stream to draw from.
        _ => (RLStrategies::OffPolicyStrategy(config), false),
    };
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let environment = move || {
        let rng = draws.then(|| RandomStream::current().expect("the environment's").rng());
        let delay = delay * (STARTED.fetch_add(1, Ordering::Relaxed) % 3);
        Line { place: 0.0, speed: 0.0, steps: 0, rng, delay }
    };
    let learner = Learner { values, optimizer: AdamConfig::new().init(), drawn: if draws { 0.3 } else { 0.0 } };
    let folder = std::env::var(FOLDER).expect("a folder");
    let result = RLTraining::new(&folder, environment)
        .metric_train(LossMetric::new())
        .metric_episode(EpisodeLengthMetric::new())
        .with_application_logger(None)
        .num_steps(160)
        .with_learning_strategy(strategy)
        .launch(learner);
    assert!(result.error.is_none(), "{:?}", result.error);
    report("digest", digest(&result.policy.values));
}

/// The digests of runs with these delays.
fn digests(strategy: &str, environments: &str, group: &str, delays: &[&str]) -> Vec<String> {
    let run = |delay: &&str| {
        let folder = Folder::new();
        let program = Program::new("reinforced").arguments(&[strategy, environments, group, delay]);
        program.env(FOLDER, folder.path()).run().digest().to_owned()
    };
    delays.iter().map(run).collect()
}

#[test]
fn weights_do_not_depend_on_how_long_environments_take() {
    for (environments, group) in [("1", "1"), ("3", "1"), ("5", "2")] {
        let digests = digests("ours", environments, group, &["0", "700", "5000"]);
        assert!(digests.iter().all(|digest| *digest == digests[0]), "{environments} environments: {digests:?}");
    }
    // Steps that take longer than whatever the training does meanwhile.
    let burn = digests("burn", "3", "1", &["0", "300000"]);
    assert_ne!(burn[0], burn[1], "burn-train's own strategy");
}
