//! Which programs, reductions or products are side by side in one launch: the cubes of one, then those of the next.

use crate::grid;
use cubecl::ir::ElemType;
use cubecl::prelude::Client;

/// Most of a launch: its kernel has the code of each.
pub(crate) const MOST: usize = 8;

/// Bindings of a launch besides tensors: metadata and scalars.
pub(crate) const OTHER_BINDINGS: usize = 2;

/// Most cubes of a launch: its grid has one axis.
const MOST_CUBES: usize = grid::MAX_CUBES_PER_AXIS as usize;

/// What one of a launch takes of it.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    /// The tensors that it binds.
    pub bindings: usize,
    pub cubes: usize,
}

/// A launch, and what is in it.
pub(crate) struct Launch<K, T> {
    /// What all items have in common.
    pub kind: K,
    pub items: Vec<T>,
    taken: Share,
}

impl<K, T> Launch<K, T> {
    /// Cubes of all.
    pub(crate) fn cubes(&self) -> usize {
        self.taken.cubes
    }
}

/// What the items of a launch have in common.
pub(crate) trait Kind: Sized {
    /// The kind of a launch with items of both, if there may be one.
    fn joined(&self, other: &Self) -> Option<Self>;
}

/// A type that items may have no need for: they are beside those with any.
impl Kind for Option<ElemType> {
    fn joined(&self, other: &Self) -> Option<Self> {
        (self.is_none() || other.is_none() || self == other).then_some(self.or(*other))
    }
}

/// The launches of items, given with their kinds and shares: each item is in the first launch that it may be in and that has room.
pub(crate) fn launches<K: Kind, T>(
    client: &Client,
    items: impl IntoIterator<Item = (K, Share, T)>,
) -> Vec<Launch<K, T>> {
    let most_bindings = (client.properties().hardware.max_bindings as usize).saturating_sub(OTHER_BINDINGS);
    let mut launches: Vec<Launch<K, T>> = Vec::new();
    for (kind, share, item) in items {
        let has_room = |launch: &Launch<K, T>| {
            launch.items.len() < MOST
                && launch.taken.bindings + share.bindings <= most_bindings
                && launch.taken.cubes + share.cubes <= MOST_CUBES
        };
        let joined = |launch: &Launch<K, T>| launch.kind.joined(&kind).filter(|_| has_room(launch));
        match launches.iter_mut().find_map(|launch| joined(launch).map(|kind| (kind, launch))) {
            Some((kind, launch)) => {
                launch.kind = kind;
                launch.taken.bindings += share.bindings;
                launch.taken.cubes += share.cubes;
                launch.items.push(item);
            }
            None => launches.push(Launch { kind, items: vec![item], taken: share }),
        }
    }
    launches
}

#[cfg(test)]
mod tests {
    use super::Kind;
    use crate::dtype::{F32, U32};

    #[test]
    fn what_needs_no_type_is_beside_any() {
        let joined = |a: Option<_>, b: Option<_>| a.joined(&b);
        assert_eq!(joined(None, None), Some(None));
        assert_eq!(joined(Some(F32), None), Some(Some(F32)));
        assert_eq!(joined(None, Some(U32)), Some(Some(U32)));
        assert_eq!(joined(Some(U32), Some(U32)), Some(Some(U32)));
        assert_eq!(joined(Some(F32), Some(U32)), None);
    }
}
