//! A block of Burn's operation stream, and how it runs.

use super::against_reference::{checked, not_reached};
use super::bind::bind;
use super::elementwise::{self, Parts, Sequence};
use super::groups::{Group, Groups, Kind};
use super::products::{self, Lead};
use super::reach::Reach;
use super::rerun::{self, repeated};
use super::schedule::{MOST_ELEMENTS, MOST_ELEMENTS_OF_ONE, Size, Step, steps};
use super::work::{Together, Work};
use super::{coverage, execution_plans, interpret};
use crate::backend::{OutOfRange, Places, note_dependents, out_of_range, out_of_range_before};
use crate::burn_loader::warn_of_workers;
use crate::catalogue;
use crate::context;
use crate::error::Error;
use crate::exit;
use crate::known_answer;
use crate::memory;
use crate::record;
use crate::settings::is_observing;
use crate::violation::violated;
use burn_backend::{ExecutionError, StreamId};
use burn_cubecl::CubeDevice;
use burn_cubecl::fusion::{FallbackOperation, FusedOperation};
use burn_cubecl_fusion::CubeFusionHandle;
use burn_deterministic_kernels::elementwise::shares_launches;
use burn_fusion::stream::Context;
use burn_ir::{OperationIr, TensorError, TensorId, TensorIr};
use cubecl::client::Client;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

/// Operations in program order, in Burn's relative form.
pub(super) struct Block {
    device: CubeDevice,
    client: Client,
    operations: Vec<OperationIr>,
    groups: Groups,
    /// The tensors that the operations read and do not make, in relative form.
    operands: Vec<TensorId>,
    /// The sizes of the groups when they ran last, and the steps in which they did.
    order: Option<(Vec<Option<Size>>, Vec<Step>)>,
    /// Made when something depends on an index that is not checked yet.
    reach: OnceLock<Reach>,
}

impl Block {
    /// A block of `groups`, of which none needs a later one.
    pub(super) fn new(device: CubeDevice, operations: Vec<OperationIr>, groups: Vec<Group>) -> Self {
        let (client, groups) = (device.client(), Groups::new(&operations, groups));
        let (mut operands, mut known) = (Vec::new(), HashSet::new());
        for operation in operations.iter().filter(|operation| !catalogue::is_free(operation)) {
            operands.extend(operation.inputs().map(|input| input.id).filter(|&input| known.insert(input)));
            known.extend(operation.outputs().map(|output| output.id));
        }
        Self { device, client, operations, groups, operands, order: None, reach: OnceLock::new() }
    }

    /// Has the current stream wait for the operands that other ones have.
    fn wait_for_operands(&self, context: &Context<CubeFusionHandle>) {
        let handles = self.operands.iter().filter_map(|operand| {
            context.tensors.get(operand).and_then(|tensor| context.handles.get_handle_ref(&tensor.id))
        });
        let handles = handles.map(|operand| &operand.handle);
        let of_others: Vec<_> = handles.filter(|handle| handle.stream != StreamId::current()).collect();
        of_others.iter().for_each(|handle| warn_of_workers(handle.stream));
        memory::wait_for_owners(&self.client, of_others);
    }

    /// Refuses to run while a graph of kernels is captured.
    fn check_capture(&self) {
        let computing = self.operations.iter().find(|operation| catalogue::computes(operation));
        if let (true, Some(operation)) = (self.client.is_capturing(), computing) {
            let (operation, device) = (catalogue::operation(operation), format!("{:?}", self.device));
            violated(&Error::Captured { operation, device });
        }
    }

    /// Refuses a device whose arithmetic is not what the kernels rely on. True where the settings let that pass: then
    /// the block runs on the plain backend.
    fn check_arithmetic(&self) -> bool {
        // A graph of kernels that is captured may hold no other kernel; the next block asks.
        if !self.client.is_capturing()
            && let Err(error) = known_answer::of(&self.device)
        {
            not_reached(&self.operations);
            violated(error);
            return true;
        }
        false
    }

