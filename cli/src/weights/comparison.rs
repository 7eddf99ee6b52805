//! Where two files of weights differ, and how that is told.

use super::file::Entry;
use burn_backend::TensorData;
use burn_deterministic::checkpoint::Content;
use burn_deterministic::{Difference, ElementDifference};
use std::collections::{BTreeMap, HashMap};

/// Texts that are shown; the others are counted.
const SHOWN: usize = 20;

/// What was found: entries of A in their order, then those that only B has.
pub struct Comparison {
    tensors: Vec<Row>,
    /// Texts that differ: the path, and both.
    texts: Vec<(String, [Option<String>; 2])>,
    /// Texts in all.
    all_texts: usize,
}

/// A tensor that at least one of the files has.
struct Row {
    path: String,
    form: String,
    elements: usize,
    difference: Option<Difference>,
}

impl Comparison {
    pub fn of(a: Vec<Entry>, b: Vec<Entry>) -> Self {
        let order: HashMap<String, usize> = b.iter().enumerate().map(|(at, entry)| (entry.path.clone(), at)).collect();
        let mut others: BTreeMap<usize, Entry> = b.into_iter().enumerate().collect();
        let mut comparison = Self { tensors: Vec::new(), texts: Vec::new(), all_texts: 0 };
        for entry in a {
            let other = order.get(&entry.path).and_then(|at| others.remove(at)).map(|other| other.content);
            comparison.add(entry.path, Some(entry.content), other);
        }
        for other in others.into_values() {
            comparison.add(other.path, None, Some(other.content));
        }
        comparison
    }

    fn add(&mut self, path: String, a: Option<Content>, b: Option<Content>) {
        match (a, b) {
            (Some(Content::Tensor(a)), Some(Content::Tensor(b))) => {
                let difference = Difference::between(&a, &b);
                self.row(path, &a, difference);
            }
            (Some(Content::Tensor(a)), None) => self.row(path, &a, Some(Difference::OnlyInFirst)),
            (None, Some(Content::Tensor(b))) => self.row(path, &b, Some(Difference::OnlyInSecond)),
            (a, b) => {
                self.all_texts += 1;
                let texts = [a, b].map(|content| content.map(|content| text(&content)));
                if texts[0] != texts[1] {
                    self.texts.push((path, texts));
                }
            }
        }
    }

    fn row(&mut self, path: String, data: &TensorData, difference: Option<Difference>) {
        let form = form(data);
        self.tensors.push(Row { path, form, elements: data.num_elements(), difference });
    }

    pub fn is_equal(&self) -> bool {
        self.texts.is_empty() && self.tensors.iter().all(|row| row.difference.is_none())
    }

    /// A line for each tensor, with its elements below where they differ, and a line for each text that differs.
    pub fn text(&self, quiet: bool) -> String {
        let shown: Vec<&Row> = self.tensors.iter().filter(|row| row.difference.is_some() || !quiet).collect();
        let width = |of: fn(&Row) -> usize| shown.iter().map(|row| of(row)).max().unwrap_or(0);
        let (paths, forms) = (width(|row| row.path.chars().count()), width(|row| row.form.chars().count()));
        let mut text = String::new();
        for row in shown {
            let (summary, details) = row.told();
            text.push_str(&format!("{:<paths$}  {:<forms$}  {summary}\n", row.path, row.form));
            details.iter().for_each(|line| text.push_str(&format!("    {line}\n")));
        }
        for (path, [a, b]) in self.texts.iter().take(SHOWN) {
            let value = |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing".to_owned());
            text.push_str(&format!("{path}: {} against {}\n", value(a), value(b)));
        }
        if let Some(more) = self.texts.len().checked_sub(SHOWN + 1) {
            text.push_str(&format!("and {} more values that differ\n", more + 1));
        }
        text + &self.sum()
    }

    /// The last line.
    fn sum(&self) -> String {
        let differing = self.tensors.iter().filter(|row| row.difference.is_some()).count();
        let tensors = self.tensors.len();
        let elements: usize = self.tensors.iter().map(|row| row.elements).sum();
        let values = match (self.texts.len(), self.all_texts) {
            (_, 0) => String::new(),
            (0, all) => format!("; all {all} other values are equal"),
            (differing, all) => format!("; {differing} of {all} other values differ"),
        };
        match differing {
            0 => format!("all {tensors} tensors have the same bits ({elements} elements){values}\n"),
            differing => format!("{differing} of {tensors} tensors differ{values}\n"),
        }
    }
}

impl Row {
    /// What is said of the tensor on its line, and on lines below it.
    fn told(&self) -> (String, Vec<String>) {
        match &self.difference {
            None => ("equal".to_owned(), Vec::new()),
            Some(Difference::OnlyInFirst) => ("only in A".to_owned(), Vec::new()),
            Some(Difference::OnlyInSecond) => ("only in B".to_owned(), Vec::new()),
            Some(Difference::Form([a, b])) => (format!("{a} in A, {b} in B"), Vec::new()),
            Some(Difference::Elements(elements)) => (self.counted(elements), details(elements)),
            Some(other) => (other.to_string(), Vec::new()),
        }
    }

