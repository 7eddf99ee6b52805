//! The page is well-formed and whole in itself.

use crate::synthetic::{Synthetic, compared, training};
use burn_deterministic_recording::Level;
use burn_deterministic_recording::report::html;

/// Panics unless every tag is closed in its order, and every attribute is quoted.
fn check(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a document type");
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'), "a bracket outside of a tag: {}", &rest[..start]);
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '/']).next().expect("a name");
        assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "<{tag}>");
        assert_eq!(tag.matches('"').count() % 2, 0, "<{tag}>");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "</{name}>");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        if name == "style" && !tag.starts_with('/') {
            rest = &rest[rest.find("</style>").expect("the style ends")..];
        }
    }
    assert!(open.is_empty(), "open: {open:?}");
    for text in page.split('&').skip(1) {
        let entity = text.split(';').next().expect("a name");
        assert!(["lt", "gt", "amp", "quot", "#39"].contains(&entity), "&{entity}");
    }
    for word in ["http", "src=", "href=", "url(", "@import", "<script", "<link", "<img", "<iframe"] {
        assert!(!page.contains(word), "{word}");
    }
}

fn hostile() -> Synthetic {
    let mut hostile = training(3, Level::Operations);
    hostile.header.command.push("<script>alert(\"&\")</script>\u{1}".into());
    hostile.header.environment.set("<b>", "'&lt;' \"");
    hostile.change(13, |operation| {
        operation.place.labels = vec!["<block> & \"3\"".into()];
        operation.parameters = "`<`".into();
        operation.kernels = vec!["a::<b>&".into()];
        operation.inputs[0].parameter = Some("<fc1>".into());
    });
    hostile
}

#[test]
fn every_page_is_well_formed_and_names_no_other_resource() {
    let same = training(3, Level::Operations);
    check(&html(&compared(&same, &same)));
    for recording in [same.clone(), same.clone().weights_only(), hostile()] {
        let mut second = recording.clone();
        second.header.environment.set("driver", "<another>");
        for record in 0..recording.records.len().min(30) {
            if recording.header.level == Level::Operations {
                second = recording.clone();
                second.corrupt(record as u64);
            } else {
                second = training(2, Level::Operations).weights_only();
            }
            check(&html(&compared(&recording, &second)));
        }
    }
    let mut second = same.clone();
    second.change(12, |operation| operation.name = "<&>".into());
    check(&html(&compared(&same, &second)));
    check(&html(&compared(&same, &training(5, Level::Operations))));
}

#[test]
fn a_page_shows_where_steps_differ() {
    let first = training(600, Level::Operations);
    let mut second = first.clone();
    second.corrupt(2 + 8 * 300 + 5);
    let page = html(&compared(&first, &second));
    check(&page);
    for part in ["class=\"same\"", "class=\"most\"", "class=\"mark\"", "fc1.weight", "float_scatter_add", "4 a column"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.len() < 300_000, "{} bytes", page.len());
}
