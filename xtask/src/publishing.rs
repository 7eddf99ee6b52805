//! Tests of the packages that a release publishes: what `cargo publish` asks for, without its build, which compiles each from
//! crates.io's other packages and so cannot run before these are there.

use crate::workspace;
use std::path::Path;
use toml::Value;

/// In the order of dependence.
const PUBLISHED: [(&str, &str); 4] = [
    ("recording", "burn-deterministic-recording"),
    ("kernels", "burn-deterministic-kernels"),
    (".", "burn-deterministic"),
    ("cli", "burn-deterministic-cli"),
];

fn manifest(folder: &str) -> Value {
    let path = workspace::root().join(folder).join("Cargo.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
    toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_packages_that_may_be_published_are_those_that_are() {
    let members = manifest(".")["workspace"]["members"].as_array().expect("a list").clone();
    let members = members.iter().map(|member| member.as_str().expect("a folder")).chain(["."]);
    let may_be = members.filter(|folder| manifest(folder)["package"].get("publish") != Some(&Value::Boolean(false)));
    let mut may_be: Vec<&str> = may_be.collect();
    may_be.sort_unstable();
    let mut published = PUBLISHED.map(|(folder, _)| folder);
    published.sort_unstable();
    assert_eq!(may_be, published);
    let contributing =
        std::fs::read_to_string(workspace::root().join("CONTRIBUTING.md")).expect("the guide to a release");
    for (_, name) in PUBLISHED {
        assert!(contributing.contains(&format!("`{name}`")), "CONTRIBUTING.md publishes {name}");
    }
}

#[test]
fn each_package_has_what_crates_io_shows() {
    for (folder, name) in PUBLISHED {
        let manifest = manifest(folder);
        let package = &manifest["package"];
        assert_eq!(package["name"].as_str(), Some(name));
        for key in
            ["description", "documentation", "readme", "version", "edition", "rust-version", "license", "repository"]
        {
            assert!(package.get(key).is_some(), "{name} has no {key}");
        }
        // crates.io takes five of each at most, and keywords of twenty letters.
        for key in ["keywords", "categories"] {
            let values = package[key].as_array().unwrap_or_else(|| panic!("{name} has no {key}"));
            assert!((1..=5).contains(&values.len()), "{name}: {key}");
        }
        let keywords = package["keywords"].as_array().expect("a list");
        assert!(keywords.iter().all(|word| word.as_str().is_some_and(|word| word.len() <= 20)), "{name}: keywords");
    }
}

/// A dependency by path alone cannot be published; Cargo drops those of tests.
#[test]
fn packages_depend_on_published_ones_by_the_version_of_the_workspace() {
    let version = manifest(".")["workspace"]["package"]["version"].as_str().expect("a version").to_owned();
    let mut checked = 0;
    for (at, (folder, name)) in PUBLISHED.into_iter().enumerate() {
        let manifest = manifest(folder);
        for (dependency, wanted) in manifest["dependencies"].as_table().expect("a table") {
            if wanted.get("path").is_none() {
                continue;
            }
            checked += 1;
            assert!(PUBLISHED[..at].iter().any(|(_, earlier)| earlier == dependency), "{name} before {dependency}");
            assert_eq!(wanted.get("version").and_then(Value::as_str), Some(version.as_str()), "{name}: {dependency}");
        }
    }
    assert!(checked >= 3, "dependencies are found: {checked}");
}

#[test]
fn each_package_holds_its_sources_licences_and_readme_and_nothing_else() {
    for (folder, name) in PUBLISHED {
        let mut list = workspace::cargo("package");
        // Without the versions that crates.io may not have yet, and with what is not committed yet.
        list.args(["--list", "--allow-dirty", "--offline", "--package", name]);
        let output = list.output().expect("Cargo runs");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let files = String::from_utf8(output.stdout).expect("paths of this repository");
        let files: Vec<&str> = files.lines().collect();
        for needed in ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
            assert!(files.contains(&needed), "{name} has no {needed}: {files:?}");
        }
        let has_build = workspace::root().join(folder).join("build.rs").exists();
        assert_eq!(files.contains(&"build.rs"), has_build, "{name}");
        let is_of_package = |file: &&&str| {
            let is_source = file.starts_with("src/") || file.starts_with("docs/");
            is_source || Path::new(file).components().count() == 1
        };
        let others: Vec<_> = files.iter().filter(|file| !is_of_package(file)).collect();
        assert!(others.is_empty(), "{name} holds {others:?}");
    }
}
