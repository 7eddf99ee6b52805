//! The command, run as a user runs it.

use burn_backend::{Bytes, DType};
use burn_deterministic::checkpoint::Checkpoint;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs the command; gives its status and what it wrote, on standard error where it failed.
fn run(arguments: &[&Path]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_burn-deterministic")).args(arguments).output();
    let output = output.expect("the command of this package");
    let status = output.status.code().expect("it ends by itself");
    let text = if status == 2 { output.stderr } else { output.stdout };
    (status, String::from_utf8(text).expect("text"))
}

fn compared(a: &Path, b: &Path) -> (i32, String) {
    run(&[Path::new("weights"), a, b])
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn burnpack(path: &Path, values: &[f32]) {
    let bytes = Bytes::from_bytes_vec(bytes(values));
    // An id as Burn draws it anew in each run.
    let id = Some(values[0].to_bits().into());
    let tensor = burn_pack::Tensor::new("linear.weight".to_owned(), DType::F32, vec![values.len()], id, bytes);
    burn_pack::Writer::new(vec![tensor]).write_to_file(path).expect("a folder to write to");
}

fn safetensors(path: &Path, values: &[f32]) {
    let bytes = bytes(values);
    let tensor = TensorView::new(Dtype::F32, vec![values.len()], &bytes).expect("as many bytes as elements");
    let file = safetensors::serialize([("linear.weight", tensor)], None).expect("a tensor");
    fs::write(path, file).expect("a folder to write to");
}

#[test]
fn files_of_two_formats_are_compared_bit_by_bit() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let at = |name: &str| folder.path().join(name);
    burnpack(&at("a.bpk"), &[1.0, 2.0, f32::NAN]);
    safetensors(&at("equal.safetensors"), &[1.0, 2.0, f32::NAN]);
    safetensors(&at("other.safetensors"), &[1.0, 2.0000002, f32::NAN]);
    let (status, text) = compared(&at("a.bpk"), &at("equal.safetensors"));
    assert_eq!(status, 0, "{text}");
    assert!(text.ends_with("linear.weight  f32 [3]  equal\nall 1 tensors have the same bits (3 elements)\n"), "{text}");
    let (status, text) = compared(&at("a.bpk"), &at("other.safetensors"));
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("1 of 3 differ, by at most 1 ULP and 2.384185791015625e-7"), "{text}");
    assert!(text.contains("first at [1]: 2.0 (0x40000000) against 2.0000002 (0x40000001), 1 ULP apart"), "{text}");
}

#[test]
fn the_environments_beside_files_are_compared_in_words() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    for (run, driver) in [("a", "22.3.6"), ("b", "25.0.7")] {
        let folder = folder.path().join(run);
        fs::create_dir(&folder).expect("a folder in it");
        burnpack(&folder.join("model.bpk"), &[1.0]);
        fs::write(folder.join("environment.txt"), format!("driver: {driver}\nos: Debian\n\ndigest: 0\n"))
            .expect("a file");
    }
    let (status, text) = compared(&folder.path().join("a/model.bpk"), &folder.path().join("b/model.bpk"));
    assert_eq!(status, 0, "another environment is no other weight: {text}");
    assert!(text.contains("environment: \n  driver: 22.3.6 against 25.0.7\n"), "{text}");
}

#[test]
fn checkpoints_are_compared_with_their_values() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let save = |name: &str, losses: &[f64]| {
        let path = folder.path().join(name);
        let checkpoint = Checkpoint::new(3).and_then(|checkpoint| checkpoint.with_value("losses", losses));
        checkpoint.and_then(|checkpoint| checkpoint.save(&path)).expect("a folder to write to");
        path
    };
    let (a, b, c) = (save("a", &[0.5, 0.1]), save("b", &[0.5, 0.1]), save("c", &[0.5, 0.25]));
    let (status, text) = compared(&a, &b);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("environment: equal, "), "{text}");
    let (status, text) = compared(&a, &c);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("losses[1]: 0.1 against 0.25\n") && text.contains("1 of 4 other values differ"), "{text}");
}

#[test]
fn what_cannot_be_compared_is_an_error_with_status_2() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let (text, pack) = (folder.path().join("a.txt"), folder.path().join("a.bpk"));
    fs::write(&text, "no weights").expect("a file");
    burnpack(&pack, &[1.0]);
    let (status, error) = compared(&text, &pack);
    assert!(status == 2 && error.contains("no file of weights that is known"), "{error}");
    let (status, error) = compared(&pack, &folder.path().join("absent"));
    assert!(status == 2 && error.contains("absent"), "{error}");
    let path = folder.path().join("a.checkpoint");
    Checkpoint::new(3).and_then(|checkpoint| checkpoint.save(&path)).expect("a folder to write to");
    let (status, error) = compared(&path, &pack);
    assert!(status == 2 && error.contains("has no module"), "{error}");
    let mut cut = fs::read(&pack).expect("the file just written");
    cut.pop();
    fs::write(&text, cut).expect("a file");
    let (status, error) = compared(&text, &pack);
    assert!(status == 2 && error.contains("reading the burnpack"), "{error}");
}

/// On a machine without devices, or built without a runtime, it says so.
#[test]
fn info_names_devices_or_says_that_there_is_none() {
    let (status, text) = run(&[Path::new("info")]);
    match status {
        0 => {
            for entry in [
                "burn-deterministic 0.1.0, burn 0.22.1, cubecl ",
                "\n  runtime     ",
                "\n  driver      ",
                "\n  run to run  ",
            ] {
                assert!(text.contains(entry), "no `{entry}` in\n{text}");
            }
        }
        status => {
            assert!(status == 2 && (text.contains("no runtime") || text.contains("no device")), "{status}: {text}")
        }
    }
}
