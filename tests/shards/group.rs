//! Trainings of several processes: the same bits as of one.

use super::training::{Everything, FOLDER, SHARDS, STEPS, UNTIL, part, run_on, shard, train};
use crate::one_kind::devices_of_one_kind;
use crate::process::{self, Folder, Program, arguments};
use burn::optim::{AdamConfig, GradientsParams};
use burn_deterministic::shards::{Group, Shards};
use burn_deterministic::{Determinism, Guarantee, enable_op_determinism, initialize, set_random_seed};
use std::io::{BufRead, BufReader, Lines};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdout};
use std::thread;
use std::time::Duration;

/// The token that the processes of these tests have.
pub const TOKEN: &str = "the token of these tests";

/// Set, the processes train slowly and for long, and report each step and the error that ends them.
const ENDLESS: &str = "BURN_DETERMINISTIC_GROUP_ENDLESS";

/// The bound of silence of the tests that wait for it.
pub const SILENCE: Duration = Duration::from_secs(2);

/// The group of these arguments: rank, number of processes, devices, and the address of rank 0, which chooses it.
fn group() -> (usize, Group) {
    let arguments = arguments();
    let number = |at: usize| arguments[at].parse::<usize>().expect("a number");
    let group = Group::new(number(0), number(1), TOKEN);
    let group = match number(0) {
        0 => {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            process::report("address", listener.local_addr().expect("an address"));
            group.listener(listener)
        }
        _ => group.address(&arguments[3]),
    };
    (number(2), group)
}

/// Trains as a process of a group.
pub fn grouped() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(812);
    let (count, group) = group();
    let devices = devices_of_one_kind(count);
    process::report("devices", devices.len());
    let shards = Shards::new(SHARDS, devices).expect("devices of one kind");
    match std::env::var_os(ENDLESS) {
        None => train(shards.in_group(group).expect("processes of one kind")),
        Some(_) => endless(shards.in_group(group.silence(SILENCE)).expect("processes of one kind")),
    }
}

fn endless(mut shards: Shards) {
    let mut model = initialize(Everything::new(shards.device())).expect("a seed");
    let mut optimizer = AdamConfig::new().init();
    for step in 0.. {
        let parts = shards.own().filter_map(|number| part(0, number, shards.device_of(number))).collect();
        let computed = shards.step(step, &model, parts, |model, batch| {
            thread::sleep(Duration::from_millis(5));
            shard(model, batch)
        });
        match computed {
            Ok(computed) => model = optimizer.step(0.01, model, computed.gradients),
            Err(error) => {
                process::report("error", error);
                let later = shards.step(step, &model, Vec::new(), |_, ()| (GradientsParams::new(), ()));
                process::report("later", later.map(|_| ()).expect_err("the group has ended"));
                return;
            }
        }
        process::report("step", step);
    }
}

/// Meets a process whose determinism is another.
pub fn grouped_differently() {
    if arguments()[4] == "another guarantee" {
        let settings = Determinism::default().guarantee(Guarantee::GpuToGpu);
        enable_op_determinism(settings).expect("this process has run no tensor operation");
    }
    let (count, group) = group();
    let shards = Shards::new(SHARDS, devices_of_one_kind(count)).expect("a device");
    process::report("error", shards.in_group(group).map(|_| ()).expect_err("refused"));
}

/// A process of a group, which is killed when a test fails.
pub struct Member {
    pub child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    seen: Vec<String>,
}

impl Member {
    fn start(program: Program) -> Self {
        let mut child = program.start();
        let lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        Self { child, lines, seen: Vec::new() }
    }

