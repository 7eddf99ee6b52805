//! The table that the benchmark prints.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// Measurements of plain Burn and of burn-deterministic, side by side.
pub struct Table {
    filter: Option<String>,
    rows: Vec<Row>,
}

struct Row {
    work: &'static str,
    burn: String,
    here: String,
    ratio: f64,
    target: Option<Target>,
}

/// What the ratio is to be.
#[derive(Clone, Copy)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Table {
    /// A table of the work whose name contains `filter`.
    pub fn new(filter: Option<String>) -> Self {
        Self { filter, rows: Vec::new() }
    }

    /// Whether `work` is to be measured.
    pub fn wants(&self, work: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| work.contains(filter.as_str()))
    }

    /// Adds the times of `work`; the ratio is how many times as fast burn-deterministic is.
    pub fn times(&mut self, work: &'static str, [burn, here]: [Duration; 2], target: Option<Target>) {
        let ratio = burn.as_secs_f64() / here.as_secs_f64();
        self.add(Row { work, burn: format!("{burn:.3?}"), here: format!("{here:.3?}"), ratio, target });
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
        self.add(Row { work, burn: spelled(burn), here: spelled(here), ratio: here / burn, target });
    }

    fn add(&mut self, row: Row) {
        eprintln!("{}: Burn {}, here {}, ratio {:.2}", row.work, row.burn, row.here, row.ratio);
        self.rows.push(row);
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "| work | Burn | here | ratio | target | |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for Row { work, burn, here, ratio, target } in &self.rows {
            let (target, verdict) = match *target {
                Some(Target::AtLeast(bound)) => (format!("≥ {bound}"), verdict(*ratio >= bound)),
                Some(Target::AtMost(bound)) => (format!("≤ {bound}"), verdict(*ratio <= bound)),
                None => Default::default(),
            };
            writeln!(f, "| {work} | {burn} | {here} | {ratio:.2} | {target} | {verdict} |")?;
        }
        Ok(())
    }
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "**missed**" }
}
