//! How a transform is launched; every plan gives the same bits.

use crate::grid::UNITS;

/// How transforms of `n` values are launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// One launch: a cube has whole lines in shared memory.
    Lines,
    /// A launch for each stage, and one before and after them.
    Stages,
}

/// Values of a line in shared memory at most: 32 KiB of complex numbers in f32.
const MAX_VALUES: usize = 1 << 12;

impl Plan {
    /// Every plan that applies.
    pub fn candidates(n: usize, size: usize) -> Vec<Self> {
        let mut plans = vec![Self::Lines, Self::Stages];
        plans.retain(|plan| plan.refuses(n, size).is_none());
        plans
    }

    /// Why this plan does not apply to transforms of `n` values, computed in elements of `size` bytes, if it does not.
    pub fn refuses(self, n: usize, size: usize) -> Option<String> {
        let applies = self == Self::Stages || (2..=MAX_VALUES * 4 / size).contains(&n);
        (!applies).then(|| format!("{self:?} for {n} values, want 2 to {}", MAX_VALUES * 4 / size))
    }

    /// The plan for transforms of `n` values. `many` says that each operation of the kernel becomes many: a kernel with all
    /// stages takes too long to compile then.
    pub(super) fn of(n: usize, size: usize, many: bool) -> Self {
        let lines = !many && Self::Lines.refuses(n, size).is_none();
        if lines { Self::Lines } else { Self::Stages }
    }
}

/// Lines of a cube: each unit has a butterfly of a stage at least.
pub(super) fn lines_of_cube(n: usize) -> usize {
    (2 * UNITS as usize / n).max(1)
}

#[cfg(test)]
mod tests {
    use super::{MAX_VALUES, Plan, lines_of_cube};

    #[test]
    fn plans_are_pinned() {
        assert_eq!([1, 2, MAX_VALUES, 2 * MAX_VALUES].map(|n| Plan::of(n, 4, false)), {
            [Plan::Stages, Plan::Lines, Plan::Lines, Plan::Stages]
        });
        assert_eq!(Plan::of(MAX_VALUES, 8, false), Plan::Stages);
        assert_eq!(Plan::of(64, 4, true), Plan::Stages);
        assert_eq!([2, 256, 512, 1024].map(lines_of_cube), [256, 2, 1, 1]);
    }
}
