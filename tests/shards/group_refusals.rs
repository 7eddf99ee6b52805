//! Processes that cannot train together, as threads of this one: each gets an error that names the other.

use super::group::{SILENCE, TOKEN};
use super::training::{Everything, SHARDS, part, shard};
use crate::deterministic_device;
use crate::process::Program;
use burn::optim::GradientsParams;
use burn::prelude::*;
use burn_deterministic::shards::{Error, Group, Part, Shards, Step};
use burn_deterministic::{digest, initialize, set_random_seed};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

fn leader(size: usize, listener: TcpListener) -> Group {
    Group::new(0, size, TOKEN).listener(listener).silence(SILENCE)
}

fn member(rank: usize, size: usize, token: &str, address: SocketAddr) -> Group {
    Group::new(rank, size, token).address(address.to_string()).silence(SILENCE)
}

fn shards(count: usize) -> Shards {
    Shards::new(count, [deterministic_device()]).expect("a device")
}

/// The errors of rank 0 and of the others, which `others` makes.
fn refused(size: usize, count: usize, others: &[&(dyn Fn(SocketAddr) -> Result<Shards, Error> + Sync)]) -> Vec<String> {
    let since = Instant::now();
    let (listener, address) = listener();
    let errors = thread::scope(|scope| {
        let leads = scope.spawn(move || shards(count).in_group(leader(size, listener)));
        let join: Vec<_> = others.iter().map(|other| scope.spawn(move || other(address))).collect();
        let ends = [leads].into_iter().chain(join).map(|thread| thread.join().expect("no panic"));
        ends.map(|joined| joined.map(|_| ()).expect_err("refused").to_string()).collect::<Vec<_>>()
    });
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    errors
}

fn wants(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "{error}\nlacks\n{part}");
    }
}

#[test]
fn another_token_is_refused_and_neither_is_told() {
    let errors = refused(2, SHARDS, &[&|address| shards(SHARDS).in_group(member(1, 2, "a wrong one", address))]);
    wants(&errors[0], &["a process at 127.0.0.1:", "has another token than rank 0"]);
    wants(&errors[1], &["rank 0 (127.0.0.1:", "has another token than rank 1"]);
    for error in &errors {
        assert!(!error.contains(TOKEN) && !error.contains("a wrong one"), "{error}");
    }
    let printed = format!("{:?}", Group::new(0, 2, TOKEN));
    assert!(!printed.contains(TOKEN), "{printed}");
}

#[test]
fn another_number_of_shards_or_processes_is_refused() {
    let errors = refused(2, SHARDS, &[&|address| shards(6).in_group(member(1, 2, TOKEN, address))]);
    wants(&errors[0], &["rank 1 (127.0.0.1:", "has so many shards: 6, and rank 0 has 8"]);
    wants(&errors[1], &["rank 0 (127.0.0.1:", "has so many shards: 8, and rank 1 has 6"]);
    let errors = refused(2, SHARDS, &[&|address| shards(SHARDS).in_group(member(1, 3, TOKEN, address))]);
    wants(&errors[0], &["rank 1 (127.0.0.1:", "processes: 3, and rank 0 has 2"]);
    wants(&errors[1], &["rank 0 (127.0.0.1:", "processes: 2, and rank 1 has 3"]);
}

#[test]
fn another_bound_of_silence_is_refused() {
    let other = |address| shards(SHARDS).in_group(member(1, 2, TOKEN, address).silence(2 * SILENCE));
    let errors = refused(2, SHARDS, &[&other]);
    wants(&errors[0], &["rank 1 (127.0.0.1:", "another bound of silence: 4000 ms, and rank 0 has 2000 ms"]);
}

