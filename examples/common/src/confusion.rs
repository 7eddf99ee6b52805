//! Which classes a model takes for which.

use anyhow::{Result, anyhow, ensure};
use burn::prelude::*;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

/// Width and height of a count, in pixels, and of the margin that has the names of the classes.
const CELL: i32 = 44;
const MARGIN: i32 = 90;

/// How many samples of each class were taken for each class.
pub struct Confusion {
    classes: Vec<String>,
    /// By class, then by the class it was taken for.
    counts: Vec<Vec<usize>>,
}

impl Confusion {
    /// Counts samples: `labels` `[n]`, and `named` `[n]`, what they were taken for. A label is the index of a class.
    ///
    /// # Errors
    ///
    /// When a tensor cannot be read, and for a label that is none.
    pub fn new(classes: Vec<String>, labels: Tensor<1, Int>, named: Tensor<1, Int>) -> Result<Self> {
        let [labels, named] = [labels.try_into_data()?, named.try_into_data()?];
        let mut counts = vec![vec![0; classes.len()]; classes.len()];
        for (label, named) in labels.iter::<i64>().zip(named.iter::<i64>()) {
            let is_class = |label: i64| (0..classes.len() as i64).contains(&label);
            ensure!(is_class(label) && is_class(named), "{label} and {named} are to be classes of {}", classes.len());
            counts[label as usize][named as usize] += 1;
        }
        Ok(Self { classes, counts })
    }

    /// The fraction of the samples that are named rightly.
    pub fn accuracy(&self) -> f32 {
        let right: usize = self.counts.iter().enumerate().map(|(class, taken)| taken[class]).sum();
        right as f32 / self.counts.iter().flatten().sum::<usize>() as f32
    }

    /// The mean over the classes of the fraction of each that is named rightly: guessing one class for all of two gives 0.5.
    pub fn balanced_accuracy(&self) -> f32 {
        let fractions = self.counts.iter().enumerate();
        let fractions = fractions.map(|(class, taken)| taken[class] as f32 / taken.iter().sum::<usize>() as f32);
        fractions.sum::<f32>() / self.classes.len() as f32
    }

    /// Writes the counts as SVG: a row for each class, a column for what it was taken for.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        // Errors of plotters hold the picture, which cannot leave this function.
        self.draw(path).map_err(|error| anyhow!("writing {}: {error}", path.display()))
    }

    fn draw(&self, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
        let side = (MARGIN + CELL * self.classes.len() as i32 + 12) as u32;
        let area = SVGBackend::new(path, (side, side)).into_drawing_area();
        area.fill(&WHITE)?;
        let font = |color: &'static RGBColor| {
            TextStyle::from(("sans-serif", 14)).color(color).pos(Pos::new(HPos::Center, VPos::Center))
        };
        let center = |index: usize| MARGIN + CELL * index as i32 + CELL / 2;
        area.draw_text("taken for", &font(&BLACK), ((MARGIN + side as i32) / 2, 14))?;
        area.draw_text("is", &font(&BLACK), (14, (MARGIN + side as i32) / 2))?;
        for (row, name) in self.classes.iter().enumerate() {
            area.draw_text(name, &font(&BLACK), (MARGIN - 36, center(row)))?;
            area.draw_text(name, &font(&BLACK), (center(row), MARGIN - 36))?;
            let total = self.counts[row].iter().sum::<usize>().max(1);
            for (column, &count) in self.counts[row].iter().enumerate() {
                let share = count as f64 / total as f64;
                let shade = |full: u8| 255 - (f64::from(255 - full) * share.sqrt()).round() as u8;
                let color = RGBColor(shade(8), shade(48), shade(107));
                let corner = (MARGIN + CELL * column as i32, MARGIN + CELL * row as i32);
                let cell = [corner, (corner.0 + CELL, corner.1 + CELL)];
                area.draw(&Rectangle::new(cell, color.filled()))?;
                let ink = if share > 0.3 { &WHITE } else { &BLACK };
                area.draw_text(&count.to_string(), &font(ink), (center(column), center(row)))?;
            }
        }
        area.present()?;
        Ok(())
    }
}
