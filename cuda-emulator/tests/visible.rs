//! How many devices there are, and which of them programs see.

mod driver;

use cuda_emulator::{Settings, with_settings};
use driver::{bus_id, context, current_context, device, devices, set_context, settings};
use std::env;
use std::process::{Command, Output};
use std::{ptr, thread};

/// Set in the process that counts devices.
const CHILD: &str = "CUDA_EMULATOR_TEST_CHILD";

const SUCCESS: i32 = 0;
const NO_DEVICE: i32 = 100;
const INVALID_DEVICE: i32 = 101;
const INVALID_CONTEXT: i32 = 201;

fn visible(devices: &[usize]) -> Settings {
    Settings { visible: devices.to_vec(), ..settings(None, false) }
}

#[test]
fn hidden_devices_are_none() {
    assert_eq!(devices(visible(&[])), (NO_DEVICE, 0));
    assert_eq!(with_settings(visible(&[]), || device(0)), Err(INVALID_DEVICE));
}

#[test]
fn ordinals_are_positions_among_the_visible_devices() {
    assert_eq!(devices(visible(&[0])), (SUCCESS, 1));
    assert_eq!(devices(visible(&[10, 1, 0])), (SUCCESS, 3));
    with_settings(visible(&[10, 1, 0]), || {
        for ordinal in 0..3 {
            assert_eq!(device(ordinal), Ok(ordinal));
        }
        for ordinal in [-1, 3, 10] {
            assert_eq!(device(ordinal), Err(INVALID_DEVICE));
            assert_eq!(bus_id(ordinal), Err(INVALID_DEVICE));
            assert_eq!(context(ordinal), Err(INVALID_DEVICE));
        }
        let ids = [0, 1, 2].map(|device| bus_id(device).expect("it exists"));
        assert_eq!(ids, ["0000:0a:00.0", "0000:01:00.0", "0000:00:00.0"]);
    });
}

#[test]
fn each_thread_has_its_own_context() {
    let with_two = || visible(&[0, 1]);
    with_settings(with_two(), || {
        let [first, second] = [0, 1].map(|device| context(device).expect("it exists"));
        assert!(first != second && !first.is_null() && !second.is_null());
        assert_eq!(context(1), Ok(second), "a device has one context");
        assert!(current_context().is_null());
        assert_eq!(set_context(first), SUCCESS);
        let other = thread::spawn(move || {
            with_settings(with_two(), || {
                let before = current_context().addr();
                let second = context(1).expect("it exists");
                (before, set_context(second), current_context() == second)
            })
        });
        assert_eq!(other.join().expect("it ends"), (0, SUCCESS, true));
        assert_eq!(current_context(), first);
        assert_eq!(set_context(second), SUCCESS);
        assert_eq!(current_context(), second);
        let unknown = second.wrapping_byte_add(1);
        assert_eq!(set_context(unknown), INVALID_CONTEXT);
        assert_eq!(current_context(), second);
        assert_eq!(set_context(ptr::null_mut()), SUCCESS);
        assert!(current_context().is_null());
    });
}

/// This test's process with variables of its own; what it does not name is not set.
fn child(variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env::current_exe().expect("a test has a path"));
    command.args(["--exact", "variables_say_which_devices_there_are", "--nocapture"]);
    command.env_remove("CUDA_EMULATOR_DEVICES").env_remove("CUDA_VISIBLE_DEVICES").env(CHILD, "1");
    command.envs(variables.iter().copied()).output().expect("the test runs itself")
}

/// The devices' identifiers on the bus, in a process with these variables.
fn seen(variables: &[(&str, &str)]) -> String {
    let said = String::from_utf8_lossy(&child(variables).stdout).into_owned();
    let devices = said.lines().find_map(|line| line.strip_prefix("devices: ")).map(str::to_owned);
    devices.unwrap_or_else(|| panic!("{said}"))
}

#[test]
fn variables_say_which_devices_there_are() {
    if env::var_os(CHILD).is_some() {
        let (_, count) = devices(Settings::from_environment());
        let ids: Vec<_> = (0..count).map(|device| bus_id(device).expect("it exists")).collect();
        println!("\ndevices: {}", ids.join(" "));
        return;
    }
    const ZERO: &str = "0000:00:00.0";
    const ONE: &str = "0000:01:00.0";
    let (count, list) = ("CUDA_EMULATOR_DEVICES", "CUDA_VISIBLE_DEVICES");
    for variables in
        [vec![], vec![(list, "0")], vec![(list, "0,1")], vec![(count, "")], vec![(count, "4"), (list, "0")]]
    {
        assert_eq!(seen(&variables), ZERO, "{variables:?}");
    }
    for hidden in ["-1", "", "4,0", "1,1"] {
        assert_eq!(seen(&[(count, "4"), (list, hidden)]), "", "{hidden:?}");
    }
    for two in ["0,1", "0,1,4,2"] {
        assert_eq!(seen(&[(count, "4"), (list, two)]), [ZERO, ONE].join(" "), "{two:?}");
    }
    assert_eq!(seen(&[(count, "2")]), [ZERO, ONE].join(" "));
    assert_eq!(seen(&[(count, "4"), (list, "1,0")]), [ONE, ZERO].join(" "));
    assert_eq!(seen(&[(count, "16")]).split(' ').count(), 16);
    for wrong in ["0", "17", "-1", "two"] {
        let output = child(&[(count, wrong)]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let want = format!("CUDA_EMULATOR_DEVICES is {wrong:?}: want an integer from 1 to 16");
        assert!(!output.status.success() && said.contains(&want), "{said}");
    }
}