#[test]
fn a_rank_that_is_taken_is_refused_and_all_are_told() {
    let join = |address| shards(SHARDS).in_group(member(1, 3, TOKEN, address));
    let errors = refused(3, SHARDS, &[&join, &join]);
    wants(&errors[0], &["rank 1 (127.0.0.1:", "has the rank of rank 1 (127.0.0.1:"]);
    for error in &errors[1..] {
        wants(error, &["rank 0 (127.0.0.1:", "has ended the group: rank 1 (127.0.0.1:", "has the rank of"]);
    }
    let error = |group: Group| shards(2).in_group(group).map(|_| ()).expect_err("refused").to_string();
    wants(&error(Group::new(2, 2, TOKEN)), &["rank 2 of 2 processes with 2 shards"]);
    wants(&error(Group::new(0, 3, TOKEN)), &["rank 0 of 3 processes with 2 shards"]);
}

#[test]
fn a_process_that_does_not_come_is_named() {
    let (listener, address) = listener();
    // What connects and says nothing, or something else, is no process of the group.
    let mut strangers = [(); 2].map(|()| TcpStream::connect(address).expect("a listener"));
    strangers[0].write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("a connection");
    let error = shards(SHARDS).in_group(leader(2, listener).wait(Duration::from_millis(400)));
    let error = error.map(|_| ()).expect_err("nobody comes").to_string();
    wants(&error, &[&address.to_string(), "rank 1 did not come within 400ms", "GET / HTTP/1.1"]);
    let error = shards(SHARDS).in_group(member(1, 2, TOKEN, address).wait(Duration::from_millis(100)));
    let error = error.map(|_| ()).expect_err("nobody listens").to_string();
    wants(&error, &[&address.to_string(), "reached within 100ms"]);
}

#[test]
fn garbage_at_the_port_does_not_keep_a_group_from_forming() {
    let (listener, address) = listener();
    let mut garbage = [(); 4].map(|()| TcpStream::connect(address).expect("a listener"));
    for (number, stream) in garbage.iter_mut().enumerate() {
        stream.write_all(&vec![255 - number as u8; 100_000 * number]).expect("a connection");
    }
    thread::scope(|scope| {
        let leads = scope.spawn(move || shards(SHARDS).in_group(leader(2, listener)));
        let joins = scope.spawn(move || shards(SHARDS).in_group(member(1, 2, TOKEN, address)));
        let [first, second] = [leads, joins].map(|thread| thread.join().expect("no panic").expect("a group"));
        assert_eq!((first.own(), second.own()), (0..4, 4..8));
    });
}

/// A greeting as the documentation of the module has it, of a protocol and a version.
fn greeting(protocol: u32, version: &str) -> Vec<u8> {
    let mut greeting = b"burn-det. group\n".to_vec();
    greeting.extend(protocol.to_le_bytes());
    greeting.extend(version.as_bytes());
    greeting.resize(16 + 4 + 32 + 32, 0);
    greeting
}

#[test]
fn another_version_or_protocol_is_refused() {
    for (protocol, version, expected) in [
        (1, "0.0.9", format!("has burn-deterministic 0.0.9, and rank 0 has {}", env!("CARGO_PKG_VERSION"))),
        (7, env!("CARGO_PKG_VERSION"), "has protocol 7, and rank 0 has 1".to_owned()),
    ] {
        let (listener, address) = listener();
        let other = thread::spawn(move || {
            let mut stream = TcpStream::connect(address).expect("a listener");
            stream.write_all(&greeting(protocol, version)).expect("a connection");
            let mut all = Vec::new();
            // The other end may have ended the connection without reading all.
            let _ = stream.read_to_end(&mut all);
            all
        });
        let error = shards(SHARDS).in_group(leader(2, listener)).map(|_| ()).expect_err("refused").to_string();
        wants(&error, &["a process at 127.0.0.1:", &expected]);
        let answer = other.join().expect("no panic");
        assert_eq!(answer[..52], greeting(1, env!("CARGO_PKG_VERSION"))[..52], "its greeting tells what it is");
        assert_eq!(answer.len(), 84, "and nothing more");
    }
    // And a leader of another version.
    let (listener, address) = listener();
    let leads = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a process");
        stream.write_all(&greeting(1, "0.0.9")).expect("a connection");
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let error = shards(SHARDS).in_group(member(1, 2, TOKEN, address)).map(|_| ()).expect_err("refused").to_string();
    wants(&error, &["rank 0 (127.0.0.1:", "has burn-deterministic 0.0.9, and rank 1 has"]);
    leads.join().expect("no panic");
}