    /// Runs the block's operations on Burn's plain backend.
    fn run_plain(
        &self,
        context: &mut Context<CubeFusionHandle>,
        fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>,
    ) {
        for (index, operation) in self.operations.iter().enumerate() {
            interpret::run_plain(operation, context, || fallback(index));
        }
    }

    /// Runs some of the block's operations one after the other, but for the frees that [come later](Self::comes_later).
    fn run_each(
        &self,
        operations: impl IntoIterator<Item = usize>,
        context: &mut Context<CubeFusionHandle>,
        fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>,
    ) {
        for index in operations {
            if !self.comes_later(index) {
                interpret::run(&self.operations[index], &self.device, context, || fallback(index));
            }
        }
    }

    /// Whether an operation is a free, and comes [behind all groups](Self::run_groups) that use the tensor.
    fn comes_later(&self, index: usize) -> bool {
        self.groups.all.len() > 1 && !record::is_recording() && catalogue::is_free(&self.operations[index])
    }

    /// Runs the block's operations in parts.
    fn run_parts(
        &self,
        parts: &Parts,
        context: &mut Context<CubeFusionHandle>,
        fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>,
    ) {
        for (operations, part) in parts {
            match part {
                Some(part) => self.run_together(part, operations, context, fallback),
                None => self.run_each(operations.iter().copied(), context, fallback),
            }
        }
    }

    /// Whether a step of a recording ends among the operations of a group.
    fn ends_step(&self, group: &Group, context: &Context<CubeFusionHandle>) -> bool {
        record::ends_step(group.operations.iter().map(|&index| &self.operations[index]), |operation| {
            bind(operation, context)
        })
    }

    /// Whether a sequence does nothing but assign a slice, which Burn's kernel may write in place.
    fn assigns_in_place(&self, together: &Together, context: &Context<CubeFusionHandle>) -> bool {
        let handle = |tensor: TensorId| context.handles.get_handle_ref(&context.tensors.get(&tensor)?.id);
        let own = together.sequence.assigns_own().filter(|_| !record::is_recording()).and_then(handle);
        own.is_some_and(|own| memory::may_write(&own.client, &own.handle))
    }

    /// Runs a group's operations.
    fn run_group(
        &self,
        group: &Group,
        context: &mut Context<CubeFusionHandle>,
        fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>,
    ) {
        match &group.work {
            Work::Operations | Work::Reduction(_) => self.run_each(group.operations.iter().copied(), context, fallback),
            Work::Together(_) if self.ends_step(group, context) => {
                self.run_each(group.operations.iter().copied(), context, fallback);
            }
            Work::Together(together) if self.assigns_in_place(together, context) => {
                self.run_leads(&together.leads, context, fallback);
                self.run_each(together.operations.iter().chain(&together.after).copied(), context, fallback);
            }
            Work::Together(together) if record::each_operation() => {
                self.run_parts(group.recorded(&together.sequence, &self.operations), context, fallback);
            }
            Work::Together(together) if !together.sequence.fits(&self.client, context) => {
                self.run_parts(&together.parts, context, fallback);
            }
            // A recording numbers results in program order.
            Work::Together(together) if record::is_recording() && !together.is_in_order() => {
                self.run_parts(group.in_order(&together.sequence, &self.operations), context, fallback);
            }
            Work::Together(together) => {
                match record::is_recording() {
                    true => self.run_each(together.before.iter().copied(), context, fallback),
                    false => self.run_leads(&together.leads, context, fallback),
                }
                self.run_together(&together.sequence, &together.operations, context, fallback);
                self.run_each(together.after.iter().copied(), context, fallback);
            }
        }
    }

