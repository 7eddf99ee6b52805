//! Which programs, reductions or products are side by side in one launch: the cubes of one, then those of the next.

use crate::grid;
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
    /// What all in it have in common.
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

/// The launches of items, given with their kinds and shares: each item is in the first launch of its kind that has room.
pub(crate) fn launches<K: PartialEq, T>(
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
        match launches.iter_mut().find(|launch| launch.kind == kind && has_room(launch)) {
            Some(launch) => {
                launch.taken.bindings += share.bindings;
                launch.taken.cubes += share.cubes;
                launch.items.push(item);
            }
            None => launches.push(Launch { kind, items: vec![item], taken: share }),
        }
    }
    launches
}
