//! A sweep as a page that needs no other file.

use super::summary::{Summary, number};
use crate::program::spelled;
use std::ffi::OsString;
use std::fmt::Write;

const STYLE: &str = "body{margin:0;background:#f5f6f8;color:#1d2430;font:15px/1.5 system-ui,sans-serif}\
main{max-width:880px;margin:0 auto;padding:28px 20px}\
section{background:#fff;border:1px solid #d9dee6;border-radius:10px;padding:18px 24px;margin:0 0 18px}\
h1{font-size:20px}h2{font-size:17px;margin:0}p{color:#667085;margin:4px 0 10px}\
.dot{fill:#3b6fd4;fill-opacity:.55}.band{fill:#e3ebfa}.mean{stroke:#1d2430;stroke-width:2}\
.axis{stroke:#a9b2c0}text{font-size:12px;fill:#667085}svg{width:100%;display:block}";

/// A strip of dots for each metric, with the mean and a deviation to each side.
pub fn html(summaries: &[Summary], command: &[OsString], seeds: usize) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<title>{seeds} seeds</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>Variation over {seeds} seeds</h1>\n<p><code>{}</code></p>\n",
        escaped(&spelled(command))
    );
    for summary in summaries {
        let _ = writeln!(page, "<section>\n<h2>{}</h2>", escaped(&summary.name));
        let ((_, min), (_, max)) = (summary.min(), summary.max());
        if summary.values.len() < 2 || min == max {
            let few = "fewer than two values".to_owned();
            let what = if min == max { format!("{} with every seed", number(min)) } else { few };
            let _ = writeln!(page, "<p>{what}</p>\n</section>");
            continue;
        }
        let [mean, deviation, range] = [summary.mean(), summary.deviation(), max - min];
        let _ = writeln!(
            page,
            "<p>mean {}, standard deviation {}, range {} ({} seeds{})</p>\n{}\n</section>",
            number(mean),
            number(deviation),
            number(range),
            summary.values.len(),
            if summary.not_finite.is_empty() {
                String::new()
            } else {
                format!(", {} not finite", summary.not_finite.len())
            },
            strip(summary)
        );
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn strip(summary: &Summary) -> String {
    let ((_, min), (_, max)) = (summary.min(), summary.max());
    let (mean, deviation) = (summary.mean(), summary.deviation());
    let (low, high) = (min.min(mean - deviation), max.max(mean + deviation));
    let x = |value: f64| 30.0 + (value - low) / (high - low) * 740.0;
    let mut svg = String::from("<svg viewBox=\"0 0 800 116\" role=\"img\" aria-label=\"values by seed\">");
    let band = x(mean + deviation) - x(mean - deviation);
    let _ = write!(
        svg,
        "<rect class=\"band\" x=\"{:.1}\" y=\"8\" width=\"{band:.1}\" height=\"76\"/>",
        x(mean - deviation)
    );
    let _ = write!(svg, "<path class=\"axis\" d=\"M30 84H770\"/><path class=\"mean\" d=\"M{:.1} 8V84\"/>", x(mean));
    // Dots of near values are piled up.
    let mut piles = std::collections::BTreeMap::<i64, usize>::new();
    let most = summary.values.len();
    for (seed, value) in &summary.values {
        let pile = piles.entry((x(*value) / 10.0) as i64).or_default();
        let y = 77.0 - *pile as f64 * (64.0 / most as f64).min(10.0);
        *pile += 1;
        let title = format!("seed {seed}: {}", number(*value));
        let _ = write!(
            svg,
            "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5\"><title>{title}</title></circle>",
            x(*value)
        );
    }
    for (value, anchor) in [(low, "start"), (high, "end")] {
        let _ = write!(svg, "<text x=\"{:.1}\" y=\"104\" text-anchor=\"{anchor}\">{}</text>", x(value), number(value));
    }
    let _ = write!(svg, "<text x=\"{:.1}\" y=\"104\" text-anchor=\"middle\">mean</text>", x(mean).clamp(130.0, 670.0));
    svg.push_str("</svg>");
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