    /// Runs the groups in [steps]. Frees what no other group uses.
    fn run_groups(
        &mut self,
        context: &mut Context<CubeFusionHandle>,
        fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>,
    ) {
        let sizes = self.sizes(context);
        let last = self.order.take().filter(|(of_last, _)| *of_last == sizes);
        let (sizes, steps) = last.unwrap_or_else(|| {
            let steps = steps(&self.groups, |index| sizes[index]);
            (sizes, steps)
        });
        for Step { groups, frees } in &steps {
            let groups: Vec<_> = groups.iter().map(|&index| &self.groups.all[index]).collect();
            match groups[..] {
                [group] => self.run_group(group, context, fallback),
                [Group { kind: Kind::Product(_), .. }, ..] => {
                    let indices: Vec<_> = groups.iter().flat_map(|group| group.operations.iter().copied()).collect();
                    self.run_products(&indices, context);
                }
                _ => self.run_side_by_side(&groups, context, fallback),
            }
            for &index in frees {
                interpret::run(&self.operations[index], &self.device, context, || fallback(index));
            }
        }
        self.order = Some((sizes, steps));
    }

    /// The size of each group whose launches may be shared, if it is small enough to be put off.
    fn sizes(&self, context: &Context<CubeFusionHandle>) -> Vec<Option<Size>> {
        let (sequences_share, products_share) = (shares_launches(&self.client), products::share_launches(&self.device));
        let size = |group: &Group| {
            let shares = if matches!(group.kind, Kind::Product(_)) { products_share } else { sequences_share };
            if shares { self.size(group, context) } else { None }
        };
        self.groups.all.iter().map(size).collect()
    }

    /// The size of a group whose launches may be shared, if it is small enough to be put off.
    fn size(&self, group: &Group, context: &Context<CubeFusionHandle>) -> Option<Size> {
        let (elements, held) = match (&group.kind, group.shared()) {
            (Kind::Product(_), _) => {
                let [lhs, rhs, result] = products::elements(&self.operations[group.operations[0]], context)?;
                (lhs.max(rhs) <= MOST_ELEMENTS).then_some((result, lhs + rhs + result))?
            }
            (_, Some(sequence)) => {
                let elements = sequence.elements(context);
                (elements, elements * sequence.tensors())
            }
            _ => return None,
        };
        (elements <= MOST_ELEMENTS_OF_ONE).then_some(Size { elements, held })
    }

    /// Runs the groups in program order, in which a recording numbers results.
    fn run_in_order(
        &self,
        context: &mut Context<CubeFusionHandle>,
        fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>,
    ) {
        match &self.groups.whole {
            None => self.groups.all.iter().for_each(|group| self.run_group(group, context, fallback)),
            Some((whole, Some(sequence))) if !self.ends_step(whole, context) => {
                let parts = match record::each_operation() {
                    true => whole.recorded(sequence, &self.operations),
                    false => whole.in_order(sequence, &self.operations),
                };
                self.run_parts(parts, context, fallback);
            }
            Some((whole, _)) => self.run_each(whole.operations.iter().copied(), context, fallback),
        }
    }

    /// Runs the sequences of groups in as few launches as these take.
    fn run_side_by_side(
        &self,
        groups: &[&Group],
        context: &mut Context<CubeFusionHandle>,
        fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>,
    ) {
        let sequences: Vec<_> = groups.iter().filter_map(|group| group.shared()).collect();
        let all = || groups.iter().filter_map(|group| group.together());
        all().for_each(|together| self.run_leads(&together.leads, context, fallback));
        let operations: Vec<_> = groups.iter().flat_map(|group| group.side_by_side()).copied().collect();
        let work = |context: &Context<_>| elementwise::work_of_each(&sequences, context);
        self.run_at_once(&operations, work, context, |context| {
            elementwise::run_each(&sequences, &self.device, context)
        });
        self.run_each(all().flat_map(|together| together.after.iter().copied()), context, fallback);
    }

