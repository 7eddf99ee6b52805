//! Products of equal sizes, side by side in one launch; and the order of what runs before a block's sequence.

use super::handles::operand;
use super::rerun::Work;
use crate::backend::{adapters, ir};
use burn_backend::DType::F32;
use burn_backend::Shape;
use burn_cubecl::CubeDevice;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_fusion::stream::Context;
use burn_ir::{FloatOperationIr, MatmulOpIr, OperationIr, TensorId, TensorIr, TensorStatus};

/// Most elements of an operand or a result of products that share a launch before a sequence: larger ones fill a device by themselves.
/// Between groups they are smaller, since operands are kept until all have run.
const MOST_ELEMENTS_OF_TENSOR: usize = 1 << 24;

/// The backend's method that the products are of.
const METHOD: &str = "float_matmul";

/// What runs before a block's sequence, by the indices of the operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lead {
    Operation(usize),
    /// Products of equal sizes, in program order, two or more. None reads another's result.
    Products(Vec<usize>),
}

/// The operands of a product of f32.
pub(super) fn product(operation: &OperationIr) -> Option<&MatmulOpIr> {
    match operation {
        OperationIr::Float(F32, FloatOperationIr::Matmul(product)) => Some(product),
        _ => None,
    }
}

/// Operations that run before a block's sequence: products are put off until another operation needs that they have run.
struct Leads<'a> {
    operations: &'a [OperationIr],
    leads: Vec<Lead>,
    /// The products that are put off, by the shapes of their operands.
    groups: Vec<([&'a Shape; 2], Vec<usize>)>,
    /// The frees of what these read or write.
    frees: Vec<usize>,
}

/// The order in which the operations at `indices` run, which stand in program order and move, multiply, reduce or free.
pub(super) fn leads(operations: &[OperationIr], indices: &[usize]) -> Vec<Lead> {
    let mut leads = Leads { operations, leads: Vec::new(), groups: Vec::new(), frees: Vec::new() };
    indices.iter().for_each(|&index| leads.take(index));
    leads.run_products();
    leads.leads
}

impl<'a> Leads<'a> {
    fn take(&mut self, index: usize) {
        let operation = &self.operations[index];
        if let OperationIr::Drop(tensor) = operation {
            return self.free(index, tensor.id);
        }
        let shapes = product(operation).map(|product| [&product.lhs.shape, &product.rhs.shape]);
        let reads_result = |id: TensorId| self.put_off(None).any(|product| product.outputs().any(|out| out.id == id));
        // The last use of an operand takes it away from products that run later. Those of a group run in program order.
        let takes_away =
            |id: TensorId| self.put_off(shapes).any(|product| product.inputs().any(|input| input.id == id));
        let waits = operation
            .inputs()
            .any(|input| reads_result(input.id) || input.status == TensorStatus::ReadWrite && takes_away(input.id));
        if waits {
            self.run_products();
        }
        let Some(shapes) = shapes else { return self.leads.push(Lead::Operation(index)) };
        match self.groups.iter_mut().find(|(of_group, _)| *of_group == shapes) {
            Some((_, products)) => products.push(index),
            None => self.groups.push((shapes, vec![index])),
        }
    }

    /// Takes a free, which has to wait for several products that use the tensor, and for one as long as it would have anyway.
    fn free(&mut self, index: usize, tensor: TensorId) {
        let operations = self.operations;
        let uses = |&product: &usize| operations[product].nodes().iter().any(|node| node.id == tensor);
        let uses_alone = |products: &[usize]| products.len() == 1 && products.iter().any(uses);
        self.groups.retain(|(_, products)| {
            let is_alone = uses_alone(products);
            if is_alone {
                self.leads.push(Lead::Operation(products[0]));
            }
            !is_alone
        });
        match self.groups.iter().any(|(_, products)| products.iter().any(uses)) {
            true => self.frees.push(index),
            false => self.leads.push(Lead::Operation(index)),
        }
    }

    /// The products that are put off, but for those of operands of the shapes `except`.
    fn put_off(&self, except: Option<[&Shape; 2]>) -> impl Iterator<Item = &'a OperationIr> {
        let operations = self.operations;
        let groups = self.groups.iter().filter(move |(shapes, _)| Some(*shapes) != except);
        groups.flat_map(move |(_, products)| products.iter().map(move |&index| &operations[index]))
    }

    fn run_products(&mut self) {
        self.leads.extend(self.groups.drain(..).map(|(_, products)| match products[..] {
            [product] => Lead::Operation(product),
            _ => Lead::Products(products),
        }));
        self.leads.extend(self.frees.drain(..).map(Lead::Operation));
    }
}

