//! Curves as SVG.

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use std::path::Path;

/// A named curve: a value for each step.
pub struct Curve {
    pub name: &'static str,
    pub values: Vec<f32>,
}

/// Writes `curves` over the number of their step. Values that are not finite are left out.
pub fn write_plot(path: &Path, title: &str, curves: &[Curve]) -> Result<()> {
    // Errors of plotters hold the picture, which cannot leave this function.
    draw(path, title, curves).map_err(|error| anyhow!("writing {}: {error}", path.display()))
}

fn draw(path: &Path, title: &str, curves: &[Curve]) -> Result<(), Box<dyn std::error::Error>> {
    let finite = || curves.iter().flat_map(|curve| &curve.values).copied().filter(|value| value.is_finite());
    let steps = curves.iter().map(|curve| curve.values.len()).max().unwrap_or(0);
    let top = finite().fold(f32::MIN_POSITIVE, f32::max);
    let bottom = finite().fold(0.0, f32::min);
    let area = SVGBackend::new(path, (800, 480)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(48)
        .build_cartesian_2d(0..steps.max(1), bottom..top)?;
    chart.configure_mesh().x_desc("step").y_desc("loss").light_line_style(WHITE).draw()?;
    for (index, curve) in curves.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        let points = curve.values.iter().copied().enumerate().filter(|(_, value)| value.is_finite());
        chart
            .draw_series(LineSeries::new(points, &color))?
            .label(curve.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color));
    }
    chart.configure_series_labels().background_style(WHITE).border_style(BLACK).draw()?;
    area.present()?;
    Ok(())
}
