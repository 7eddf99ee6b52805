//! Sources and launches are recorded where that is asked for.

mod driver;

use cuda_emulator::Settings;
use driver::{Run, settings};
use std::fs;
use std::path::PathBuf;

const SOURCE: &str = r#"
extern "C" __global__ void __launch_bounds__(4) doubled(const float* in, float* out, unsigned lengths) {
    out[threadIdx.x] = 2.0f * in[threadIdx.x];
}
"#;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn run(settings: Settings) -> Result<i32, String> {
    let input = &[1.0, 2.0, 3.0, 4.0];
    let run = Run { source: SOURCE, name: "doubled", blocks: 1, threads: 4, shared: 16, input, output: 4 };
    run.with(settings).map(|(_, status)| status)
}

#[test]
fn a_source_and_its_launches_are_recorded() {
    for null in [false, true] {
        let folder = folder(if null { "recorded-null" } else { "recorded" });
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(run(Settings { null, sources: Some(folder.clone()), ..settings(None, false) }), Ok(0));
        let launches = fs::read_to_string(folder.join("launches.tsv")).unwrap();
        let (file, rest) = launches.split_once('\t').unwrap();
        assert_eq!(rest, "doubled\t1\t4\t16\n");
        assert_eq!(fs::read_to_string(folder.join(file)).unwrap(), SOURCE);
    }
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let error = run(Settings { sources: Some(folder("none/at/all")), ..settings(None, false) }).unwrap_err();
    assert!(error.contains("cannot write to CUDA_EMULATOR_SOURCES="), "{error}");
}
