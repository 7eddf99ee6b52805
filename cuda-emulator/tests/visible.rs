//! `CUDA_VISIBLE_DEVICES` hides the device.

mod driver;

use cuda_emulator::Settings;
use driver::{devices, settings};
use std::env;
use std::process::Command;

/// Set in the process that counts devices.
const CHILD: &str = "CUDA_EMULATOR_TEST_CHILD";

const SUCCESS: i32 = 0;
const NO_DEVICE: i32 = 100;
const INVALID_DEVICE: i32 = 101;

#[test]
fn a_hidden_device_is_none() {
    let visible = |visible| devices(Settings { visible, ..settings(None, false) });
    assert_eq!(visible(true), (SUCCESS, SUCCESS, 1));
    assert_eq!(visible(false), (NO_DEVICE, INVALID_DEVICE, 0));
}

#[test]
fn the_variable_hides_it() {
    if env::var_os(CHILD).is_some() {
        let (_, _, count) = devices(Settings::from_environment());
        println!("\ndevices: {count}");
        return;
    }
    let count = |visible: Option<&str>| {
        let mut command = Command::new(env::current_exe().expect("a test has a path"));
        command.args(["--exact", "the_variable_hides_it", "--nocapture"]).env(CHILD, "1");
        match visible {
            Some(list) => command.env("CUDA_VISIBLE_DEVICES", list),
            None => command.env_remove("CUDA_VISIBLE_DEVICES"),
        };
        let output = command.output().expect("the test runs itself");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let count = said.lines().find_map(|line| line.strip_prefix("devices: ")).map(str::to_owned);
        count.unwrap_or_else(|| panic!("{said}"))
    };
    assert_eq!([None, Some("0"), Some("-1"), Some("")].map(count), ["1", "1", "0", "0"]);
}