    /// Runs the operations that run before the kernel.
    fn run_leads(
        &self,
        leads: &[Lead],
        context: &mut Context<CubeFusionHandle>,
        fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>,
    ) {
        for lead in leads {
            match lead {
                Lead::Operation(index) => self.run_each([*index], context, fallback),
                Lead::Products(indices) => {
                    let those = || indices.iter().map(|&index| &self.operations[index]);
                    if !products::share_launches(&self.device) || !products::are_small(those(), context) {
                        self.run_each(indices.iter().copied(), context, fallback);
                        continue;
                    }
                    self.run_products(indices, context);
                }
            }
        }
    }

    /// Runs products of equal sizes that share launches.
    fn run_products(&self, indices: &[usize], context: &mut Context<CubeFusionHandle>) {
        let those = || indices.iter().map(|&index| &self.operations[index]);
        let work = |context: &Context<_>| products::work(those(), context);
        self.run_at_once(indices, work, context, |context| products::run(those(), &self.device, context));
    }

    /// Runs some of the block's operations in one kernel.
    fn run_together(
        &self,
        sequence: &Sequence,
        operations: &[usize],
        context: &mut Context<CubeFusionHandle>,
        fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>,
    ) {
        let Some(error) = sequence.refused(&self.device, context) else {
            let work = |context: &Context<_>| sequence.work(context);
            return self.run_at_once(operations, work, context, |context| sequence.run(&self.device, context));
        };
        let recorded = self.recording(operations, context);
        not_reached(operations.iter().map(|&index| &self.operations[index]));
        violated(&error);
        let now = operations.iter().filter(|&&index| !self.comes_later(index));
        now.for_each(|&index| fallback(index).run(context));
        if let Some(recorded) = recorded {
            recorded.end(&mut context.handles);
        }
    }

    /// Runs some of the block's operations, which are `work`, by `body`, which returns whether it launched a kernel.
    fn run_at_once(
        &self,
        operations: &[usize],
        work: impl Fn(&Context<CubeFusionHandle>) -> rerun::Work,
        context: &mut Context<CubeFusionHandle>,
        body: impl Fn(&mut Context<CubeFusionHandle>) -> bool,
    ) {
        let recorded = self.recording(operations, context);
        let bound = |context: &Context<_>| self.bound(operations, context);
        checked(&self.device, context, bound, |context| {
            repeated(&self.device, context, work, |context| coverage::launching(|| body(context)));
        });
        if let Some(recorded) = recorded {
            recorded.end(&mut context.handles);
        }
    }

    /// Some of the block's operations in global form.
    fn bound(&self, operations: &[usize], context: &Context<CubeFusionHandle>) -> Vec<OperationIr> {
        operations.iter().map(|&index| bind(&self.operations[index], context)).collect()
    }

    /// The recording of some of the block's operations that run at once.
    fn recording(&self, operations: &[usize], context: &Context<CubeFusionHandle>) -> Option<record::Together> {
        record::Together::begin(|| self.bound(operations, context), &context.handles)
    }

    /// Reports an index out of range, in this block or in an earlier one: if the program waits for this block, it waits
    /// for the checks too. The results of the operations that got one carry the error, what earlier blocks have computed from them, and
    /// the results of the groups of this block that are [concerned](Reach::concerned).
    ///
    /// # Panics
    ///
    /// When there is one, and it concerns all groups: Burn gives their results the error.
    fn report_indices(&self, context: &mut Context<CubeFusionHandle>) {
        // An upload carries no error.
        if !self.operations.iter().any(catalogue::computes) {
            return;
        }
        let before = out_of_range_before(&self.device);
        let found = out_of_range(&self.device, context::with(|context| context.waits));
        self.note_dependents(context);
        let is_new = found.is_some();
        let mut failed: Vec<TensorId> =
            [&before, &found].into_iter().flatten().flat_map(|of| &of.failed).copied().collect();
        let Some(OutOfRange { error, .. }) = found.or(before) else { return };
        let sources =
            self.in_relative_form(failed.iter().map(|&tensor| (tensor, Places::default())).collect(), context);
        let concerned = self.reach().concerned(&self.operations, &self.groups, &sources, is_new);
        let is_all = concerned.len() == self.groups.all.len();
        let indices = concerned.into_iter().flat_map(|group| &group.operations);
        let results = indices.flat_map(|&index| self.operations[index].outputs());
        let has_handle = |tensor: &TensorId| context.handles.has_handle(tensor);
        let results: Vec<_> = results.map(|result| context.tensors[&result.id].id).filter(has_handle).collect();
        // If nothing of these lives on, the whole block carries it.
        let fails = is_all || (is_new && results.is_empty());
        failed.retain(has_handle);
        let carriers: Vec<_> = failed.into_iter().chain(results).collect();
        for &tensor in &carriers {
            let error = TensorError::new(ExecutionError::with_context(error.to_string()));
            context.handles.set_error(tensor, error);
        }
        coverage::carry_error(carriers);
        assert!(!fails, "{error}");
    }