#[test]
fn another_guarantee_and_a_process_without_determinism_are_refused() {
    for (fault, theirs) in [("another guarantee", "GPU to GPU, violations are errors"), ("none", "not enabled")] {
        let (listener, address) = listener();
        let program = thread::spawn(move || {
            let arguments = ["1", "2", "1", &address.to_string(), fault];
            Program::new("grouped_differently").arguments(&arguments).run()
        });
        deterministic_device();
        let ours = "run to run, violations are errors";
        let error = shards(SHARDS).in_group(Group::new(0, 2, TOKEN).listener(listener));
        let error = error.map(|_| ()).expect_err("refused").to_string();
        wants(&error, &["rank 1 (127.0.0.1:", &format!("has determinism: {theirs}, and rank 0 has {ours}")]);
        let output = program.join().expect("it ends");
        let expected = format!("has determinism: {ours}, and rank 1 has {theirs}");
        wants(output.reported("error"), &["rank 0 (127.0.0.1:", &expected]);
    }
}

/// What a process of a test does with its shards, and its error.
type Process<'a> = &'a (dyn Fn(&mut Shards) -> Result<(), Error> + Sync);

/// The ends of two processes that have met.
fn of_two(first: Process<'_>, second: Process<'_>) -> [Result<(), String>; 2] {
    let since = Instant::now();
    let (listener, address) = listener();
    let ends = thread::scope(|scope| {
        let of = |group: Group, body: Process<'_>| {
            set_random_seed(812);
            let mut shards = shards(2).in_group(group).expect("a group");
            body(&mut shards).map_err(|error| {
                let later = step(&mut shards, 9, 0).map(|_| ()).expect_err("the group has ended").to_string();
                wants(&later, &["this group has ended: "]);
                error.to_string()
            })
        };
        let leads = scope.spawn(move || of(leader(2, listener), first));
        let joins = scope.spawn(move || of(member(1, 2, TOKEN, address), second));
        [leads, joins].map(|thread| thread.join().expect("no panic"))
    });
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    ends
}

/// A step of the model that `seed` draws.
fn step(shards: &mut Shards, number: u64, seed: u64) -> Result<Step<Tensor<1>>, Error> {
    let model = {
        let _drawn = burn_deterministic::RandomStream::from_seed(seed).enter();
        initialize(Everything::new(shards.device())).expect("a stream")
    };
    let before = digest(&model);
    let parts = shards.own().filter_map(|number| part(0, number, shards.device_of(number))).collect();
    let computed = shards.step(number, &model, parts, shard);
    if computed.is_err() {
        assert_eq!(digest(&model), before, "nothing is applied");
    }
    computed
}

fn errors(ends: [Result<(), String>; 2]) -> [String; 2] {
    ends.map(|end| end.expect_err("an error"))
}

#[test]
fn processes_at_other_steps_with_other_models_or_seeds_are_told() {
    let errors_of = |first: Process<'_>, second: Process<'_>| errors(of_two(first, second));
    let [first, second] = errors_of(&|shards| step(shards, 4, 0).map(|_| ()), &|shards| step(shards, 5, 0).map(|_| ()));
    let parts =
        ["rank 1 (127.0.0.1:", "has come to the beginning of step 5, and rank 0 has come to the beginning of step 4"];
    wants(&first, &parts);
    wants(&second, &parts);
    wants(&second, &["rank 0 (127.0.0.1:", "has ended the group: "]);

    let [first, second] = errors_of(&|shards| step(shards, 4, 0).map(|_| ()), &|shards| step(shards, 4, 1).map(|_| ()));
    for error in [first, second] {
        wants(&error, &["rank 1 (127.0.0.1:", "has another model in step 4: ", "and rank 0 has "]);
    }

    let [first, second] = errors_of(&|shards| step(shards, 4, 0).map(|_| ()), &|shards| {
        set_random_seed(813);
        step(shards, 4, 0).map(|_| ())
    });
    for error in [first, second] {
        wants(&error, &["rank 1 (127.0.0.1:", "has another random stream in step 4: "]);
    }
}

