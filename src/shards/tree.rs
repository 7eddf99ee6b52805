//! Folds of shards in a fixed binary tree.

use std::collections::BTreeMap;

/// Sums of consecutive shards, each a node of the binary tree over the shards `0 .. 2^k`:
///
/// ```text
/// node(shard, 1)      = the shard's value
/// node(first, length) = node(first, length / 2) + node(first + length / 2, length / 2)
/// ```
///
/// where a node without a value adds nothing: the other is the sum. So the sum depends on which shards have a value,
/// and on nothing else.
pub(super) struct Tree<T> {
    /// By first shard: the number of shards, and the sum. No two overlap.
    nodes: BTreeMap<usize, (usize, T)>,
}

impl<T> Default for Tree<T> {
    fn default() -> Self {
        Self { nodes: BTreeMap::new() }
    }
}

impl<T> Tree<T> {
    /// Adds the value of a shard. Values of other shards that it completes a node with are summed at once.
    pub(super) fn add(&mut self, shard: usize, value: T, sum: impl FnMut(T, T) -> T) {
        self.insert(shard, 1, value, sum);
    }

    /// As [`add`](Self::add), a node of another tree, whose shards are behind all that this one has.
    pub(super) fn insert(&mut self, first: usize, length: usize, value: T, mut sum: impl FnMut(T, T) -> T) {
        let (mut first, mut length, mut value) = (first, length, value);
        while first & length != 0
            && let Some(left) = self.take(first - length, length)
        {
            (first, value, length) = (first - length, sum(left, value), 2 * length);
        }
        self.nodes.insert(first, (length, value));
    }

    /// The node, if it is one of the sums.
    fn take(&mut self, first: usize, length: usize) -> Option<T> {
        self.nodes.get(&first).filter(|(of, _)| *of == length)?;
        self.nodes.remove(&first).map(|(_, value)| value)
    }

    /// One of the sums so far, if there is one.
    pub(super) fn any(&self) -> Option<&T> {
        self.nodes.values().next().map(|(_, value)| value)
    }

    /// The sums so far: first shard, number of shards, sum.
    pub(super) fn into_nodes(self) -> impl Iterator<Item = (usize, usize, T)> {
        self.nodes.into_iter().map(|(first, (length, value))| (first, length, value))
    }

    /// The sum of all; `None` where there is no value.
    pub(super) fn fold(mut self, mut sum: impl FnMut(T, T) -> T) -> Option<T> {
        let end = self.nodes.iter().map(|(first, (length, _))| first + length).max()?;
        self.node(0, end.next_power_of_two(), &mut sum)
    }

    fn node(&mut self, first: usize, length: usize, sum: &mut impl FnMut(T, T) -> T) -> Option<T> {
        let node = self.take(first, length);
        if node.is_some() || length == 1 {
            return node;
        }
        let left = self.node(first, length / 2, sum);
        let right = self.node(first + length / 2, length / 2, sum);
        match (left, right) {
            (Some(left), Some(right)) => Some(sum(left, right)),
            (left, right) => left.or(right),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(left: String, right: String) -> String {
        format!("({left}+{right})")
    }

    /// The fold of the shards `0 .. shards` but `without`, computed by devices that have so many consecutive ones each.
    fn fold(shards: usize, without: Option<usize>, of_device: usize) -> Option<String> {
        let mut all = Tree::default();
        let shards: Vec<usize> = (0..shards).filter(|shard| Some(*shard) != without).collect();
        for device in shards.chunk_by(|left, right| left / of_device == right / of_device) {
            let mut tree = Tree::default();
            device.iter().for_each(|&shard| tree.add(shard, shard.to_string(), sum));
            tree.into_nodes().for_each(|(first, length, value)| all.insert(first, length, value, sum));
        }
        all.fold(sum)
    }

    #[test]
    fn the_tree_is_that_of_the_documentation() {
        let expected = [None, Some("0"), Some("(0+1)"), Some("((0+1)+2)"), Some("((0+1)+(2+3))")];
        for (shards, expected) in expected.into_iter().enumerate() {
            assert_eq!(fold(shards, None, 1).as_deref(), expected);
        }
        assert_eq!(fold(7, None, 1).as_deref(), Some("(((0+1)+(2+3))+((4+5)+6))"));
        assert_eq!(fold(4, Some(1), 1).as_deref(), Some("(0+(2+3))"));
        assert_eq!(fold(4, Some(0), 4).as_deref(), Some("(1+(2+3))"));
    }

    #[test]
    fn the_number_of_devices_changes_nothing() {
        for shards in 0..=17 {
            for without in (0..shards).map(Some).chain([None]) {
                let expected = fold(shards, without, 1);
                for of_device in 2..=17 {
                    assert_eq!(fold(shards, without, of_device), expected, "{shards} shards, {of_device} a device");
                }
            }
        }
    }

    #[test]
    fn few_sums_are_kept() {
        let mut tree = Tree::default();
        for shard in 0..1024 {
            tree.add(shard, shard, |left, right| left + right);
            assert!(tree.nodes.len() <= 10);
        }
        assert_eq!(tree.into_nodes().collect::<Vec<_>>(), [(0, 1024, 1023 * 512)]);
    }
}