    /// Waits for a value that the program reports.
    pub fn reports(&mut self, name: &str) -> String {
        for line in self.lines.by_ref().map_while(Result::ok) {
            self.seen.push(line);
            let last = self.seen.last().expect("just pushed");
            if let Some(value) = last.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")) {
                return value.to_owned();
            }
        }
        panic!("no line `{name}: ..` in\n{}", self.seen.join("\n"));
    }

    /// Waits until it has trained so many steps.
    pub fn trains(&mut self, steps: usize) {
        for _ in 0..steps {
            self.reports("step");
        }
    }

    /// What it reports until it ends, in its order.
    pub fn ends(mut self, names: &[&str]) -> Vec<String> {
        let values = names.iter().map(|name| self.reports(name)).collect();
        assert!(self.child.wait().expect("its end").success(), "{}", self.seen.join("\n"));
        values
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // One that has ended needs no killing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a group, whose processes have so many devices each.
pub fn start(devices: &[usize], prepare: impl Fn(usize, Program) -> Program) -> Vec<Member> {
    let size = devices.len().to_string();
    let mut members: Vec<Member> = Vec::new();
    let mut address = String::new();
    for (rank, count) in devices.iter().enumerate() {
        let arguments = [rank.to_string(), size.clone(), count.to_string(), address.clone()];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut member = Member::start(prepare(rank, Program::new("grouped").arguments(&arguments)));
        if rank == 0 {
            address = member.reports("address");
        }
        members.push(member);
    }
    members
}

/// Starts one that trains until something fails.
pub fn start_endless(size: usize) -> Vec<Member> {
    start(&vec![1; size], |_, program| program.env(ENDLESS, "1"))
}

/// Whether there are so many devices.
fn has_devices(count: usize) -> bool {
    let there = devices_of_one_kind(count).len();
    if there < count {
        crate::skip::skip(format!("{count} devices: there are {there}"));
    }
    there == count
}

#[test]
fn any_number_of_processes_ends_in_the_same_bits() {
    let one = run_on("sharded", 1, |program| program).expect("a device");
    let expected = [one.reported("losses").to_owned(), one.digest().to_owned()];
    for devices in [&[1, 1][..], &[1, 2, 1]] {
        if !has_devices(*devices.iter().max().expect("processes")) {
            return;
        }
        for (rank, member) in start(devices, |_, program| program).into_iter().enumerate() {
            assert_eq!(member.ends(&["losses", "digest"]), expected, "rank {rank} of {devices:?}");
        }
    }
}

/// The folder of a rank's checkpoints.
fn of_rank(folder: &Path, rank: usize) -> std::path::PathBuf {
    folder.join(format!("rank-{rank}"))
}

#[test]
fn a_training_of_two_processes_goes_on_in_one_and_in_three() {
    let whole = run_on("sharded", 1, |program| program).expect("a device");
    let expected = [whole.reported("losses").to_owned(), whole.digest().to_owned()];
    let folder = Folder::new();
    let in_folder = |rank, program: Program, until: u64| {
        program.env(FOLDER, of_rank(folder.path(), rank)).env(UNTIL, until.to_string())
    };
    for member in start(&[1, 1], |rank, program| in_folder(rank, program, 5)) {
        member.ends(&["losses", "digest"]);
    }
    let file_of = |rank| {
        let entries = std::fs::read_dir(of_rank(folder.path(), rank)).expect("a folder");
        let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        // The lock says which process held it.
        files.retain(|path| path.file_name().is_some_and(|name| name != ".lock"));
        files.sort();
        files.into_iter().map(|path| (path.file_name().map(ToOwned::to_owned), std::fs::read(path).expect("a file")))
    };
    let files: Vec<_> = file_of(0).collect();
    assert!(!files.is_empty());
    assert!(file_of(1).eq(files.clone()), "the checkpoints of both processes are equal");
    let third = of_rank(folder.path(), 2);
    let alone = of_rank(folder.path(), 3);
    for other in [&third, &alone] {
        std::fs::create_dir_all(other).expect("a folder");
        for (name, bytes) in &files {
            std::fs::write(other.join(name.as_ref().expect("a name")), bytes).expect("a copy");
        }
    }
    let resumed = run_on("sharded", 1, |program| program.env(FOLDER, &alone)).expect("a device");
    resumed.assert_digest(&whole);
    assert_eq!(resumed.reported("losses"), whole.reported("losses"));
    for member in start(&[1, 1, 1], |rank, program| in_folder(rank, program, STEPS)) {
        assert_eq!(member.ends(&["losses", "digest"]), expected);
    }
}
