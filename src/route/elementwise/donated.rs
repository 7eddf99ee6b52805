//! Operands in whose memory a sequence writes results.
//!
//! CubeCL has a queue of the device for each thread, and says of a tensor whether another handle has its memory, not whether a kernel of
//! another queue still reads it. So a sequence is given operands that its own block has made: another thread's read of a tensor ends
//! the block that makes it, and the use that follows is of another block.

use super::{Sequence, float_of};
use crate::catalogue::{self, Fused, fused};
use burn_ir::{FloatOperationIr, OperationIr, TensorId, TensorIr, TensorStatus};
use std::collections::HashSet;

/// The results of operations that reserve memory for what they give. Others may give what they read under another name.
pub(in crate::route) fn reserved(operations: &[OperationIr]) -> HashSet<TensorId> {
    let reserves = |operation: &&OperationIr| {
        let is_product = matches!(operation, OperationIr::Float(_, FloatOperationIr::Matmul(_)));
        let meaning = fused(catalogue::operation(operation));
        is_product || matches!(meaning, Some(Fused::Unary(_) | Fused::Binary(_)))
    };
    let results = operations.iter().filter(reserves).flat_map(OperationIr::outputs);
    results.filter(|result| float_of(result).is_some()).map(|result| result.id).collect()
}

impl Sequence {
    /// Lets the sequence write results into its operands among the `reserved` of its block that nothing reads after it.
    pub(in crate::route) fn donate(&mut self, reserved: &HashSet<TensorId>) {
        let words = self.words.iter().enumerate();
        let is_donated = |word: &TensorIr| word.status == TensorStatus::ReadWrite && reserved.contains(&word.id);
        self.donated = words.filter(|(_, word)| is_donated(word)).map(|(index, _)| index).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::reserved;
    use crate::route::elementwise::Sequence;
    use crate::route::groups::tests::{last, product, sum, tensor};
    use burn_backend::DType;
    use burn_ir::{BaseOperationIr, CastOpIr, OperationIr, ShapeOpIr};

    fn donated(operations: &[OperationIr], first: usize) -> Vec<usize> {
        let mut sequence = Sequence::new(&operations[first], 16, true).expect("a sequence");
        assert!(operations[first + 1..].iter().all(|operation| sequence.take(operation)));
        sequence.donate(&reserved(operations));
        sequence.donated
    }

    #[test]
    fn what_the_block_has_made_and_nothing_needs_is_donated() {
        assert_eq!(donated(&[product(0, 1, 2), sum(last(2), tensor(3), 4)], 1), [0], "a product");
        assert_eq!(donated(&[product(0, 1, 2), sum(last(3), last(2), 4)], 1), [1], "and no operand of an earlier block");
        assert_eq!(donated(&[product(0, 1, 2), sum(tensor(2), tensor(3), 4)], 1), [0; 0], "what lives on");
        let later = [product(0, 1, 2), sum(tensor(2), tensor(3), 4), sum(tensor(4), last(2), 5)];
        assert_eq!(donated(&later, 1), [0], "by its last use in the sequence");
    }

    #[test]
    fn another_name_of_what_is_older_is_not_donated() {
        let reshaped = ShapeOpIr { input: last(0), out: tensor(2) };
        let reshaped = OperationIr::BaseFloat(BaseOperationIr::Reshape(reshaped));
        let cast = OperationIr::BaseFloat(BaseOperationIr::Cast(CastOpIr { input: last(0), out: tensor(2) }));
        for older in [reshaped, cast] {
            assert_eq!(donated(&[older, sum(last(2), tensor(3), 4)], 1), [0; 0]);
        }
    }

    #[test]
    fn only_floats_that_kernels_of_this_crate_compute_are_known_to_be_new() {
        let mut of_f64 = sum(tensor(0), tensor(1), 2);
        if let OperationIr::NumericFloat(dtype, _) = &mut of_f64 {
            *dtype = DType::F64;
        }
        let mut result = tensor(2);
        result.dtype = DType::F64;
        let OperationIr::NumericFloat(_, burn_ir::NumericOperationIr::Add(add)) = &mut of_f64 else { unreachable!() };
        add.out = result;
        assert!(reserved(&[of_f64]).is_empty());
        assert_eq!(reserved(&[sum(tensor(0), tensor(1), 2)]).len(), 1);
    }
}
