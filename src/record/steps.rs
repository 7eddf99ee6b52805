//! Where steps begin and end.
//!
//! A program says so by `step` or a loader's batches. Where it does not, a step ends after its update: at the first operation
//! that is not element-wise, when a tensor that the update has written is freed, or when the process ends. The update begins with
//! the first element-wise operation after a backward pass that consumes a tensor from before the step. Where none does, the step
//! ends when the next backward pass begins.

use super::mark::{Mark, Named, Part, PartKind};
use super::queue::{Begun, Queue};
use super::recorder::{Handles, Live, Recorder, Role, extents, is_of_update};
use burn_backend::StreamId;
use burn_deterministic_recording::{Origin, Phase, Record, State, StateTensor};
use burn_ir::TensorId;
use std::collections::HashMap;
use std::sync::Arc;

impl Recorder {
    pub(super) fn backward_pass(&mut self, handles: &Handles) {
        let ends = self.queue().ends_by_pass();
        if ends {
            // What else lives may be of the next step, whose forward pass has run.
            let role = |role| if role == Role::Updated { Role::Outlives } else { role };
            self.state(handles, |_, _| true, role);
        }
        let queue = self.queue();
        if !queue.says_steps {
            queue.place.step = Some(queue.backward_passes);
        }
        queue.backward_passes += 1;
        queue.before_backward = queue.operations();
        queue.place.phase = Phase::Backward;
    }

    /// A step ends with an update, of a program that does not say where steps are.
    pub(super) fn update_ends(&mut self, handles: &Handles) {
        self.update_of_ends(handles, |_, _| true);
    }

    /// The same where a tensor of the update is about to be freed. Others may have been freed before it or not: an optimizer
    /// frees what it keeps in the order of a hash map. So the state has those of the update alone.
    pub(super) fn update_ends_by_drop(&mut self, handles: &Handles) {
        self.update_of_ends(handles, is_of_update);
    }

    fn update_of_ends(&mut self, handles: &Handles, has: impl Fn(&Queue, &Live) -> bool) {
        self.state(handles, has, |_| Role::Outlives);
        let queue = self.queue();
        queue.last_step = queue.place.step;
        queue.place.step = Some(queue.backward_passes);
        queue.place.phase = Phase::Forward;
    }

    pub(super) fn mark(&mut self, mark: &Mark, handles: &Handles) {
        let step = self.queue().step;
        match mark {
            Mark::Begins(part, source) => {
                self.begins(part, handles);
                self.queue().part_begins(part.kind(), format!("{}:{}", source.file(), source.line()));
            }
            Mark::Ends(kind) => {
                self.ends(*kind, handles);
                self.queue().part_ends(*kind);
            }
            Mark::Batch { epoch, batch } => {
                match step {
                    Some(Begun::Batch) => self.step_ends(handles),
                    _ => self.first_state(handles),
                }
                let queue = self.queue();
                queue.before_batch = queue.operations();
                queue.place.epoch = Some(*epoch);
                queue.place.batch = Some(*batch);
                if queue.step.is_none() {
                    queue.place.step = Some(queue.next_batch);
                    queue.place.phase = Phase::Forward;
                    queue.next_batch += 1;
                    queue.step = Some(Begun::Batch);
                }
            }
            Mark::BatchesEnd if step == Some(Begun::Batch) => {
                let queue = self.queue();
                if queue.operations() == queue.before_batch {
                    // There was no batch.
                    queue.next_batch -= 1;
                    (queue.step, queue.place.step) = (None, None);
                } else {
                    self.step_ends(handles);
                }
                let place = &mut self.queue().place;
                (place.epoch, place.batch) = (None, None);
            }
            Mark::BatchesEnd => {}
            Mark::Parameters(parameters) => {
                for Named { tensor, path, is_buffer } in parameters {
                    if let Some(live) = self.live.get_mut(tensor) {
                        live.parameter = Some(path.as_str().into());
                        live.buffer = live.parameter.clone().filter(|_| *is_buffer);
                    }
                }
            }
            Mark::ProcessEnds if self.queue().is_updating() => {
                // A model that is gone may not have been computed to its end.
                self.forget(handles);
                if self.has_updated() {
                    self.update_ends(handles);
                }
            }
            Mark::ProcessEnds => {}
        }
    }

    fn begins(&mut self, part: &Part, handles: &Handles) {
        match part {
            Part::Label(label) => self.queue().place.labels.push(label.clone()),
            Part::Step(number) => {
                self.first_state(handles);
                let queue = self.queue();
                queue.place.step = Some(*number);
                queue.place.phase = Phase::Forward;
                // A batch's step ends with the batch, and the next batch is the next step.
                queue.step = queue.step.or(Some(Begun::Step));
                queue.next_batch = number + 1;
            }
            Part::Epoch(epoch) => self.queue().place.epoch = Some(*epoch),
        }
    }

    fn ends(&mut self, kind: PartKind, handles: &Handles) {
        match kind {
            PartKind::Label => {
                self.queue().place.labels.pop();
            }
            PartKind::Step if self.queue().step == Some(Begun::Step) => self.step_ends(handles),
            PartKind::Step => {}
            PartKind::Epoch => self.queue().place.epoch = None,
        }
    }

    /// Records the values that a training begins with.
    fn first_state(&mut self, handles: &Handles) {
        let queue = self.queue();
        queue.says_steps = true;
        if !queue.has_state {
            self.state(handles, |_, _| true, |_| Role::Outlives);
        }
    }

    fn step_ends(&mut self, handles: &Handles) {
        self.state(handles, |_, _| true, |_| Role::Outlives);
        let queue = self.queue();
        queue.step = None;
        queue.last_step = queue.place.step.take();
        queue.place.phase = Phase::Forward;
    }

    /// Records the tensors that live and were written since the last state of the thread, as far as the state `has` them. From
    /// now on they have the role that `role` makes of theirs.
    fn state(&mut self, handles: &Handles, has: impl Fn(&Queue, &Live) -> bool, role: impl Fn(Role) -> Role) {
        let queue = self.queue();
        queue.has_state = true;
        let (thread, operations, place) = (queue.number, queue.operations(), queue.place.clone());
        self.forget(handles);
        let queue = &self.queues[&StreamId::current()];
        let is_new = |live: &Live| live.is_new && live.thread == thread && has(queue, live);
        let mut new: Vec<(&TensorId, &mut Live)> = self.live.iter_mut().filter(|(_, live)| is_new(live)).collect();
        new.sort_unstable_by_key(|(_, live)| live.origin);
        // Burn holds the last update of running statistics beside their value: the later one has the name.
        let latest: HashMap<Arc<str>, Origin> =
            new.iter().filter_map(|(_, live)| Some((live.buffer.clone()?, live.origin))).collect();
        let (mut tensors, mut digests) = (Vec::with_capacity(new.len()), Vec::with_capacity(new.len()));
        for (id, live) in new {
            live.is_new = false;
            live.role = role(live.role);
            let handle = handles.get_handle_ref(id);
            digests.push(handle.and_then(|handle| self.digests.ask(handle, &live.shape)));
            tensors.push(StateTensor {
                origin: live.origin,
                shape: extents(&live.shape),
                dtype: live.dtype.name().to_owned(),
                parameter: live.name(|buffer| latest.get(buffer) == Some(&live.origin)).map(str::to_owned),
                digest: None,
            });
        }
        self.record(Record::State(State { thread, operations, place, tensors }), None, digests);
        // What waits is in use, and the next update would copy it before it writes.
        self.digests.launch();
        self.send_step();
    }
}
