//! What depends on operations whose indices are not checked yet.

use burn_ir::TensorId;
use std::collections::HashMap;

/// Operations of a ledger by their places there: all from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    first: usize,
    last: usize,
}

impl Span {
    /// The operation at `place`.
    pub(crate) fn at(place: usize) -> Self {
        Self { first: place, last: place }
    }

    /// These, those of the `other`, and all between.
    pub(crate) fn with(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

/// Tensors of Burn's stream that earlier blocks have computed, with the operations of a ledger on which each may depend.
#[derive(Default)]
pub(crate) struct Dependents {
    all: HashMap<TensorId, Span>,
    /// Where there are more, those that are gone are forgotten.
    most: usize,
}

impl Dependents {
    /// Kept before any are forgotten.
    const LEAST: usize = 1024;

    /// The operations on which the tensor may depend.
    pub(crate) fn on(&self, tensor: TensorId) -> Option<Span> {
        self.all.get(&tensor).copied()
    }

    /// Notes that the tensors depend on these operations too. Of all some `live` on.
    pub(crate) fn add(
        &mut self,
        tensors: impl IntoIterator<Item = (TensorId, Span)>,
        live: impl Fn(&TensorId) -> bool,
    ) {
        for (tensor, span) in tensors {
            self.all.entry(tensor).and_modify(|own| *own = own.with(span)).or_insert(span);
        }
        if self.all.len() > self.most.max(Self::LEAST) {
            self.all.retain(|tensor, _| live(tensor));
            self.most = 2 * self.all.len();
        }
    }

    /// Forgets all, now that the operations are checked. Returns those that may depend on one of the operations at `places`, which
    /// ascend.
    pub(super) fn take(&mut self, places: &[usize]) -> Vec<TensorId> {
        let depends = |span: Span| {
            let next = places.partition_point(|&place| place < span.first);
            places.get(next).is_some_and(|&place| place <= span.last)
        };
        let all = core::mem::take(self).all;
        all.into_iter().filter(|(_, span)| depends(*span)).map(|(tensor, _)| tensor).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_depends_on_the_operations_from_the_first_to_the_last() {
        let [a, b, c, d] = [1, 2, 3, 4].map(TensorId::new);
        let mut dependents = Dependents::default();
        dependents.add([(a, Span::at(1)), (b, Span::at(4).with(Span::at(2))), (c, Span::at(5))], |_| true);
        dependents.add([(c, Span::at(9)), (d, Span::at(0))], |_| true);
        assert_eq!([dependents.on(b), dependents.on(TensorId::new(5))], [Some(Span { first: 2, last: 4 }), None]);
        let mut taken = dependents.take(&[3, 8]);
        taken.sort_unstable();
        assert_eq!(taken, [b, c]);
        assert!(dependents.on(a).is_none() && dependents.take(&[0]).is_empty());
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let mut dependents = Dependents::default();
        let tensors = |from: u64| (from..from + 1000).map(|id| (TensorId::new(id), Span::at(0)));
        for from in 0..50 {
            dependents.add(tensors(from * 1000), |tensor| *tensor >= TensorId::new(from * 1000));
        }
        assert!(dependents.all.len() <= 3000, "{}", dependents.all.len());
        assert!(tensors(49_000).all(|(tensor, _)| dependents.on(tensor).is_some()));
    }
}