/// `products`, given in Burn's relative form, as the program knows them.
pub(super) fn work<'a>(products: impl Iterator<Item = &'a OperationIr>, context: &Context<CubeFusionHandle>) -> Work {
    let global = |id: &TensorId| context.tensors[id].clone();
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for product in products {
        inputs.extend(product.inputs().map(|input| global(&input.id)));
        outputs.extend(product.outputs().map(|output| global(&output.id)));
    }
    Work { operation: vec![METHOD; outputs.len()].join(", "), inputs, outputs }
}

/// Whether products of equal sizes share launches on the device. Otherwise they run one by one.
pub(super) fn share_launches(device: &CubeDevice) -> bool {
    adapters::matmul::share_launches(device)
}

/// Whether `products`, given in Burn's relative form, are small enough to share launches.
pub(super) fn are_small<'a>(
    mut products: impl Iterator<Item = &'a OperationIr>,
    context: &Context<CubeFusionHandle>,
) -> bool {
    let is_small = |tensor: &&TensorIr| context.tensors[&tensor.id].shape.num_elements() <= MOST_ELEMENTS_OF_TENSOR;
    products.all(|product| product.nodes().iter().all(is_small))
}

/// The elements of the operands of a product, given in Burn's relative form, and of its result.
pub(super) fn elements(operation: &OperationIr, context: &Context<CubeFusionHandle>) -> Option<[usize; 3]> {
    let MatmulOpIr { lhs, rhs, out } = product(operation)?;
    Some([lhs, rhs, out].map(|tensor| context.tensors[&tensor.id].shape.num_elements()))
}

/// Runs `products`, given in Burn's relative form, in as few launches as these take. Returns whether a kernel was launched.
///
/// # Panics
///
/// When a kernel refuses the operands.
pub(super) fn run<'a>(
    products: impl Iterator<Item = &'a OperationIr>,
    device: &CubeDevice,
    context: &mut Context<CubeFusionHandle>,
) -> bool {
    let products: Vec<_> = products.map(|operation| product(operation).expect("a product of f32")).collect();
    let pairs: Vec<_> =
        products.iter().map(|product| [&product.lhs, &product.rhs].map(|tensor| operand(tensor, context))).collect();
    // A sum of no products is zero, and nothing is launched for it.
    let launches = pairs.iter().any(|pair| pair.iter().all(|operand| operand.meta.num_elements() > 0));
    let results = adapters::matmul::float_products(device, pairs)
        .unwrap_or_else(|error| panic!("{METHOD} on {device:?}: {error}"));
    for (product, result) in products.into_iter().zip(results) {
        let out = context.tensors[&product.out.id].id;
        context.handles.register_handle(out, ir::handle(result));
    }
    launches
}

#[cfg(test)]
mod tests {
    use super::{Lead, leads};
    use burn_backend::{DType, Shape};
    use burn_ir::{
        BaseOperationIr, FloatOperationIr, MatmulOpIr, OperationIr, SwapDimsOpIr, TensorId, TensorIr, TensorStatus,
    };

    /// A tensor in relative form, which lives on.
    fn tensor(id: u64, shape: [usize; 2]) -> TensorIr {
        let (id, shape) = (TensorId::new(id), Shape::new(shape));
        TensorIr { id, shape, status: TensorStatus::ReadOnly, dtype: DType::F32 }
    }

    fn last_use(tensor: TensorIr) -> TensorIr {
        TensorIr { status: TensorStatus::ReadWrite, ..tensor }
    }

    fn product_of(lhs: TensorIr, rhs: TensorIr, out: u64) -> OperationIr {
        let out = tensor(out, [lhs.shape[0], rhs.shape[1]]);
        OperationIr::Float(DType::F32, FloatOperationIr::Matmul(MatmulOpIr { lhs, rhs, out }))
    }

    /// Of `[1, 2]` and `[2, 3]`.
    fn product(lhs: u64, rhs: u64, out: u64) -> OperationIr {
        product_of(tensor(lhs, [1, 2]), tensor(rhs, [2, 3]), out)
    }

