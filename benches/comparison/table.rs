//! The table that the benchmark prints.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// No operation is to be slower than Burn by more than this ratio.
const SLOW: f64 = 0.7;

/// Measurements of plain Burn and of burn-deterministic, side by side.
pub struct Table {
    filters: Vec<String>,
    /// The rows whose number is the first, modulo the second.
    part: Option<[usize; 2]>,
    /// What was asked for so far: a row's number is its place here.
    asked: Vec<&'static str>,
    rows: Vec<Row>,
    /// The ratios of single operations and of programs of a few, for the summary.
    ratios: Vec<(&'static str, f64)>,
}

struct Row {
    work: &'static str,
    /// Burn's, burn-deterministic's, and their ratio; or why there is none.
    measured: Result<(String, String, f64), String>,
    target: Option<Target>,
}

/// What the ratio is to be.
#[derive(Clone, Copy)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Table {
    /// A table of the work whose name contains one of `filters`, or of a part of it.
    pub fn new(filters: Vec<String>, part: Option<[usize; 2]>) -> Self {
        Self { filters, part, asked: Vec::new(), rows: Vec::new(), ratios: Vec::new() }
    }

    /// Whether `work` is to be measured.
    pub fn wants(&mut self, work: &'static str) -> bool {
        if !self.filters.is_empty() && !self.filters.iter().any(|filter| work.contains(filter.as_str())) {
            return false;
        }
        let number = self.asked.iter().position(|asked| *asked == work).unwrap_or_else(|| {
            self.asked.push(work);
            self.asked.len() - 1
        });
        self.part.is_none_or(|[index, count]| number % count == index)
    }

    /// As if nothing had been measured; the rows keep their numbers.
    pub fn forget_rows(&mut self) {
        (self.rows, self.ratios) = (Vec::new(), Vec::new());
    }

    /// Adds the times of `work`; the ratio is how many times as fast burn-deterministic is.
    pub fn times(&mut self, work: &'static str, [burn, here]: [Duration; 2], target: Option<Target>) {
        let ratio = burn.as_secs_f64() / here.as_secs_f64();
        self.add(Row { work, measured: Ok((format!("{burn:.3?}"), format!("{here:.3?}"), ratio)), target });
    }

    /// As [`times`](Self::times), of work that the summary counts.
    pub fn operation(&mut self, work: &'static str, times: [Duration; 2], target: Option<Target>) {
        self.ratios.push((work, times[0].as_secs_f64() / times[1].as_secs_f64()));
        self.times(work, times, target);
    }

    /// Adds quantities of `work` in `unit`; the ratio is that of burn-deterministic's to Burn's.
    pub fn quantities(
        &mut self,
        work: &'static str,
        [burn, here]: [f64; 2],
        unit: &'static str,
        target: Option<Target>,
    ) {
        let spelled = |quantity: f64| format!("{quantity:.1} {unit}");
        self.add(Row { work, measured: Ok((spelled(burn), spelled(here), here / burn)), target });
    }

    /// Says why the two do not do the same `work`.
    pub fn not_comparable(&mut self, work: &'static str, reason: String) {
        self.add(Row { work, measured: Err(reason), target: None });
    }

    fn add(&mut self, row: Row) {
        eprintln!("{row}");
        self.rows.push(row);
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "| work | Burn | here | ratio | target | |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        self.rows.iter().try_for_each(|row| writeln!(f, "{row}"))?;
        if self.ratios.is_empty() {
            return Ok(());
        }
        let count = self.ratios.len();
        let mean = (self.ratios.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / count as f64).exp();
        let below = |bound| self.ratios.iter().filter(|(_, ratio)| *ratio < bound).count();
        let (below_1, slow) = (below(1.0), below(SLOW));
        writeln!(
            f,
            "\nOperations: {count}; geometric mean of the ratios {mean:.2}; below 1.0: {below_1}; below {SLOW}: {slow}."
        )
    }
}

impl Display for Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { work, measured, target } = self;
        match (measured, target) {
            (Err(reason), _) => write!(f, "| {work} | | | | | not comparable: {reason} |"),
            (Ok((burn, here, ratio)), None) => write!(f, "| {work} | {burn} | {here} | {ratio:.2} | | |"),
            (Ok((burn, here, ratio)), Some(target)) => {
                let verdict = if target.met(*ratio) { "met" } else { "**missed**" };
                write!(f, "| {work} | {burn} | {here} | {ratio:.2} | {target} | {verdict} |")
            }
        }
    }
}

impl Target {
    fn met(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(bound) => ratio >= bound,
            Self::AtMost(bound) => ratio <= bound,
        }
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, "≥ {bound}"),
            Self::AtMost(bound) => write!(f, "≤ {bound}"),
        }
    }
}
