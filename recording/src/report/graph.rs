//! An operation, the operations that made its operands, and those that made theirs, as SVG.

use super::escape::escaped;
use super::words;
use crate::diff::{Operand, OperationPair};
use std::fmt::Write;

/// Operands of an operation that are shown.
const OPERANDS: usize = 5;
const BOX: (f64, f64) = (252.0, 64.0);
const GAP: (f64, f64) = (60.0, 12.0);

/// A node, with the nodes that it reads.
struct Node {
    title: String,
    lines: [String; 2],
    class: &'static str,
    inputs: Vec<Node>,
}

/// The graph of one side, with operands to the left.
pub(super) fn svg(pair: &OperationPair, side: usize) -> String {
    let operation = &pair.operations[side];
    let result = operation.outputs.first();
    let digests = pair.operations.each_ref().map(|operation| {
        let digest = operation.outputs.get(pair.outputs.first().copied().unwrap_or(0)).and_then(|output| output.digest);
        digest.map_or_else(|| "none".to_owned(), words::short)
    });
    let root = Node {
        title: format!("{} {}", words::grouped(operation.number), operation.name),
        lines: [
            result.map_or_else(String::new, |result| format!("{:?} {}", result.shape, result.dtype)),
            format!("{} / {}", digests[0], digests[1]),
        ],
        class: "different",
        inputs: nodes(&pair.operands[side]),
    };
    let depth = root.depth();
    let size = (BOX.0 * depth as f64 + GAP.0 * (depth - 1) as f64, root.height() - GAP.1);
    let mut body = String::new();
    root.draw(&mut body, size.0 - BOX.0, 0.0);
    format!(
        r#"<svg class="graph" viewBox="-2 -2 {:.0} {:.0}" style="max-width:{:.0}px" role="img" aria-label="operands">{body}</svg>"#,
        size.0 + 4.0,
        size.1 + 4.0,
        size.0 + 4.0
    )
}

fn nodes(operands: &[Operand]) -> Vec<Node> {
    let node = |operand: &Operand| {
        let (title, inputs) = match (&operand.producer, operand.tensor.origin) {
            (Some(producer), _) => {
                let (operation, operands) = &**producer;
                (format!("{} {}", words::grouped(operation.number), operation.name), nodes(operands))
            }
            (None, Some(origin)) => (format!("{}, not recorded", words::grouped(origin.operation)), Vec::new()),
            (None, None) => ("older than what is compared".to_owned(), Vec::new()),
        };
        let shape = words::tensor(&operand.tensor).replace(", parameter ", "  ");
        let digest = operand.digest.map_or_else(String::new, |digest| format!("{}  ", words::short(digest)));
        let class = match operand.same {
            Some(true) => "equal",
            Some(false) => "different",
            None => "unknown",
        };
        Node { title, lines: [shape, format!("{digest}{}", words::same(operand).to_lowercase())], class, inputs }
    };
    let mut nodes: Vec<Node> = operands.iter().take(OPERANDS).map(node).collect();
    if operands.len() > OPERANDS {
        let title = format!("and {} more operands", operands.len() - OPERANDS);
        nodes.push(Node { title, lines: Default::default(), class: "unknown", inputs: Vec::new() });
    }
    nodes
}

impl Node {
    fn depth(&self) -> usize {
        1 + self.inputs.iter().map(Node::depth).max().unwrap_or(0)
    }

    /// Of the box and those to its left, with the gap below.
    fn height(&self) -> f64 {
        let inputs: f64 = self.inputs.iter().map(Node::height).sum();
        inputs.max(BOX.1 + GAP.1)
    }

    /// Draws the tree from `top` on, and returns where its edge begins.
    fn draw(&self, svg: &mut String, x: f64, top: f64) -> f64 {
        let middle = top + (self.height() - GAP.1) / 2.0;
        let mut input_top = top;
        for input in &self.inputs {
            let from = input.draw(svg, x - BOX.0 - GAP.0, input_top);
            let (start, bend) = (x - GAP.0, GAP.0 / 2.0);
            let _ = write!(
                svg,
                r#"<path class="edge {}" d="M{start:.1} {from:.1}c{bend:.1} 0 {bend:.1} {dy:.1} {across:.1} {dy:.1}"/>"#,
                input.class,
                dy = middle - from,
                across = GAP.0
            );
            input_top += input.height();
        }
        let y = middle - BOX.1 / 2.0;
        let _ = write!(
            svg,
            r#"<g class="node {}"><rect x="{x:.1}" y="{y:.1}" width="{}" height="{}" rx="6"/>"#,
            self.class, BOX.0, BOX.1
        );
        let lines = [("name", &self.title), ("detail", &self.lines[0]), ("detail mono", &self.lines[1])];
        for ((class, text), dy) in lines.into_iter().zip([20.0, 38.0, 54.0]) {
            let text: String = if text.chars().count() > 40 {
                text.chars().take(38).chain("..".chars()).collect()
            } else {
                text.clone()
            };
            let _ =
                write!(svg, r#"<text class="{class}" x="{:.1}" y="{:.1}">{}</text>"#, x + 12.0, y + dy, escaped(&text));
        }
        svg.push_str("</g>");
        middle
    }
}
