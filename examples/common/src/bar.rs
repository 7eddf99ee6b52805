//! burn-train's progress as a bar.

use burn::train::LearnerSummary;
use burn::train::logger::{EvaluationProgressLogger, TrainingProgressLogger};
use burn::train::metric::{MetricDefinition, MetricId};
use burn::train::renderer::{
    EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation, MetricsRendererTraining,
};
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::error::Error;

/// Shows burn-train's progress in an epoch with its metrics, and nothing that stays.
pub struct Bar {
    bar: ProgressBar,
    metrics: Vec<(MetricId, String)>,
    /// By name, of the present split.
    values: BTreeMap<String, f64>,
}

impl Bar {
    /// Hidden until a training starts.
    pub fn new() -> Self {
        Self { bar: ProgressBar::hidden(), metrics: Vec::new(), values: BTreeMap::new() }
    }

    fn show(&mut self, state: MetricState) {
        let MetricState::Numeric(entry, Some(value)) = state else { return };
        let name = self.metrics.iter().find(|(id, _)| *id == entry.metric_id).map(|(_, name)| name.clone());
        self.values.extend(name.map(|name| (name, value.current())));
        let values = self.values.iter().map(|(name, value)| format!(", {name} {value:.4}"));
        self.bar.set_message(values.collect::<String>());
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
        let style = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} samples, {per_sec}, {eta} left{msg}");
        self.values.clear();
        self.bar = ProgressBar::new(items as u64).with_style(style.expect("a template without mistakes"));
        self.bar.set_prefix(split.to_owned());
    }

    fn update_split(&mut self, items: usize) {
        self.bar.set_position(items as u64);
    }

    fn end_split(&mut self) {
        self.bar.finish_and_clear();
    }

    fn update_epoch(&mut self, _epoch: usize) {}

    fn end(&mut self) {}

    fn log_event_training(&mut self, _event: String) {}
}

impl MetricsRendererTraining for Bar {
    fn update_train(&mut self, state: MetricState) {
        self.show(state);
    }

    fn update_valid(&mut self, state: MetricState) {
        self.show(state);
    }

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

    fn register_metric(&mut self, definition: MetricDefinition) {
        self.metrics.push((definition.metric_id, definition.name.to_lowercase()));
    }
}