    /// `3 of 288 differ, by at most 2 ULP and 1.2e-7`.
    fn counted(&self, found: &ElementDifference) -> String {
        let kind = if found.shape.num_elements() == self.elements { "" } else { " bytes" };
        let mut text = format!("{} of {}{kind} differ", found.differing, found.shape.num_elements());
        let largest = found.largest.map(|largest| format!("{largest:e}"));
        let bounds: Vec<String> =
            found.largest_ulp.map(|ulp| format!("{ulp} ULP")).into_iter().chain(largest).collect();
        if !bounds.is_empty() {
            text.push_str(&format!(", by at most {}", bounds.join(" and ")));
        }
        if found.nan > 0 {
            text.push_str(&format!(", {} of them NaN in one or both", found.nan));
        }
        text
    }
}

/// The first elements that differ, and how many are how far apart.
fn details(found: &ElementDifference) -> Vec<String> {
    let ElementDifference { index, values: [a, b], bits: [a_bits, b_bits], ulp, .. } = found;
    let apart = ulp.map(|ulp| format!(", {ulp} ULP apart")).unwrap_or_default();
    let first = format!("first at {index:?}: {a} ({a_bits}) against {b} ({b_bits}){apart}");
    let bins: Vec<String> = found
        .histogram
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(bin, count)| format!("{}: {count}", distances(bin)))
        .collect();
    let mut lines = vec![first];
    if !bins.is_empty() {
        lines.push(format!("elements by ULP apart: {}", bins.join(", ")));
    }
    lines
}

/// The distances in a bin of the histogram: `0`, `1`, `2-3`, `4-7`.
fn distances(bin: usize) -> String {
    match bin {
        0 | 1 => bin.to_string(),
        bin => {
            let first = 1u64 << (bin - 1);
            format!("{first}-{}", first + (first - 1))
        }
    }
}

fn text(content: &Content) -> String {
    match content {
        Content::Tensor(data) => form(data),
        Content::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

/// `f32 [3, 2]`.
fn form(data: &TensorData) -> String {
    format!("{} {:?}", data.dtype().name(), &data.shape()[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(path: &str, data: TensorData) -> Entry {
        Entry::of_file(path.to_owned(), Content::Tensor(data))
    }

    fn value(path: &str, text: &str) -> Entry {
        Entry::of_file(path.to_owned(), Content::Text(text.to_owned()))
    }

    #[test]
    fn equal_files_are_equal() {
        let entries = || vec![tensor("a", TensorData::from([1.0f32, f32::NAN])), value("step", "3")];
        let comparison = Comparison::of(entries(), entries());
        assert!(comparison.is_equal());
        let sum = "all 1 tensors have the same bits (2 elements); all 1 other values are equal\n";
        assert_eq!(comparison.text(false), format!("a  f32 [2]  equal\n{sum}"));
        assert_eq!(comparison.text(true), sum);
    }

    #[test]
    fn elements_that_differ_are_told() {
        let nan = f32::NAN;
        let a = TensorData::new(vec![1.0, 2.0, nan, nan, 0.0, 6.0], [2, 3]);
        let b = TensorData::new(vec![1.0, 2.0000002, nan, 1.0, -0.0, 6.000002], [2, 3]);
        let comparison = Comparison::of(vec![tensor("conv.weight", a)], vec![tensor("conv.weight", b)]);
        assert!(!comparison.is_equal());
        let lines = [
            "conv.weight  f32 [2, 3]  4 of 6 differ, by at most 4 ULP and 1.9073486328125e-6, 1 of them NaN in one or both",
            "    first at [0, 1]: 2.0 (0x40000000) against 2.0000002 (0x40000001), 1 ULP apart",
            "    elements by ULP apart: 0: 2, 1: 2, 4-7: 1",
            "1 of 1 tensors differ",
        ];
        assert_eq!(comparison.text(false), lines.map(|line| format!("{line}\n")).concat());
    }

    #[test]
    fn tensors_of_one_file_and_of_other_forms_are_told() {
        let a = vec![
            tensor("a", TensorData::from([1i64])),
            tensor("b", TensorData::from([[1.0f32]])),
            tensor("c", TensorData::from([1.0f32])),
            value("losses[0]", "0.5"),
        ];
        let b = vec![
            tensor("d", TensorData::from([true])),
            tensor("c", TensorData::from([1.0f64])),
            tensor("b", TensorData::from([1.0f32])),
            value("losses[0]", "0.25"),
            value("step", "1"),
        ];
        let text = Comparison::of(a, b).text(false);
        for line in [
            "a  i64 [1]     only in A",
            "b  f32 [1, 1]  f32 [1, 1] in A, f32 [1] in B",
            "c  f32 [1]     f32 [1] in A, f64 [1] in B",
            "only in B",
            "losses[0]: 0.5 against 0.25",
            "step: nothing against 1",
            "4 of 4 tensors differ; 2 of 2 other values differ",
        ] {
            assert!(text.contains(line), "no `{line}` in\n{text}");
        }
    }

    #[test]
    fn many_values_that_differ_are_counted() {
        let values = |text: &str| (0..25).map(|at| value(&format!("losses[{at}]"), text)).collect();
        let text = Comparison::of(values("1"), values("2")).text(true);
        assert_eq!(text.lines().filter(|line| line.contains(" against ")).count(), SHOWN);
        assert!(text.contains("and 5 more values that differ"), "{text}");
    }

    #[test]
    fn bins_are_powers_of_two() {
        assert_eq!([0, 1, 2, 3, 4].map(distances), ["0", "1", "2-3", "4-7", "8-15"]);
        assert!(distances(64).ends_with(&u64::MAX.to_string()));
    }
}
