//! Operations or parameters by step, as SVG.

use super::escape::escaped;
use super::words;
use crate::diff::{Cell, Picture};
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: f64 = 960.0;
/// Below them: the steps.
const BOTTOM: f64 = 40.0;

/// A picture with steps from left to right. `what` says what the rows are, and `mark` what the first difference is;
/// `wide` leaves room for the names of rows.
pub(super) fn svg(picture: &Picture, what: &str, mark: Option<&str>, wide: bool) -> String {
    let columns = picture.cells.len();
    let rows = picture.cells.iter().map(Vec::len).max().unwrap_or(0);
    if columns == 0 || rows == 0 {
        return String::new();
    }
    let names = !picture.rows.is_empty();
    let left = if wide { 190.0 } else { 64.0 };
    // The mark of the first difference is above the cells.
    let top = if mark.is_some() { 26.0 } else { 4.0 };
    let width = ((WIDTH - left - 8.0) / columns as f64).min(56.0);
    let height = if names { 18.0 } else { (320.0 / rows as f64).clamp(2.5, 18.0) };
    let (right, bottom) = (left + width * columns as f64, top + height * rows as f64);
    let mut svg = format!(
        r#"<svg viewBox="0 0 {WIDTH} {:.0}" role="img" aria-label="{what}, by step"><rect class="ground" x="{left}" y="{top}" width="{:.1}" height="{:.1}"/>"#,
        bottom + BOTTOM,
        right - left,
        bottom - top
    );
    // A path for each class: neighbours of one class in a column are one rectangle.
    let mut paths: BTreeMap<&str, String> = BTreeMap::new();
    let gap = if width > 6.0 { 1.0 } else { 0.0 };
    for (column, cells) in picture.cells.iter().enumerate() {
        let x = left + width * column as f64;
        let mut row = 0;
        while row < cells.len() {
            let class = class(&cells[row]);
            let end = cells[row..].iter().position(|cell| self::class(cell) != class).map_or(cells.len(), |n| row + n);
            if let Some(class) = class {
                let path = paths.entry(class).or_default();
                let (y, h) = (top + height * row as f64, height * (end - row) as f64);
                let w = (width - gap).max(0.5);
                let _ = write!(path, "M{x:.1} {y:.1}h{w:.1}v{h:.1}h-{w:.1}z");
            }
            row = end;
        }
    }
    for (class, path) in &paths {
        let _ = write!(svg, r#"<path class="{class}" d="{path}"/>"#);
    }
    // What a pointer shows.
    for (column, cells) in picture.cells.iter().enumerate() {
        let total = cells.iter().fold(Cell::default(), |sum, cell| Cell {
            same: sum.same + cell.same,
            differing: sum.differing + cell.differing,
            only: [sum.only[0] + cell.only[0], sum.only[1] + cell.only[1]],
        });
        let x = left + width * column as f64;
        let step = picture.steps[column];
        let _ = write!(
            svg,
            r#"<rect class="hover" x="{x:.1}" y="{top}" width="{width:.1}" height="{:.1}"><title>{step}: {} the same, {} different{}</title></rect>"#,
            bottom - top,
            total.same,
            total.differing,
            if total.only == [0, 0] {
                String::new()
            } else {
                format!(", {} and {} in one alone", total.only[0], total.only[1])
            }
        );
    }
    // Steps and rows.
    let every = columns.div_ceil(12).max((44.0 / width).ceil() as usize);
    for column in (0..columns).step_by(every) {
        let x = left + width * (column as f64 + 0.5);
        let label = picture.steps[column].number.map_or_else(|| "setup".to_owned(), words::grouped);
        let _ = write!(
            svg,
            r#"<text class="tick" x="{x:.1}" y="{:.1}" text-anchor="middle">{label}</text>"#,
            bottom + 15.0
        );
    }
    let per =
        if picture.steps_of_column == 1 { String::new() } else { format!(" ({} a column)", picture.steps_of_column) };
    let _ = write!(
        svg,
        r#"<text class="axis" x="{:.1}" y="{:.1}" text-anchor="middle">step{per}</text>"#,
        (left + right) / 2.0,
        bottom + 32.0
    );
    for (row, name) in picture.rows.iter().enumerate().take(rows) {
        let y = top + height * (row as f64 + 0.5) + 4.0;
        let _ = write!(
            svg,
            r#"<text class="tick" x="{:.1}" y="{y:.1}" text-anchor="end">{}</text>"#,
            left - 8.0,
            shortened(name)
        );
    }
    if !names {
        for row in (0..rows).step_by(rows.div_ceil(6)) {
            let y = top + height * (row as f64 + 0.5) + 4.0;
            let label = words::grouped((row * picture.items_of_row) as u64);
            let _ =
                write!(svg, r#"<text class="tick" x="{:.1}" y="{y:.1}" text-anchor="end">{label}</text>"#, left - 8.0);
        }
        let middle = (top + bottom) / 2.0;
        let _ = write!(
            svg,
            r#"<text class="axis" transform="translate({:.1} {middle:.1}) rotate(-90)" text-anchor="middle">{what}</text>"#,
            left - 50.0
        );
    }
    if let (Some((column, row)), Some(mark)) = (picture.first, mark) {
        let (x, y) = (left + width * column as f64, top + height * row as f64);
        let (w, h) = ((width - gap).max(3.0), height.max(3.0));
        let _ = write!(
            svg,
            r#"<path class="lead" d="M{0:.1} {1:.1}V{2:.1}"/><rect class="mark" x="{x:.1}" y="{y:.1}" width="{w:.1}" height="{h:.1}"/>"#,
            x + w / 2.0,
            top - 6.0,
            y
        );
        let (at, anchor) = if x > 600.0 { (x + w, "end") } else { (x.max(left), "start") };
        let _ = write!(
            svg,
            r#"<text class="note" x="{at:.1}" y="{:.1}" text-anchor="{anchor}">{}</text>"#,
            top - 10.0,
            escaped(mark)
        );
    }
    svg.push_str("</svg>");
    svg
}

/// The color of a cell; `None` for one without operations.
fn class(cell: &Cell) -> Option<&'static str> {
    let Cell { same, differing, only: [first, second] } = *cell;
    match (same, differing, first, second) {
        (0, 0, 0, 0) => None,
        (_, 0, 0, 0) => Some("same"),
        (0, 0, _, 0) => Some("first"),
        (0, 0, 0, _) => Some("second"),
        (0, 0, ..) => Some("both"),
        (same, differing, ..) if differing >= same => Some("most"),
        (_, 0, ..) => Some("both"),
        _ => Some("some"),
    }
}

fn shortened(name: &str) -> String {
    let count = name.chars().count();
    if count <= 28 {
        escaped(name)
    } else {
        escaped(&format!("..{}", name.chars().skip(count - 26).collect::<String>()))
    }
}
