//! The metrics that a program prints.

use std::collections::BTreeMap;

/// Characters of a name at most.
const NAME: usize = 48;

/// Metrics by name: of lines `name: number` and `name number`, the last of each name.
///
/// A name begins with a letter and consists of at most six words of letters, digits, `_`, `-`, `/`, `@`, `.`, `(` and
/// `)`; without a colon, each word begins with a letter or a bracket, and so sentences with more than one number are none.
pub fn read(stdout: &str) -> BTreeMap<String, f64> {
    stdout.lines().filter_map(metric).collect()
}

fn metric(line: &str) -> Option<(String, f64)> {
    let line = line.trim();
    let (name, number, has_colon) = match line.split_once(':').or_else(|| line.split_once('=')) {
        Some((name, number)) => (name, number, true),
        None => line.rsplit_once(char::is_whitespace).map(|(name, number)| (name, number, false))?,
    };
    let (name, number) = (name.trim(), number.trim());
    let value: f64 = number.strip_suffix('%').unwrap_or(number).trim_end().parse().ok()?;
    let words: Vec<&str> = name.split_whitespace().collect();
    let is_word = |word: &&str| {
        let known = word.chars().all(|c| c.is_alphanumeric() || "_-/@.()".contains(c));
        let begins = word.starts_with(|c: char| c.is_alphabetic() || c == '(');
        known && (has_colon || begins)
    };
    let is_name = name.len() <= NAME
        && words.len() <= 6
        && words.iter().all(is_word)
        && name.starts_with(char::is_alphabetic)
        // What the program was given, or a hash that happens to have digits only.
        && !["seed", "digest"].contains(&name.to_lowercase().as_str());
    is_name.then(|| (words.join(" "), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_a_name_and_a_number_are_metrics() {
        for (line, name, value) in [
            ("test accuracy: 0.9749", "test accuracy", 0.9749),
            ("test accuracy 0.9749", "test accuracy", 0.9749),
            ("  loss = 1.5e-3 ", "loss", 1.5e-3),
            ("Top-5 accuracy:  93.2 %", "Top-5 accuracy", 93.2),
            ("f1/macro@k -0.5", "f1/macro@k", -0.5),
            ("accuracy of class 3: 0.5", "accuracy of class 3", 0.5),
            ("perplexity: inf", "perplexity", f64::INFINITY),
        ] {
            assert_eq!(metric(line), Some((name.to_owned(), value)), "{line}");
        }
        assert!(metric("loss: NaN").expect("a metric").1.is_nan());
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "",
            "0.5",
            "accuracy",
            "accuracy: high",
            "digest: 0123456789012345678901234567890123456789012345678901234567890123",
            "seed: 7",
            "epoch 3/12: loss 0.1234, test accuracy 0.97",
            "first step after 1.25 s, then 3.50 steps/s",
            "going on after step 12, in epoch 2",
            "loss.svg and weights: target/results/digits",
            "12 of 14 7",
            "epoch 1 loss 0.5",
            "this is a sentence that ends with the year 2026",
            "a: b: 3",
        ] {
            assert_eq!(metric(line), None, "{line}");
        }
    }

    #[test]
    fn the_last_line_of_a_name_counts() {
        let read = read("loss: 0.5\naccuracy 0.9\nloss: 0.25\n");
        assert_eq!(read.into_iter().collect::<Vec<_>>(), [("accuracy".to_owned(), 0.9), ("loss".to_owned(), 0.25)]);
    }
}
