//! Tables of numbers that are computed on the host: uploaded once for a device, and kept there for the next launch.
//!
//! A family has a `static` [`Tables`] of what it knows them by. Kept are the [`MOST`] that were used last, of at most
//! [`MOST_BYTES`] together; a larger table is uploaded for each launch.

use cubecl::prelude::*;
use cubecl::server::Handle;
use std::sync::{Mutex, PoisonError};

/// Tables that are kept, at most.
const MOST: usize = 64;

/// Bytes of the tables that are kept, at most.
const MOST_BYTES: u64 = 16 << 20;

/// A table on a device.
pub(crate) trait Table: Clone {
    /// Its memory, all of one device.
    fn buffers(&self) -> &[Handle];
}

impl Table for [Handle; 1] {
    fn buffers(&self) -> &[Handle] {
        self
    }
}

/// The tables of a family, by `K`, which says all that a table depends on but the device.
pub(crate) struct Tables<K, T> {
    kept: Mutex<Vec<(K, T)>>,
}

impl<K: PartialEq, T: Table> Tables<K, T> {
    pub(crate) const fn new() -> Self {
        Self { kept: Mutex::new(Vec::new()) }
    }

    /// The table of `key` on the client's device: the one that is kept, or what `make` uploads.
    pub(crate) fn get(&self, client: &Client, key: K, make: impl FnOnce() -> T) -> T {
        // A graph that is captured keeps the addresses of its buffers, and these may be dropped before it.
        if client.is_capturing() {
            return make();
        }
        let service = client.service_id();
        let is_it = |(of, table): &(K, T)| *of == key && table.buffers().iter().all(|buffer| buffer.service == service);
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut kept = kept();
            if let Some(at) = kept.iter().position(is_it) {
                kept[at..].rotate_left(1);
                return kept[kept.len() - 1].1.clone();
            }
        }
        // Without the lock: other devices have tables too, and an upload may wait for its device.
        let table = make();
        let mut kept = kept();
        if !kept.iter().any(is_it) {
            kept.push((key, table.clone()));
            let size = |(_, table): &(K, T)| table.buffers().iter().map(Handle::size).sum();
            let sizes: Vec<u64> = kept.iter().map(size).collect();
            kept.drain(..dropped(&sizes, MOST, MOST_BYTES));
        }
        table
    }
}

/// How many of the first entries of these sizes have to go, for at most `most` entries and `bytes` to be left.
fn dropped(sizes: &[u64], most: usize, bytes: u64) -> usize {
    let mut left = 0u64;
    let fits = |&&size: &&u64| {
        left = left.saturating_add(size);
        left <= bytes
    };
    sizes.len() - sizes.iter().rev().take(most).take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::dropped;

    #[test]
    fn the_last_entries_are_kept() {
        assert_eq!(dropped(&[], 2, 10), 0);
        assert_eq!(dropped(&[5, 5], 2, 10), 0);
        assert_eq!(dropped(&[0, 0, 0], 2, 10), 1);
        assert_eq!(dropped(&[1, 5, 5], 3, 10), 1);
        assert_eq!(dropped(&[4, 7, 3], 3, 10), 1);
        // One that is too large is not kept, and neither are those before it.
        assert_eq!(dropped(&[1, 11], 3, 10), 2);
    }
}
