//! The orders in plain Rust: the specification that kernels are compared with, bit by bit.

use super::{BLOCK, COLUMNS, COLUMNS_BLOCK};
use crate::arithmetic::MultiplyAdd;

/// `((x[0] + x[1]) + x[2]) + ..`; `None` without a term.
pub fn chain<T>(terms: impl IntoIterator<Item = T>, add: impl Fn(T, T) -> T) -> Option<T> {
    terms.into_iter().reduce(add)
}

/// The blocked order of all terms.
pub fn blocked<T: Copy>(terms: &[T], add: impl Fn(T, T) -> T) -> Option<T> {
    chain(terms.chunks(BLOCK).filter_map(|block| chain(block.iter().copied(), &add)), &add)
}

/// The blocked order of terms of which some are absent: `(position, term)` by ascending position. A block without a term
/// is left out as well.
pub fn blocked_sparse<T: Copy>(terms: &[(usize, T)], add: impl Fn(T, T) -> T) -> Option<T> {
    let blocks = terms.chunk_by(|a, b| a.0 / BLOCK == b.0 / BLOCK);
    chain(blocks.filter_map(|block| chain(block.iter().map(|term| term.1), &add)), &add)
}

/// The blocked order of every prefix: `y[i]` of `x[0..=i]`.
pub fn blocked_prefixes<T: Copy>(terms: &[T], add: impl Fn(T, T) -> T) -> Vec<T> {
    let mut results: Vec<T> = Vec::with_capacity(terms.len());
    for block in terms.chunks(BLOCK) {
        let before = results.last().copied();
        let mut local = None;
        for &term in block {
            let partial = local.map_or(term, |local| add(local, term));
            local = Some(partial);
            results.push(before.map_or(partial, |before| add(before, partial)));
        }
    }
    results
}

/// The blocked order of products: in each block `acc = +0`, then `acc = a * b + acc` by the device's multiply-add.
pub fn dot(pairs: impl IntoIterator<Item = (f32, f32)>, multiply_add: MultiplyAdd) -> f32 {
    let pairs: Vec<_> = pairs.into_iter().collect();
    let block = |pairs: &[(f32, f32)]| pairs.iter().fold(0.0, |acc, &(a, b)| multiply_add.apply(a, b, acc));
    chain(pairs.chunks(BLOCK).map(block), |total, block| total + block).unwrap_or(0.0)
}

/// The columns order of all terms.
pub fn columns<T: Copy>(terms: &[T], add: impl Fn(T, T) -> T) -> Option<T> {
    let reduce = |block: &[T]| {
        let columns = 0..block.len().min(COLUMNS as usize);
        chain(columns.filter_map(|c| chain(block[c..].iter().step_by(COLUMNS as usize).copied(), &add)), &add)
    };
    let mut level = terms.to_vec();
    while level.len() > 1 {
        level = level.chunks(COLUMNS_BLOCK as usize).filter_map(reduce).collect();
    }
    level.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows in which order terms were added.
    fn spelled(terms: usize, order: impl Fn(&[usize]) -> Option<String>) -> Option<String> {
        order(&(0..terms).collect::<Vec<_>>())
    }

    #[test]
    fn chains_go_from_left_to_right() {
        let add = |a: String, b: String| format!("({a}+{b})");
        let names = |terms: &[usize]| chain(terms.iter().map(usize::to_string), add);
        assert_eq!(spelled(0, names), None);
        assert_eq!(spelled(1, names).unwrap(), "0");
        assert_eq!(spelled(4, names).unwrap(), "(((0+1)+2)+3)");
    }

    #[test]
    fn every_prefix_is_the_blocked_order_of_its_own_terms() {
        let terms: Vec<f32> = (0..3 * BLOCK + 7).map(|i| (i as f32).sin()).collect();
        let add = |a: f32, b: f32| a + b;
        let prefixes = blocked_prefixes(&terms, add);
        for end in [1, 2, BLOCK, BLOCK + 1, 2 * BLOCK + 1, terms.len()] {
            assert_eq!(prefixes[end - 1].to_bits(), blocked(&terms[..end], add).unwrap().to_bits(), "{end} terms");
        }
    }

    #[test]
    fn absent_terms_are_left_out_and_keep_their_positions() {
        let add = |a: f32, b: f32| a + b;
        let terms: Vec<f32> = (0..2 * BLOCK).map(|i| (i as f32).cos()).collect();
        let all: Vec<_> = terms.iter().copied().enumerate().collect();
        assert_eq!(blocked_sparse(&all, add), blocked(&terms, add));
        // The two small terms share a block, so that they are added first.
        let few = [(BLOCK - 1, 1.0), (BLOCK, 3e-8), (BLOCK + 1, 3e-8)];
        assert_eq!(blocked_sparse(&few, add), Some(1.0 + (3e-8 + 3e-8)));
        assert_ne!(blocked_sparse(&few, add), Some((1.0f32 + 3e-8) + 3e-8));
        assert_eq!(blocked_sparse::<f32>(&[], add), None);
    }

    #[test]
    fn columns_are_added_before_their_totals() {
        let mut terms = vec![0.0f32; 65];
        (terms[0], terms[1], terms[64]) = (1.0, -1.0, 1e-8);
        // Terms 0 and 64 share a column.
        assert_eq!(columns(&terms, |a, b| a + b), Some((1.0 + 1e-8) - 1.0));
    }
}