#[test]
fn a_shard_that_fails_is_told_to_all() {
    let fails: Process<'_> = &|shards| {
        let model = initialize(Everything::new(shards.device())).expect("a seed");
        let parts = shards.own().filter_map(|number| part(0, number, shards.device_of(number))).collect();
        let run = |_: &Everything, _| -> (GradientsParams, ()) { panic!("no room for the activations") };
        shards.step(4, &model, parts, run).map(|_| ())
    };
    let works: Process<'_> = &|shards| step(shards, 4, 812).map(|_| ());
    let [first, second] = errors(of_two(works, fails));
    wants(&first, &["rank 1 (127.0.0.1:", "has ended the group: shard 1 of step 4", "no room for the activations"]);
    assert!(second.starts_with("shard 1 of step 4"), "{second}");
    let [first, second] = errors(of_two(fails, works));
    assert!(first.starts_with("shard 0 of step 4"), "{first}");
    wants(&second, &["rank 0 (127.0.0.1:", "has ended the group: shard 0 of step 4"]);
}

#[test]
fn a_process_that_leaves_or_goes_elsewhere_is_named() {
    let steps: Process<'_> = &|shards| (0..3).try_for_each(|number| step(shards, number, 0).map(|_| ()));
    let fewer: Process<'_> = &|shards| (0..2).try_for_each(|number| step(shards, number, 0).map(|_| ()));
    let [first, second] = of_two(steps, fewer);
    wants(&first.expect_err("rank 1 leaves"), &["rank 1 (127.0.0.1:", "has left the group"]);
    assert_eq!(second, Ok(()));
    let [first, second] = of_two(fewer, steps);
    assert_eq!(first, Ok(()));
    wants(&second.expect_err("rank 0 leaves"), &["rank 0 (127.0.0.1:", "has left the group"]);

    let mean: Process<'_> = &|shards| step(shards, 0, 0)?.try_mean(Clone::clone).map(|_| ());
    let [first, second] = errors(of_two(mean, steps));
    let parts = [
        "rank 1 (127.0.0.1:",
        "has come to the beginning of step 1, and rank 0 has come to a mean (`Step::mean`) of step 0",
    ];
    wants(&first, &parts);
    wants(&second, &parts);
}

#[test]
fn parts_are_left_out_at_the_end_only() {
    let (listener, address) = listener();
    // Of four shards the second has no part, and the third one has.
    let of = |group: Group, count: usize| {
        set_random_seed(812);
        let mut shards = shards(4).in_group(group).expect("a group");
        let model = initialize(Everything::new(shards.device())).expect("a seed");
        let parts = shards.own().take(count).filter_map(|number| part(0, number, shards.device_of(number)));
        let parts: Vec<Part<_>> = parts.collect();
        shards.step(0, &model, parts, shard).map(|_| ()).expect_err("refused").to_string()
    };
    let errors = thread::scope(|scope| {
        let leads = scope.spawn(move || of(leader(2, listener), 1));
        let joins = scope.spawn(move || of(member(1, 2, TOKEN, address), 2));
        [leads, joins].map(|thread| thread.join().expect("no panic"))
    });
    for error in errors {
        wants(&error, &["rank 1 (127.0.0.1:", "has a part of shard 2, and rank 0 has the last one of shard 0"]);
    }
}
