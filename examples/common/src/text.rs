//! The Constitution of the United States, by character, by passage and by word.

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::prelude::*;
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

/// Passages of equal length from a text.
///
/// The item of each is what [`PassageBatcher`] wants at any of `length` places: the passage, the next one, and a
/// character more.
pub struct Passages {
    text: Vec<i32>,
    length: usize,
}

impl Passages {
    /// The Constitution in passages of `length` characters: the first nine tenths to train on, the rest to test.
    pub fn load(length: usize) -> (Characters, Self, Self) {
        let characters = Characters::of(CONSTITUTION);
        let text = characters.encode(CONSTITUTION);
        let (train, test) = text.split_at(text.len() / 10 * 9);
        let [train, test] = [train, test].map(|text| Self { text: text.to_vec(), length });
        (characters, train, test)
    }

    /// All passages, each with the character after it, in the order of the text.
    pub fn all(&self, device: &Device) -> TextBatch {
        let passage = |index: usize| self.text[index * self.length..][..=self.length].to_vec();
        PassageBatcher.batch((0..self.len()).map(passage).collect(), device)
    }
}

impl Dataset<Vec<i32>> for Passages {
    fn get(&self, index: usize) -> Result<Vec<i32>, DatasetError> {
        Ok(self.text[index * self.length..][..=2 * self.length].to_vec())
    }

    fn len(&self) -> usize {
        (self.text.len() - 1) / self.length - 1
    }
}

/// Characters `[n, length]`, and the character after each, `[n * length]`.
pub type TextBatch = (Tensor<2, Int>, Tensor<1, Int>);

/// Puts passages, each with the character after it, on a device.
#[derive(Clone, Copy, Debug)]
pub struct PassageBatcher;

impl Batcher<Vec<i32>, TextBatch> for PassageBatcher {
    fn batch(&self, passages: Vec<Vec<i32>>, device: &Device) -> TextBatch {
        let [count, length] = [passages.len(), passages[0].len() - 1];
        let text = passages.iter().flat_map(|passage| &passage[..length]).copied().collect::<Vec<i32>>();
        let next = passages.iter().flat_map(|passage| &passage[1..]).copied().collect::<Vec<i32>>();
        let text = Tensor::from_data(TensorData::new(text, [count, length]), device);
        (text, Tensor::from_data(TensorData::new(next, [count * length]), device))
    }
}