    fn swap(input: TensorIr, out: u64) -> OperationIr {
        let out = tensor(out, [input.shape[1], input.shape[0]]);
        OperationIr::BaseFloat(BaseOperationIr::SwapDims(SwapDimsOpIr { input, out, dim1: 0, dim2: 1 }))
    }

    fn of(operations: &[OperationIr]) -> Vec<Vec<usize>> {
        let indices: Vec<_> = (0..operations.len()).collect();
        let those = leads(operations, &indices).into_iter().map(|lead| match lead {
            Lead::Operation(index) => vec![index],
            Lead::Products(products) => {
                assert!(products.len() > 1);
                products
            }
        });
        let those: Vec<_> = those.collect();
        let mut all = those.concat();
        all.sort();
        assert_eq!(all, indices, "each runs once");
        those
    }

    #[test]
    fn products_of_equal_sizes_run_at_once() {
        assert!(of(&[]).is_empty());
        assert_eq!(of(&[product(0, 1, 2)]), [[0]]);
        assert_eq!(of(&[product(0, 1, 2), product(0, 3, 4), product(5, 6, 7)]), [[0, 1, 2]]);
        let wide = |lhs, rhs, out| product_of(tensor(lhs, [1, 2]), tensor(rhs, [2, 4]), out);
        let mixed = [
            product(0, 1, 2),
            wide(0, 3, 4),
            product(0, 5, 6),
            wide(0, 7, 8),
            product_of(tensor(0, [1, 2]), tensor(9, [2, 5]), 10),
        ];
        assert_eq!(of(&mixed), [vec![0, 2], vec![1, 3], vec![4]]);
    }

    #[test]
    fn moves_of_other_tensors_run_before() {
        let operations = [product(0, 1, 2), swap(tensor(3, [2, 1]), 4), product(4, 5, 6), swap(tensor(0, [1, 2]), 7)];
        assert_eq!(of(&operations), [vec![1], vec![3], vec![0, 2]]);
    }

    #[test]
    fn what_reads_a_result_runs_behind_it() {
        let square = |lhs, rhs, out| product_of(tensor(lhs, [2, 2]), tensor(rhs, [2, 2]), out);
        assert_eq!(of(&[square(0, 1, 2), square(2, 3, 4), square(5, 6, 7)]), [vec![0], vec![1, 2]]);
        let moved = [square(0, 1, 2), square(3, 4, 5), swap(tensor(2, [2, 2]), 6), square(6, 7, 8)];
        assert_eq!(of(&moved), [vec![0, 1], vec![2], vec![3]]);
    }

    #[test]
    fn the_last_use_of_an_operand_comes_last() {
        let move_of = swap(last_use(tensor(0, [1, 2])), 9);
        assert_eq!(of(&[product(0, 1, 2), product(0, 3, 4), move_of]), [vec![0, 1], vec![2]]);
        let last = |rhs, out| product_of(last_use(tensor(0, [1, 2])), rhs, out);
        assert_eq!(of(&[product(0, 1, 2), last(tensor(3, [2, 3]), 4)]), [[0, 1]], "of the same sizes");
        let others = [product(0, 1, 2), last(tensor(3, [2, 4]), 4), product(5, 1, 6)];
        assert_eq!(of(&others), [vec![0], vec![1], vec![2]]);
    }

    #[test]
    fn operands_and_results_are_freed_behind_the_products() {
        let freed = |id| OperationIr::Drop(tensor(id, [1, 2]));
        let operations = [freed(8), product(0, 1, 2), product(3, 1, 4), freed(9), freed(0), product(5, 1, 6), freed(2)];
        assert_eq!(of(&operations), [vec![0], vec![3], vec![1, 2, 5], vec![4], vec![6]]);
        // What one product alone uses is freed before another takes memory.
        assert_eq!(of(&[product(0, 1, 2), freed(0), product(3, 1, 4)]), [[0], [1], [2]]);
        let wide = product_of(tensor(0, [1, 2]), tensor(5, [2, 4]), 6);
        let operations = [product(0, 1, 2), product(3, 1, 4), wide, freed(0), product(7, 1, 8)];
        assert_eq!(of(&operations), [vec![2], vec![0, 1, 4], vec![3]]);
    }
}
