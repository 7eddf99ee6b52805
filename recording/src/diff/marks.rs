//! Which tensors are known to be the same in both recordings, and which to differ.

use crate::record::Origin;
use std::collections::{BTreeMap, HashMap};

/// By thread and origin, whether a tensor is the same. Two bytes an operation: a recording may have 10 million.
#[derive(Default)]
pub(super) struct Marks {
    /// By thread and operation: the low byte says which of the first 8 results are known, the high byte which of these
    /// differ.
    threads: BTreeMap<u32, Vec<u16>>,
    /// Results from the ninth on.
    wide: HashMap<(u32, Origin), bool>,
}

impl Marks {
    pub(super) fn set(&mut self, thread: u32, origin: Origin, same: bool) {
        let Origin { operation, output } = origin;
        if output >= 8 {
            self.wide.insert((thread, origin), same);
            return;
        }
        let marks = self.threads.entry(thread).or_default();
        let index = operation as usize;
        if marks.len() <= index {
            marks.resize(index + 1, 0);
        }
        let (known, differs) = (1 << output, 0x100 << output);
        marks[index] = (marks[index] | known) & !differs | if same { 0 } else { differs };
    }

    pub(super) fn same(&self, thread: u32, origin: Origin) -> Option<bool> {
        let Origin { operation, output } = origin;
        if output >= 8 {
            return self.wide.get(&(thread, origin)).copied();
        }
        let marks = *self.threads.get(&thread)?.get(operation as usize)?;
        (marks >> output & 1 == 1).then_some(marks >> (output + 8) & 1 == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_is_known() {
        let mut marks = Marks::default();
        let origin = |operation, output| Origin { operation, output };
        for output in [0, 7, 8, 40] {
            marks.set(3, origin(5, output), output % 2 == 0);
        }
        for output in [0, 7, 8, 40] {
            assert_eq!(marks.same(3, origin(5, output)), Some(output % 2 == 0), "result {output}");
            assert_eq!(marks.same(3, origin(4, output)), None);
        }
        assert_eq!(marks.same(3, origin(5, 1)), None);
        assert_eq!(marks.same(4, origin(5, 0)), None);
        marks.set(3, origin(5, 0), false);
        assert_eq!(marks.same(3, origin(5, 0)), Some(false));
        marks.set(3, origin(5, 0), true);
        assert_eq!(marks.same(3, origin(5, 0)), Some(true));
    }
}
