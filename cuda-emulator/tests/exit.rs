//! A process whose kernels had findings fails, unless a file collects them.

mod driver;

use driver::Run;
use std::process::Command;
use std::{env, fs};

/// Set in the process that runs the kernel.
const CHILD: &str = "CUDA_EMULATOR_TEST_CHILD";

#[test]
fn findings_end_the_process_or_go_to_a_file() {
    if env::var_os(CHILD).is_some() {
        let source = include_str!("faults/off_by_one.cu");
        let run = Run { source, name: "off_by_one", blocks: 1, threads: 64, shared: 0, input: &[1.0; 64], output: 64 };
        run.as_the_environment_says().expect("it compiles");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let child = |variables: &[(&str, &str)]| {
        let mut command = Command::new(env::current_exe().expect("a test has a path"));
        command.args(["--exact", "findings_end_the_process_or_go_to_a_file", "--nocapture"]);
        command
            .env_remove("CUDA_EMULATOR_REPORT")
            .env("CUDA_VISIBLE_DEVICES", "0")
            .env(CHILD, "1")
            .env("CUDA_EMULATOR_COUNT", "1");
        let output = command.envs(variables.iter().copied()).output().expect("the test runs itself");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let finding =
        "memcheck: kernel `off_by_one`: block (0, 0, 0), thread (63, 0, 0) reads 4 bytes at byte 256 of buffer 0";
    let (status, said) = child(&[("CUDA_EMULATOR_CHECK", "1")]);
    assert!(status == Some(97) && said.contains(finding), "{status:?} {said}");
    assert!(said.contains("1\tlaunches") && said.contains("256\tbytes copied to the device"), "{said}");

    let report = folder.path().join("report");
    let (status, said) =
        child(&[("CUDA_EMULATOR_CHECK", "1"), ("CUDA_EMULATOR_REPORT", report.to_str().expect("UTF-8"))]);
    assert!(status == Some(0) && !said.contains("memcheck"), "{status:?} {said}");
    assert!(fs::read_to_string(report).expect("a report").contains(finding));

    let (status, said) = child(&[("CUDA_EMULATOR_CHECK", "0")]);
    assert!(status == Some(0) && !said.contains("memcheck"), "{status:?} {said}");
}
