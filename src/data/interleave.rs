//! Several datasets in turn.

use burn_core::data::dataset::{Dataset, DatasetError};

/// One item of each dataset in turn, in the order in which they were given; one that has no more is passed over.
///
/// Of `[a0 a1 a2]`, `[b0]` and `[c0 c1]` it is `a0 b0 c0 a1 c1 a2`. It is a dataset itself. For datasets of different
/// types, make each an `Arc<dyn Dataset<I>>`; for one after the other there is Burn's `ComposedDataset`.
pub struct Interleaved<D> {
    datasets: Vec<D>,
    rounds: Vec<Rounds>,
    length: usize,
}

/// Rounds in which the same datasets take part.
struct Rounds {
    /// The item with which they begin.
    first: usize,
    /// The round with which they begin.
    round: usize,
    /// Which datasets take part, ascending.
    datasets: Vec<usize>,
}

impl<D> Interleaved<D> {
    /// Takes the datasets' lengths as they are now.
    pub fn new<I>(datasets: impl IntoIterator<Item = D>) -> Self
    where
        D: Dataset<I>,
    {
        let datasets: Vec<D> = datasets.into_iter().collect();
        let lengths: Vec<usize> = datasets.iter().map(|dataset| dataset.len()).collect();
        let mut left: Vec<usize> = (0..datasets.len()).filter(|&index| lengths[index] > 0).collect();
        let (mut rounds, mut first, mut round) = (Vec::new(), 0, 0);
        while let Some(&shortest) = left.iter().min_by_key(|&&index| lengths[index]) {
            let until = lengths[shortest];
            rounds.push(Rounds { first, round, datasets: left.clone() });
            first += (until - round) * left.len();
            round = until;
            left.retain(|&index| lengths[index] > until);
        }
        Self { datasets, rounds, length: first }
    }

    /// The dataset of an item, and the item's index in it.
    fn place(&self, index: usize) -> (usize, usize) {
        let later = self.rounds.partition_point(|rounds| rounds.first <= index);
        let rounds = &self.rounds[later - 1];
        let (item, datasets) = (index - rounds.first, rounds.datasets.len());
        (rounds.datasets[item % datasets], rounds.round + item / datasets)
    }
}

impl<I, D: Dataset<I>> Dataset<I> for Interleaved<D> {
    fn get(&self, index: usize) -> Result<I, DatasetError> {
        assert!(index < self.length, "item {index} of {} interleaved ones", self.length);
        let (dataset, index) = self.place(index);
        self.datasets[dataset].get(index)
    }

    fn len(&self) -> usize {
        self.length
    }
}
