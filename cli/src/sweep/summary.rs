//! How the values of a metric vary.

/// Columns of the histogram.
const COLUMNS: usize = 24;

/// Values of a metric by seed, and their statistics.
pub struct Summary {
    pub name: String,
    /// Seeds with the values, which are finite.
    pub values: Vec<(u64, f64)>,
    /// Seeds whose value is NaN or infinite.
    pub not_finite: Vec<u64>,
}

impl Summary {
    pub fn new(name: String, values: Vec<(u64, f64)>) -> Self {
        let (values, not_finite): (Vec<_>, Vec<_>) = values.into_iter().partition(|(_, value)| value.is_finite());
        Self { name, values, not_finite: not_finite.into_iter().map(|(seed, _)| seed).collect() }
    }

    pub fn mean(&self) -> f64 {
        self.values.iter().map(|(_, value)| value).sum::<f64>() / self.values.len() as f64
    }

    /// The standard deviation of a sample: by n - 1.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.values.iter().map(|(_, value)| (value - mean).powi(2)).sum();
        (squares / (self.values.len() as f64 - 1.0)).sqrt()
    }

    /// The least value and its seed.
    pub fn min(&self) -> (u64, f64) {
        self.values.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, f64::NAN))
    }

    /// The greatest value and its seed.
    pub fn max(&self) -> (u64, f64) {
        self.values.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, f64::NAN))
    }

    /// Statistics and histogram, for a sweep of so many seeds.
    pub fn text(&self, seeds: usize) -> String {
        let mut text = format!("{}\n", self.name);
        let missing = seeds - self.values.len() - self.not_finite.len();
        if missing > 0 {
            text.push_str(&format!("  not printed with {missing} of {seeds} seeds\n"));
        }
        if !self.not_finite.is_empty() {
            let seeds: Vec<String> = self.not_finite.iter().map(u64::to_string).collect();
            text.push_str(&format!("  NaN or infinite, and left out, with seed {}\n", seeds.join(", ")));
        }
        if self.values.len() < 2 {
            text.push_str("  fewer than two values\n");
            return text;
        }
        let ((min_seed, min), (max_seed, max)) = (self.min(), self.max());
        text.push_str(&format!(
            "  mean {}  deviation {}  ({} seeds)\n  min {} (seed {min_seed})  max {} (seed {max_seed})  range {}\n",
            number(self.mean()),
            number(self.deviation()),
            self.values.len(),
            number(min),
            number(max),
            number(max - min)
        ));
        match min == max {
            true => text.push_str("  the same with every seed\n"),
            false => text.push_str(&format!("  {} |{}| {}\n", number(min), self.histogram(), number(max))),
        }
        text
    }

    /// How many values lie in each of the equal parts between the least and the greatest.
    pub fn counts(&self, parts: usize) -> Vec<usize> {
        let (min, max) = (self.min().1, self.max().1);
        let mut counts = vec![0; parts];
        for (_, value) in &self.values {
            let part = (value - min) / (max - min) * parts as f64;
            counts[(part as usize).min(parts - 1)] += 1;
        }
        counts
    }

    fn histogram(&self) -> String {
        let counts = self.counts(COLUMNS);
        let most = counts.iter().copied().max().unwrap_or(1).max(1);
        let bars: Vec<char> = " ▁▂▃▄▅▆▇█".chars().collect();
        counts.iter().map(|&count| bars[(count * 8).div_ceil(most)]).collect()
    }
}

/// With five significant digits.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if (1e-3..1e5).contains(&magnitude) {
        let digits = (4 - magnitude.log10().floor() as i32).max(0) as usize;
        format!("{value:.digits$}")
    } else {
        format!("{value:.4e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(values: &[f64]) -> Summary {
        Summary::new("loss".into(), (1..).zip(values.iter().copied()).collect())
    }

    #[test]
    fn statistics_are_those_of_a_sample() {
        let summary = summary(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(summary.mean(), 5.0);
        assert!((summary.deviation() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!((summary.min(), summary.max()), ((1, 2.0), (8, 9.0)));
        assert_eq!(summary.counts(7), [1, 0, 3, 2, 0, 1, 1]);
    }

    #[test]
    fn the_text_has_mean_deviation_range_and_a_histogram() {
        let text = summary(&[0.97, 0.98, 0.99]).text(4);
        let expected = "loss\n  not printed with 1 of 4 seeds\n  mean 0.98000  deviation 0.010000  (3 seeds)\n  \
                        min 0.97000 (seed 1)  max 0.99000 (seed 3)  range 0.020000\n  0.97000 |█";
        assert!(text.starts_with(expected), "{text}");
        assert!(summary(&[0.5, 0.5]).text(2).contains("the same with every seed"));
    }

    #[test]
    fn values_that_are_not_finite_are_said_to_be_left_out() {
        let summary = summary(&[1.0, f64::NAN, 2.0, f64::INFINITY]);
        assert_eq!(summary.mean(), 1.5);
        assert!(summary.text(4).contains("NaN or infinite, and left out, with seed 2, 4"), "{}", summary.text(4));
        assert!(self::summary(&[1.0]).text(1).contains("fewer than two values"));
    }

    #[test]
    fn numbers_have_five_digits() {
        let numbers = [0.0, 0.97491234, 12.345678, 98765.4, 123456.7, 0.00012345, -3.0];
        assert_eq!(numbers.map(number), ["0", "0.97491", "12.346", "98765", "1.2346e5", "1.2345e-4", "-3.0000"]);
    }
}
