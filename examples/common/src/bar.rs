//! burn-train's progress as a bar.

use burn::train::LearnerSummary;
use burn::train::logger::{EvaluationProgressLogger, TrainingProgressLogger};
use burn::train::metric::MetricDefinition;
use burn::train::renderer::{
    EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation, MetricsRendererTraining,
};
use indicatif::{ProgressBar, ProgressStyle};
use std::error::Error;

/// Shows burn-train's progress in an epoch, and nothing that stays.
pub struct Bar(ProgressBar);

impl Bar {
    /// Hidden until a training starts.
    pub fn new() -> Self {
        Self(ProgressBar::hidden())
    }
}

impl Default for Bar {
    fn default() -> Self {
        Self::new()
    }
}

impl TrainingProgressLogger for Bar {
    fn start(&mut self, _epochs: usize, _first: usize, _items: Option<usize>, _label: Option<&str>) {}

    fn start_split(&mut self, split: &str, items: usize) {
        let style = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} samples, {per_sec}");
        self.0 = ProgressBar::new(items as u64).with_style(style.expect("a template without mistakes"));
        self.0.set_prefix(split.to_owned());
    }

    fn update_split(&mut self, items: usize) {
        self.0.set_position(items as u64);
    }

    fn end_split(&mut self) {
        self.0.finish_and_clear();
    }

    fn update_epoch(&mut self, _epoch: usize) {}

    fn end(&mut self) {}

    fn log_event_training(&mut self, _event: String) {}
}

impl MetricsRendererTraining for Bar {
    fn update_train(&mut self, _state: MetricState) {}

    fn update_valid(&mut self, _state: MetricState) {}

    fn on_train_end(&mut self, _summary: Option<LearnerSummary>) -> Result<(), Box<dyn Error>> {
        Ok(())
    }
}

impl EvaluationProgressLogger for Bar {
    fn start_global_progress(&mut self, _tests: usize) {}

    fn start_test(&mut self, _name: &str, _items: usize) {}

    fn update_test_progress(&mut self, _items: usize) {}

    fn end_test(&mut self) {}

    fn end_global_progress(&mut self) {}

    fn log_event_evaluation(&mut self, _event: String) {}
}

impl MetricsRendererEvaluation for Bar {
    fn update_test(&mut self, _name: EvaluationName, _state: MetricState) {}
}

impl MetricsRenderer for Bar {
    fn manual_close(&mut self) {}

    fn register_metric(&mut self, _definition: MetricDefinition) {}
}
