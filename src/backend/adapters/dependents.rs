//! What depends on operations whose indices are not checked yet.

use burn_ir::TensorId;
use std::collections::HashMap;

/// Operations of a ledger that has not read their flags: of those that it has at once.
pub(super) const FLAGS: usize = 1024;

/// Operations of a ledger by their places there, a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Places([u64; FLAGS / 64]);

impl Places {
    /// The operation at `place`.
    pub(crate) fn at(place: usize) -> Self {
        [place].into_iter().collect()
    }

    /// These and the `others`.
    pub(crate) fn with(mut self, others: Self) -> Self {
        self.0.iter_mut().zip(others.0).for_each(|(own, other)| *own |= other);
        self
    }

    fn meets(self, others: Self) -> bool {
        self.0.iter().zip(others.0).any(|(own, other)| own & other != 0)
    }
}

impl FromIterator<usize> for Places {
    fn from_iter<I: IntoIterator<Item = usize>>(places: I) -> Self {
        let mut all = Self::default();
        places.into_iter().for_each(|place| all.0[place / 64] |= 1 << (place % 64));
        all
    }
}

/// Tensors of Burn's stream that earlier blocks have computed, with the operations of a ledger on which each may depend.
#[derive(Default)]
pub(crate) struct Dependents {
    all: HashMap<TensorId, Places>,
    /// Where there are more, those that are gone are forgotten.
    most: usize,
}

impl Dependents {
    /// Kept before any are forgotten.
    const LEAST: usize = 1024;

    /// The operations on which the tensor may depend.
    pub(crate) fn on(&self, tensor: TensorId) -> Option<Places> {
        self.all.get(&tensor).copied()
    }

    /// Notes that the tensors depend on these operations too. Of all some `live` on.
    pub(crate) fn add(
        &mut self,
        tensors: impl IntoIterator<Item = (TensorId, Places)>,
        live: impl Fn(&TensorId) -> bool,
    ) {
        for (tensor, on) in tensors {
            self.all.entry(tensor).and_modify(|own| *own = own.with(on)).or_insert(on);
        }
        if self.all.len() > self.most.max(Self::LEAST) {
            self.all.retain(|tensor, _| live(tensor));
            self.most = 2 * self.all.len();
        }
    }

    /// Forgets all, now that the operations are checked. Returns those that may depend on one of the operations at `failed`.
    pub(super) fn take(&mut self, failed: Places) -> Vec<TensorId> {
        let all = core::mem::take(self).all;
        all.into_iter().filter(|(_, on)| on.meets(failed)).map(|(tensor, _)| tensor).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_depends_on_an_operation_that_failed_is_taken() {
        let [a, b, c, d] = [1, 2, 3, 4].map(TensorId::new);
        let of = |places: &[usize]| places.iter().copied().collect::<Places>();
        let mut dependents = Dependents::default();
        dependents.add([(a, Places::at(1)), (b, of(&[4, 700])), (c, Places::at(5))], |_| true);
        dependents.add([(c, Places::at(1023)), (d, Places::at(0))], |_| true);
        assert_eq!([dependents.on(c), dependents.on(TensorId::new(5))], [Some(of(&[5, 1023])), None]);
        let mut taken = dependents.take(of(&[3, 500, 700, 1023]));
        taken.sort_unstable();
        assert_eq!(taken, [b, c]);
        assert!(dependents.on(a).is_none() && dependents.take(Places::at(0)).is_empty());
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let mut dependents = Dependents::default();
        let tensors = |from: u64| (from..from + 1000).map(|id| (TensorId::new(id), Places::at(0)));
        for from in 0..50 {
            dependents.add(tensors(from * 1000), |tensor| *tensor >= TensorId::new(from * 1000));
        }
        assert!(dependents.all.len() <= 3000, "{}", dependents.all.len());
        assert!(tensors(49_000).all(|(tensor, _)| dependents.on(tensor).is_some()));
    }
}
