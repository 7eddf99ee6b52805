//! burn-train's `Learner` in shards.

use super::Shards;
use super::error::Error;
use crate::data::deal;
use burn_core::data::dataloader::Progress;
use burn_core::data::dataset::DatasetError;
use burn_optim::GradientsAccumulator;
use burn_train::train::WorkerFailure;
use burn_train::{
    EventProcessorTraining, InferenceStep, Interrupter, Learner, LearnerEvent, LearnerModel,
    SupervisedLearningStrategy, SupervisedTrainingEventProcessor, TrainLoader, TrainStep, TrainingComponents,
    TrainingError, TrainingItem, TrainingStrategy, ValidLoader,
};
use std::cell::RefCell;
use std::sync::Arc;

impl Shards {
    /// The strategy of a burn-train training that computes each step in these shards:
    /// `SupervisedTraining::with_training_strategy(shards.strategy(..))`.
    ///
    /// A step has the next batches of the training loader, one for each shard, and fewer at the end of an epoch.
    /// `samples` gives the number of samples in a batch. Step `t` of epoch `e`, `t` from 0 and `e` from 1, is
    /// [`step`](Self::step) `e * 2^32 + t`, so a training goes on from a checkpoint as if it had not stopped. With
    /// `grads_accumulation(n)` the gradients of `n` steps are added, in order, as burn-train adds those of `n` batches.
    /// Metrics are given the outputs of the shards by shard. Validation runs on the first device.
    ///
    /// The training loader makes each batch on the device of its shard. With several devices it is a
    /// [`DataLoader`](crate::data::DataLoader), or hands `to_device` on to one.
    /// `SupervisedTraining::gradient_checkpointing` has no effect on a strategy.
    ///
    /// # Errors
    ///
    /// Those of [`step`](Self::step) end the training: `LearningResult::error` is a `TrainingError::Workers` with the
    /// text, or `TrainingError::Dataset` for [`Error::Loader`], and for [`Error::Learner`] in a
    /// [group](Self::in_group).
    pub fn strategy<M: LearnerModel>(
        self,
        samples: impl Fn(&<M as TrainStep>::Input) -> usize + 'static,
    ) -> TrainingStrategy<M> {
        TrainingStrategy::Custom(Arc::new(Strategy { shards: RefCell::new(self), samples }))
    }

    /// `error`, as burn-train reports what fails on a device.
    fn failure(&self, error: &Error) -> TrainingError {
        let device_id = match error {
            Error::Shard { shard, .. } => self.place_of(*shard),
            _ => 0,
        };
        TrainingError::Workers(vec![WorkerFailure { device_id, message: error.to_string() }])
    }
}

struct Strategy<F> {
    shards: RefCell<Shards>,
    samples: F,
}

/// A training that runs.
struct Running<'a, M: LearnerModel, F> {
    shards: &'a mut Shards,
    samples: &'a F,
    learner: Learner<M>,
    processor: SupervisedTrainingEventProcessor<M>,
    interrupter: Interrupter,
    /// Steps whose gradients are added for one of the optimizer.
    accumulation: usize,
}