    /// Notes what depends on indices that are not checked yet, of this block or of an earlier one.
    fn note_dependents(&self, context: &Context<CubeFusionHandle>) {
        note_dependents(&self.device, |outputs, dependents| {
            let operand = |operand: &TensorId| Some((*operand, dependents.on(context.tensors.get(operand)?.id)?));
            let mut sources: Vec<_> = self.operands.iter().filter_map(operand).collect();
            sources.extend(self.in_relative_form(outputs.into_iter().collect(), context));
            if sources.is_empty() {
                return;
            }
            let reach = self.reach();
            let live = |tensor: &TensorId| context.handles.has_handle(tensor);
            for (results, on) in reach.results.iter().zip(reach.places(&self.groups, &sources)) {
                let Some(on) = on else { continue };
                let results = results.iter().filter_map(|result| context.tensors.get(result)).map(|result| result.id);
                dependents.add(results.filter(live).map(|result| (result, on)), live);
            }
        });
    }

    fn reach(&self) -> &Reach {
        self.reach.get_or_init(|| Reach::new(&self.operations, &self.groups))
    }

    /// The tensors of the block among these.
    fn in_relative_form(
        &self,
        tensors: HashMap<TensorId, Places>,
        context: &Context<CubeFusionHandle>,
    ) -> Vec<(TensorId, Places)> {
        if tensors.is_empty() {
            return Vec::new();
        }
        let of = |(id, tensor): (&TensorId, &TensorIr)| Some((*id, *tensors.get(&tensor.id)?));
        context.tensors.iter().filter_map(of).collect()
    }
}

impl FusedOperation for Block {
    /// In Burn's registry of optimizations.
    const NAME: &'static str = "burn-deterministic";
    type State = Vec<OperationIr>;

    fn num_ops_fused(&self) -> usize {
        self.operations.len()
    }

    /// # Panics
    ///
    /// When an operation is refused: Burn turns the panic into an error of the tensors the block was to write.
    fn run(&mut self, context: &mut Context<CubeFusionHandle>, fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>) {
        if let [OperationIr::Custom(custom)] = &self.operations[..]
            && custom.id == execution_plans::EXCHANGE
        {
            // Whatever else is refused.
            fallback(0).run(context);
            return coverage::done();
        }
        exit::hold();
        if is_observing() {
            return self.run_plain(context, fallback);
        }
        coverage::routed();
        memory::note_stream();
        self.check_capture();
        self.wait_for_operands(context);
        let is_refused = self.check_arithmetic();
        match &self.groups.all[..] {
            _ if is_refused => self.run_plain(context, fallback),
            [group] => self.run_group(group, context, fallback),
            _ if record::is_recording() => self.run_in_order(context, fallback),
            _ => self.run_groups(context, fallback),
        }
        self.report_indices(context);
        coverage::done();
    }

    fn to_state(&self) -> Self::State {
        self.operations.clone()
    }

    fn from_state(device: &CubeDevice, state: Self::State) -> Self {
        // Element-wise operations have the same bits one by one.
        let group = Group::of_operations(&state, (0..state.len()).collect());
        Self::new(device.clone(), state, vec![group])
    }
}
