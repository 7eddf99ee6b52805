//! The course of a training as SVG.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::path::Path;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A named loss: a value for each step.
pub struct Curve {
    pub name: &'static str,
    pub values: Vec<f32>,
}

/// What was measured after a number of steps, with a name for each value.
pub type Measured = (usize, Vec<(String, f32)>);

/// A line of a panel: epochs, in fractions, and values.
struct Line {
    name: String,
    points: Vec<(f64, f32)>,
    has_dots: bool,
}

/// Writes the losses over the epochs, of `steps` steps each. Measured values whose name ends in `loss` are drawn among them,
/// others in a panel of their own. Values that are not finite are left out.
pub fn write_plot(path: &Path, title: &str, losses: &[Curve], measured: &[Measured], steps: usize) -> Result<()> {
    let epoch = |step: usize| step as f64 / steps.max(1) as f64;
    let finite = |points: Vec<(f64, f32)>| points.into_iter().filter(|(_, value)| value.is_finite()).collect();
    let of_steps = losses.iter().map(|Curve { name, values }| Line {
        name: (*name).to_owned(),
        points: finite(values.iter().enumerate().map(|(index, value)| (epoch(index + 1), *value)).collect()),
        has_dots: false,
    });
    let names = measured.first().into_iter().flat_map(|(_, values)| values.iter().map(|(name, _)| name));
    let of_epochs = names.enumerate().map(|(index, name)| Line {
        name: name.clone(),
        points: finite(measured.iter().map(|(step, values)| (epoch(*step), values[index].1)).collect()),
        has_dots: true,
    });
    let (losses, others): (Vec<_>, Vec<_>) =
        of_steps.chain(of_epochs).partition(|line| !line.has_dots || line.name.ends_with("loss"));
    // Errors of plotters hold the picture, which cannot leave this function.
    draw(path, title, &losses, &others).map_err(|error| anyhow!("writing {}: {error}", path.display()))
}

fn draw(path: &Path, title: &str, losses: &[Line], others: &[Line]) -> Outcome<()> {
    let panels = if others.is_empty() { 1 } else { 2 };
    let area = SVGBackend::new(path, (800, 400 * panels + 24)).into_drawing_area();
    area.fill(&WHITE)?;
    let area = area.titled(title, ("sans-serif", 20))?;
    let last = losses.iter().chain(others).flat_map(|line| &line.points).map(|(epoch, _)| *epoch).fold(0.0, f64::max);
    let parts = area.split_evenly((panels as usize, 1));
    for (part, lines) in parts.iter().zip([losses, others]) {
        draw_panel(part, lines, last)?;
    }
    area.present()?;
    Ok(())
}

fn draw_panel(area: &DrawingArea<SVGBackend, Shift>, lines: &[Line], last: f64) -> Outcome<()> {
    let values = || lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
    let top = values().fold(f32::MIN_POSITIVE, f32::max);
    let bottom = values().fold(0.0, f32::min);
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..last.max(f64::MIN_POSITIVE), bottom..top)?;
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    let label = |epoch: &f64| format!("{}", (epoch * 100.0).round() / 100.0);
    let mut mesh = chart.configure_mesh();
    mesh.x_desc("epoch").y_desc(names.join(", ")).x_label_formatter(&label).light_line_style(WHITE).draw()?;
    for (index, line) in lines.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        let points = || line.points.iter().copied();
        let width = if line.has_dots { 2 } else { 1 };
        chart
            .draw_series(LineSeries::new(points(), color.stroke_width(width)))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(width)));
        if line.has_dots {
            chart.draw_series(points().map(|point| Circle::new(point, 3, color.filled())))?;
        }
    }
    chart.configure_series_labels().background_style(WHITE).border_style(BLACK).draw()?;
    Ok(())
}