impl<M: LearnerModel, F: Fn(&<M as TrainStep>::Input) -> usize> Running<'_, M, F> {
    /// Tells the metrics of the training split of something.
    fn tell_train(&mut self, event: LearnerEvent<<M as TrainStep>::Output>) {
        self.interrupter.fail_on_error(self.processor.process_train(event));
    }

    /// Tells those of the validation split.
    fn tell_valid(&mut self, event: LearnerEvent<<M as InferenceStep>::Output>) {
        self.interrupter.fail_on_error(self.processor.process_valid(event));
    }

    fn train(&mut self, epoch: usize, loader: &TrainLoader<M>) {
        let mut batches = loader.iter();
        let with_progress = core::iter::from_fn(|| {
            let batch = batches.next()?;
            Some(batch.map(|batch| (batch, batches.progress())))
        });
        let samples = self.samples;
        let mut accumulator = GradientsAccumulator::new();
        let (mut accumulated, mut iteration) = (0, 0);
        let steps = self.shards.steps_of(with_progress, |(batch, _)| samples(batch));
        for (step, parts) in (0..).zip(steps) {
            let parts = match parts {
                Ok(parts) => parts,
                Err(error) => return self.interrupter.fail(error),
            };
            let model = self.learner.model();
            let number = ((epoch as u64) << 32) | step;
            let computed = match self.shards.step(number, &model, parts, run_shard) {
                Ok(computed) => computed,
                Err(error) => return self.interrupter.fail(self.shards.failure(&error)),
            };
            accumulator.accumulate(&model, computed.gradients);
            // The optimizer writes the parameters in place where nobody else has them.
            drop(model);
            accumulated += 1;
            let is_last = computed.outputs.last().is_some_and(|(_, progress)| progress.is_completed());
            if accumulated == self.accumulation || is_last {
                self.learner.lr_step();
                self.learner.optimizer_step(accumulator.grads());
                accumulated = 0;
            }
            for (item, progress) in computed.outputs {
                iteration += 1;
                let item = TrainingItem::new(item, progress, Some(iteration), Some(self.learner.lr_current()));
                self.tell_train(LearnerEvent::ProcessedItem(item));
            }
            if self.interrupter.should_stop() {
                return;
            }
        }
    }

    fn validate(&mut self, loader: &ValidLoader<M>) {
        let model = self.learner.model().valid();
        let mut batches = loader.iter();
        let mut iteration = 0;
        while let Some(batch) = batches.next() {
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => return self.interrupter.fail(error),
            };
            iteration += 1;
            let output = InferenceStep::step(&model, batch);
            let item = TrainingItem::new(output, batches.progress(), Some(iteration), None);
            self.tell_valid(LearnerEvent::ProcessedItem(item));
            if self.interrupter.should_stop() {
                return;
            }
        }
    }
}

/// The forward and backward pass of a shard.
fn run_shard<M: LearnerModel>(
    model: &M,
    (batch, progress): (<M as TrainStep>::Input, Progress),
) -> (burn_optim::GradientsParams, (<M as TrainStep>::Output, Progress)) {
    let output = TrainStep::step(model, batch);
    (output.grads, (output.item, progress))
}

impl<M: LearnerModel, F: Fn(&<M as TrainStep>::Input) -> usize> SupervisedLearningStrategy<M> for Strategy<F> {
    /// The events, and what is looked at when, are those of burn-train's strategy for one device.
    fn fit(
        &self,
        components: TrainingComponents<M>,
        mut learner: Learner<M>,
        train: TrainLoader<M>,
        valid: ValidLoader<M>,
        starting_epoch: usize,
    ) -> (M, SupervisedTrainingEventProcessor<M>) {
        let mut shards = self.shards.borrow_mut();
        let device = shards.device().clone();
        let valid = valid.to_device(&device.clone().without_autodiff());
        learner.fork(&device);
        let (mut checkpointer, mut early_stopping) = (components.checkpointer, components.early_stopping);
        let mut running = Running {
            shards: &mut shards,
            samples: &self.samples,
            learner,
            processor: components.event_processor,
            interrupter: components.interrupter,
            accumulation: components.grad_accumulation.unwrap_or(1),
        };
        if running.shards.group.is_some() {
            running.interrupter.fail(DatasetError::new(Error::Learner));
            return (running.learner.model(), running.processor);
        }
        let train = match deal(&*train, running.shards.devices()) {
            Some(train) => train,
            None if running.shards.devices.len() == 1 => train.to_device(&device),
            None => {
                running.interrupter.fail(DatasetError::new(Error::Loader));
                return (running.learner.model(), running.processor);
            }
        };
        for epoch in starting_epoch..=components.num_epochs {
            running.tell_train(LearnerEvent::StartSplit { epoch_number: epoch, total_items: train.num_items() });
            running.train(epoch, &train);
            running.tell_train(LearnerEvent::EndSplit(epoch));
            if running.interrupter.should_stop() {
                break;
            }
            running.tell_valid(LearnerEvent::StartSplit { epoch_number: epoch, total_items: valid.num_items() });
            running.validate(&valid);
            running.tell_valid(LearnerEvent::EndSplit(epoch));
            running.tell_train(LearnerEvent::EndEpoch(epoch));
            if checkpointer.is_some() || early_stopping.is_some() {
                let flushed = running.processor.flush();
                running.interrupter.fail_on_error(flushed);
            }
            if running.interrupter.should_stop() {
                break;
            }
            if let Some(checkpointer) = &mut checkpointer {
                checkpointer.checkpoint(&running.learner, epoch, &components.event_store);
            }
            if early_stopping.as_mut().is_some_and(|strategy| strategy.should_stop(epoch, &components.event_store)) {
                break;
            }
        }
        (running.learner.model(), running.processor)
    }
}
