//! The Constitution of the United States, by character, by passage and by word.

use crate::{generator, shuffled};
use burn::prelude::*;
use rand::RngExt;
use std::collections::BTreeMap;

/// The Constitution with its amendments (see data/README.md).
pub const CONSTITUTION: &str = include_str!("../../../data/us-constitution.txt");

/// A text as numbers, one for each character that occurs in it, in the order of their code points.
pub struct Characters {
    characters: Vec<char>,
}

impl Characters {
    /// The characters of `text`.
    pub fn of(text: &str) -> Self {
        let mut characters: Vec<char> = text.chars().collect();
        characters.sort_unstable();
        characters.dedup();
        Self { characters }
    }

    /// How many characters are told apart.
    pub fn count(&self) -> usize {
        self.characters.len()
    }

    /// The numbers of a text's characters; what is none of them is left out.
    pub fn encode(&self, text: &str) -> Vec<i32> {
        text.chars().filter_map(|character| self.characters.binary_search(&character).ok()).map(|n| n as i32).collect()
    }

    /// The text of numbers that [`Characters::encode`] gave.
    pub fn decode(&self, numbers: &[i32]) -> String {
        numbers.iter().map(|&number| self.characters[number as usize]).collect()
    }
}

/// A text as numbers, one for each word that occurs often enough, in the order of the alphabet.
pub struct Words {
    /// The words told apart, in lower case.
    pub vocabulary: Vec<String>,
    /// How often each occurs.
    pub counts: Vec<usize>,
    /// The text, without its rare words.
    pub text: Vec<i32>,
}

impl Words {
    /// The words of `text` that occur at least `often` times.
    pub fn of(text: &str, often: usize) -> Self {
        let lower = text.to_lowercase();
        let words = || lower.split(|character: char| !character.is_alphabetic()).filter(|word| !word.is_empty());
        let mut counts = BTreeMap::<&str, usize>::new();
        for word in words() {
            *counts.entry(word).or_default() += 1;
        }
        counts.retain(|_, count| *count >= often);
        let vocabulary: Vec<&str> = counts.keys().copied().collect();
        let number = |word| vocabulary.binary_search(&word).ok().map(|number| number as i32);
        let text = words().filter_map(number).collect();
        let counts = counts.values().copied().collect();
        Self { text, counts, vocabulary: vocabulary.into_iter().map(str::to_owned).collect() }
    }
}

/// Passages of equal length from a text, and the character after each of theirs.
pub struct Passages {
    text: Vec<i32>,
    length: usize,
}

/// Characters `[n, length]`, and the character after each, `[n * length]`.
pub type TextBatch = (Tensor<2, Int>, Tensor<1, Int>);

impl Passages {
    /// The Constitution in passages of `length` characters: the first nine tenths to train on, the rest to test.
    pub fn load(length: usize) -> (Characters, Self, Self) {
        let characters = Characters::of(CONSTITUTION);
        let text = characters.encode(CONSTITUTION);
        let (train, test) = text.split_at(text.len() / 10 * 9);
        let [train, test] = [train, test].map(|text| Self { text: text.to_vec(), length });
        (characters, train, test)
    }

    /// How many passages there are, one beginning where the one before ends. Room is left to begin later.
    pub fn count(&self) -> usize {
        (self.text.len() - 1) / self.length - 1
    }

    /// All passages, in the order of the text.
    pub fn all(&self, device: &Device) -> TextBatch {
        self.batch((0..self.count()).map(|passage| passage * self.length), device)
    }

    /// All passages in the order of `epoch`, `batch_size` at a time. Each epoch cuts the text at other places.
    pub fn shuffled(
        &self,
        seed: u64,
        epoch: usize,
        batch_size: usize,
        device: &Device,
    ) -> impl Iterator<Item = TextBatch> {
        let offset = generator(!seed, epoch).random_range(0..self.length);
        let order = shuffled(self.count(), seed, epoch);
        let batches: Vec<Vec<usize>> = order.chunks(batch_size).map(<[usize]>::to_vec).collect();
        let device = device.clone();
        batches
            .into_iter()
            .map(move |batch| self.batch(batch.into_iter().map(|passage| offset + passage * self.length), &device))
    }

    fn batch(&self, starts: impl ExactSizeIterator<Item = usize> + Clone, device: &Device) -> TextBatch {
        let count = starts.len();
        let cut = |shift: usize| {
            let passages = starts.clone().flat_map(|start| &self.text[start + shift..][..self.length]);
            passages.copied().collect::<Vec<i32>>()
        };
        let text = TensorData::new(cut(0), [count, self.length]);
        let next = TensorData::new(cut(1), [count * self.length]);
        (Tensor::from_data(text, device), Tensor::from_data(next, device))
    }
}
