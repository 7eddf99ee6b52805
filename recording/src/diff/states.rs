//! Which tensors of two states are each other's counterparts.

use crate::record::{Origin, State, StateTensor};
use std::collections::{BTreeMap, HashMap};

/// The tensors of two states.
pub(super) struct Tensors<'a> {
    pub(super) pairs: Vec<[&'a StateTensor; 2]>,
    /// Those of one state alone.
    pub(super) only: [Vec<&'a StateTensor>; 2],
}

impl<'a> Tensors<'a> {
    pub(super) fn of(one: &'a State, other: &'a State) -> Self {
        if one.operations == other.operations { Self::by_origins(one, other) } else { Self::by_names(one, other) }
    }

    /// By where they came from, and by their names where they came from elsewhere.
    fn by_origins(one: &'a State, other: &'a State) -> Self {
        let mut second: BTreeMap<Origin, &StateTensor> = other.tensors.iter().map(|t| (t.origin, t)).collect();
        let (mut pairs, mut first) = (Vec::new(), Vec::new());
        for tensor in &one.tensors {
            match second.remove(&tensor.origin) {
                Some(counterpart) => pairs.push([tensor, counterpart]),
                None => first.push(tensor),
            }
        }
        let mut named: HashMap<&str, &StateTensor> =
            second.values().filter_map(|tensor| Some((tensor.parameter.as_deref()?, *tensor))).collect();
        first.retain(|tensor| match tensor.parameter.as_deref().and_then(|path| named.remove(path)) {
            Some(counterpart) => {
                second.remove(&counterpart.origin);
                pairs.push([tensor, counterpart]);
                false
            }
            None => true,
        });
        Self { pairs, only: [first, second.into_values().collect()] }
    }

    /// After another number of operations: by their names, and the others by their order, where all have the same forms.
    fn by_names(one: &'a State, other: &'a State) -> Self {
        let unnamed = |state: &'a State| -> Vec<&StateTensor> {
            state.tensors.iter().filter(|tensor| tensor.parameter.is_none()).collect()
        };
        let forms = |tensors: &[&'a StateTensor]| -> Vec<_> {
            tensors.iter().map(|tensor| (&tensor.shape, &tensor.dtype)).collect()
        };
        let mut only = [unnamed(one), unnamed(other)];
        let mut pairs = Vec::new();
        if forms(&only[0]) == forms(&only[1]) {
            let [ones, others] = std::mem::take(&mut only);
            pairs.extend(ones.into_iter().zip(others).map(|(one, other)| [one, other]));
        }
        let named = |state: &'a State| state.tensors.iter().filter_map(|t| Some((t.parameter.as_deref()?, t)));
        // Of several tensors of one path the last is the parameter.
        let [first, mut second] = [one, other].map(|state| named(state).collect::<BTreeMap<&str, &StateTensor>>());
        for (path, tensor) in first {
            match second.remove(path) {
                Some(counterpart) => pairs.push([tensor, counterpart]),
                None => only[0].push(tensor),
            }
        }
        only[1].extend(second.into_values());
        Self { pairs, only }
    }
}
