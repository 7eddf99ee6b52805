//! A map that only grows, and is read without a lock: what was found out about each device.

use core::iter::successors;
use std::sync::OnceLock;

/// Values by key. What a key has stays.
#[derive(Debug)]
pub struct AppendOnly<K, V> {
    first: OnceLock<Box<Entry<K, V>>>,
}

#[derive(Debug)]
struct Entry<K, V> {
    key: K,
    value: V,
    next: OnceLock<Box<Entry<K, V>>>,
}

impl<K: PartialEq, V> Default for AppendOnly<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: PartialEq, V> AppendOnly<K, V> {
    /// Without a value.
    pub const fn new() -> Self {
        Self { first: OnceLock::new() }
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// All keys and values, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        successors(self.first.get(), |entry| entry.next.get()).map(|entry| (&entry.key, &entry.value))
    }

    /// Gives a key a value, and returns it, or the one that another thread has given it meanwhile.
    pub fn keep(&self, key: K, value: V) -> &V {
        let mut entry = Box::new(Entry { key, value, next: OnceLock::new() });
        let mut place = &self.first;
        loop {
            let refused = place.set(entry).err();
            let present = place.get().expect("this thread or another has set it");
            match refused {
                Some(refused) if present.key != refused.key => (entry, place) = (refused, &present.next),
                _ => return &present.value,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AppendOnly;

    #[test]
    fn the_first_value_of_a_key_stays() {
        let map = AppendOnly::new();
        assert_eq!(map.get(&1), None);
        assert_eq!([map.keep(1, "a"), map.keep(2, "b"), map.keep(1, "c"), map.keep(2, "d")], [&"a", &"b", &"a", &"b"]);
        assert_eq!((map.get(&1), map.get(&2), map.get(&3)), (Some(&"a"), Some(&"b"), None));
        assert_eq!(map.iter().collect::<Vec<_>>(), [(&1, &"a"), (&2, &"b")]);
    }

    #[test]
    fn threads_agree() {
        let map = AppendOnly::new();
        let kept: Vec<Vec<usize>> = std::thread::scope(|scope| {
            let keep = |own: usize| (0..100).map(|key| *map.keep(key, own)).collect();
            let threads: Vec<_> = (0..4).map(|own| scope.spawn(move || keep(own))).collect();
            threads.into_iter().map(|thread| thread.join().expect("it ends")).collect()
        });
        assert!(kept.iter().all(|of_thread| *of_thread == kept[0]));
        assert_eq!(map.iter().count(), 100);
    }
}
