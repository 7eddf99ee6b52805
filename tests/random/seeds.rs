//! The tree of streams, what a thread draws from it, and where it stands.

use crate::process::{Program, report};
use burn::prelude::*;
use burn::tensor::Distribution;
use burn_deterministic::{
    Determinism, Error, RandomState, RandomStream, StreamRng, enable_op_determinism, random_state,
    restore_random_state, set_random_seed,
};
use burn_deterministic_kernels::random::{self, Source, reference};
use cubecl::ir::{ElemType, IntKind};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

/// Where the words of a stream's `operation`-th draw on the default device come from, whatever that is.
pub fn source(stream: &RandomStream, operation: u32) -> Source {
    Source { key: (*stream.key()).into(), stream: random::Stream(operation.into()), block: 0 }
}

const LOW: i64 = -2_000_000_000;
const HIGH: i64 = 2_000_000_011;
const LENGTH: usize = 37;

/// Integers that leave hardly a bit of a word unseen, not yet read.
fn queue(device: &Device) -> Tensor<1, Int> {
    Tensor::random([LENGTH], Distribution::Uniform(LOW as f64, HIGH as f64), device)
}

fn read(drawn: Tensor<1, Int>) -> Vec<i64> {
    drawn.into_data().iter::<i64>().collect()
}

fn draw(device: &Device) -> Vec<i64> {
    read(queue(device))
}

/// What a stream's `operation`-th draw gives, by the host.
fn expected(stream: &RandomStream, operation: u32) -> Vec<i64> {
    expected_from(source(stream, operation))
}

fn expected_from(source: Source) -> Vec<i64> {
    let integers = random::Distribution::Integers { low: LOW, high: HIGH };
    let elements = 0..LENGTH as u64;
    reference::integers(source, integers, ElemType::Int(IntKind::I32), elements).expect("in range")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The stream for a use of the crate's own, as documented.
pub fn internal(stream: &RandomStream, of: &str) -> RandomStream {
    let material = [stream.key().as_slice(), of.as_bytes()].concat();
    RandomStream::from_key(blake3::derive_key("burn-deterministic 1 stream forked by the library", &material))
}

#[test]
fn keys_are_derived_as_documented() {
    let root = RandomStream::from_seed(812);
    let seed = 812u64.to_le_bytes();
    assert_eq!(*root.key(), blake3::derive_key("burn-deterministic 1 random operations of a thread", &seed));
    let child = |context, parent: &RandomStream, child: &[u8]| {
        blake3::derive_key(context, &[parent.key().as_slice(), child].concat())
    };
    let named = root.fork("Schicht 1.é");
    let name = "Schicht 1.é".as_bytes();
    assert_eq!(*named.key(), child("burn-deterministic 1 stream forked by name", &root, name));
    let numbered = named.fork_index(u64::MAX - 1);
    let index = (u64::MAX - 1).to_le_bytes();
    assert_eq!(*numbered.key(), child("burn-deterministic 1 stream forked by index", &named, &index));
}

/// These never change without a release that says so under **Bits**. They were computed with another implementation of
/// BLAKE3 and ChaCha.
#[test]
fn keys_and_words_stay() {
    let root = RandomStream::from_seed(812);
    assert_eq!(hex(root.key()), "af8d961a0b198029bdf6db5fdf9e23db6f745eec361a96f2254e0a8ffa468a93");
    assert_eq!(hex(root.fork("data").key()), "0865730778ca8aac2c47ebad55a15849ce17e450b8ac086e89c8a7596261712c");
    assert_eq!(hex(root.fork_index(3).key()), "1164f3a2339ab430f9d255820be13400c413b7d2e4aeafcebec31a7a1488eab9");
    assert_eq!(
        hex(internal(&root, "shuffle").key()),
        "0d648eb8d164fb0b66ae24c72fab5fdff9742a62c88028912a53b2250c6f005c"
    );
    assert_eq!(RandomStream::from_key(*root.key()), root);
    let mut rng = root.rng();
    assert_eq!([(); 4].map(|()| rng.next_u32()), [79_123_999, 3_386_003_628, 3_842_745_846, 1_475_216_502]);
    let first = expected_from(source(&root, 0));
    assert_eq!(first[..4], [1_037_760_697, 1_026_491_260, -241_988_156, 1_830_294_902]);
    let second = expected_from(source(&root, 1));
    assert_eq!(second[..4], [-1_718_155_260, 804_755_374, -162_277_489, 629_556_269]);
}

#[test]
fn no_two_streams_share_a_key() {
    const INTERNAL: [&str; 4] = ["shuffle", "batch", "augment", "initialize"];
    let root = RandomStream::from_seed(0);
    let mut streams = vec![root.clone(), RandomStream::from_seed(1), RandomStream::from_seed(u64::MAX)];
    let names = ["", "a", "b", "ab", "a.b", "0", "1", "\0", "\0\0\0\0\0\0\0\0", "weight", "weigh", "é", "e\u{301}"];
    for parent in [root.clone(), root.fork("a"), root.fork_index(0)] {
        streams.extend(names.map(|name| parent.fork(name)));
        streams.extend([0, 1, 97, 256, u64::MAX].map(|index| parent.fork_index(index)));
        streams.extend(INTERNAL.into_iter().flat_map(|of| [internal(&parent, of), parent.fork(of)]));
    }
    let keys: std::collections::HashSet<_> = streams.iter().map(|stream| *stream.key()).collect();
    assert_eq!(keys.len(), streams.len());
    assert!(names.iter().all(|name| root.fork("a").fork(name) != root.fork("b").fork(name)));
    assert_ne!(root.fork("a").fork("b"), root.fork("ab"));
    assert_ne!(root.fork("x").fork_index(1), root.fork_index(1).fork("x"));
}

#[test]
fn a_fork_does_not_depend_on_what_was_forked_or_drawn() {
    let device = crate::deterministic_device();
    let stream = RandomStream::from_seed(5);
    let (a, b) = (stream.fork("a"), stream.fork("b"));
    let mut rng = stream.rng();
    rng.next_u64();
    let _draws = stream.enter();
    draw(&device);
    assert_eq!((stream.fork("b"), stream.fork("a")), (b, a));
    assert_eq!(rng.clone().next_u64(), rng.next_u64());
}

#[test]
fn the_host_generator_is_chacha8() {
    let stream = RandomStream::from_seed(9).fork("host");
    let number = 0xFFFF_FFFF_0000_0000;
    let mut ours = stream.rng();
    let mut theirs = ChaCha8Rng::from_seed(*stream.key());
    theirs.set_stream(number);
    let source = Source { key: (*stream.key()).into(), stream: random::Stream(number), block: 0 };
    for word in reference::words(source, 0..100) {
        assert_eq!([ours.next_u32(), theirs.next_u32()], [word; 2]);
    }
    assert_eq!(ours.next_u64(), theirs.next_u64());
    let mut bytes = [[0; 7]; 2];
    ours.fill_bytes(&mut bytes[0]);
    theirs.fill_bytes(&mut bytes[1]);
    assert_eq!(bytes[0], bytes[1]);
}

#[test]
fn generators_and_streams_survive_serde() {
    let stream = RandomStream::from_seed(9).fork("serde");
    let text = serde_json::to_string(&stream).expect("a stream");
    assert_eq!(serde_json::from_str::<RandomStream>(&text).expect("a stream"), stream);
    let mut rng = stream.rng();
    for _ in 0..75 {
        let text = serde_json::to_string(&rng).expect("a generator");
        let mut again: StreamRng = serde_json::from_str(&text).expect("a generator");
        assert_eq!(again, rng);
        assert_eq!(again.next_u32(), rng.next_u32());
    }
}

#[test]
fn operations_draw_the_words_of_their_stream() {
    let device = crate::deterministic_device();
    set_random_seed(31);
    let root = RandomStream::current().expect("seeded");
    assert_eq!(root, RandomStream::from_seed(31));
    let first = draw(&device);
    let stream = root.fork("part");
    let inside = {
        let _draws = stream.enter();
        assert_eq!(RandomStream::current().expect("entered"), stream);
        [draw(&device), draw(&device)]
    };
    let second = draw(&device);
    assert_eq!(inside, [0, 1].map(|operation| expected(&stream, operation)));
    assert_eq!([first, second], [0, 1].map(|operation| expected(&root, operation)));
    let _again = stream.enter();
    assert_eq!(draw(&device), inside[0]);
}

/// Nothing is read, so nothing has run, when the next stream is entered.
#[test]
fn an_operation_belongs_to_the_stream_in_which_it_was_issued() {
    let device = crate::deterministic_device();
    set_random_seed(31);
    let root = RandomStream::from_seed(31);
    let steps: Vec<_> = (0..40)
        .map(|step| {
            let outside = queue(&device);
            let _draws = root.fork_index(step).enter();
            let inside = queue(&device);
            let _inner = root.fork_index(step).fork("inner").enter();
            (outside, inside, queue(&device))
        })
        .collect();
    for (step, (outside, inside, innermost)) in (0..).zip(steps) {
        assert_eq!(read(outside), expected(&root, step as u32));
        assert_eq!(read(inside), expected(&root.fork_index(step), 0));
        assert_eq!(read(innermost), expected(&root.fork_index(step).fork("inner"), 0));
    }
}

#[test]
fn guards_end_in_any_order() {
    let device = crate::deterministic_device();
    set_random_seed(31);
    let root = RandomStream::from_seed(31);
    let (a, b) = (root.fork("a"), root.fork("b"));
    let (in_a, in_b) = (a.enter(), b.enter());
    drop(in_a);
    assert_eq!(draw(&device), expected(&b, 0));
    drop(in_b);
    assert_eq!(draw(&device), expected(&root, 0));
    let in_a = a.enter();
    set_random_seed(32);
    assert_eq!(draw(&device), expected(&RandomStream::from_seed(32), 0));
    drop(in_a);
    assert_eq!(draw(&device), expected(&RandomStream::from_seed(32), 1));
}

/// More streams than a thread remembers without running its operations.
#[test]
fn a_thread_may_enter_any_number_of_streams() {
    let device = crate::deterministic_device();
    set_random_seed(31);
    let root = RandomStream::from_seed(31);
    let outer = root.fork("outer");
    let _outer = outer.enter();
    let mut drawn = Vec::new();
    for step in 0..5000 {
        let stream = outer.fork_index(step);
        let _draws = stream.enter();
        if step % 500 == 7 {
            drawn.push((stream, queue(&device)));
        }
    }
    for (stream, drawn) in drawn {
        assert_eq!(read(drawn), expected(&stream, 0));
    }
    assert_eq!(draw(&device), expected(&outer, 0));
}

#[test]
fn a_thread_with_neither_seed_nor_stream_is_told_so() {
    let device = crate::deterministic_device();
    let stream = RandomStream::from_seed(4).fork("thread");
    let thread = thread::Builder::new().name("loader 3".to_owned()).spawn(move || {
        let error = RandomStream::current().expect_err("nothing was set");
        assert_eq!(error, Error::NoStream { thread: "loader 3".to_owned() });
        let state = random_state().expect("a state without a seed");
        {
            let _draws = stream.enter();
            assert_eq!(draw(&device), expected(&stream, 0));
            let error = restore_random_state(&state).expect_err("another place");
            assert_eq!(error, Error::Depth { state: 0, thread: 1 });
            assert_eq!(draw(&device), expected(&stream, 1));
        }
        let refused = queue(&device).try_into_data().expect_err("the stream was left").to_string();
        assert!(refused.contains("no seed is set") && refused.contains("fork"), "{refused}");
    });
    thread.expect("a thread").join().expect("its assertions hold");
}

/// A thread whose stream is handed to it draws the same whenever it runs.
fn worker(stream: RandomStream, device: Device) -> impl FnOnce() -> Vec<i64> + Send {
    move || {
        let _draws = stream.enter();
        let queued: Vec<_> = (0..20).map(|_| queue(&device)).collect();
        let inner = {
            let _draws = RandomStream::current().expect("entered").fork("inner").enter();
            draw(&device)
        };
        queued.into_iter().flat_map(read).chain(inner).chain(draw(&device)).collect()
    }
}

fn noise(device: &Device, done: &AtomicBool) {
    let mut turn = 0;
    while !done.load(Ordering::Relaxed) {
        turn += 1;
        set_random_seed(turn);
        let _draws = RandomStream::from_seed(turn).fork_index(turn).enter();
        draw(device);
    }
}

/// Two threads with streams of their own beside one that makes noise.
fn two_threads() -> [Vec<i64>; 2] {
    let device = crate::deterministic_device();
    let root = RandomStream::from_seed(77);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| noise(&device, &done));
        let threads = [0, 1].map(|index| scope.spawn(worker(root.fork("worker").fork_index(index), device.clone())));
        let drawn = threads.map(|thread| thread.join().expect("a worker"));
        done.store(true, Ordering::Relaxed);
        drawn
    })
}

pub fn two_threads_of_a_process() {
    let bytes = two_threads().concat().iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    report("drawn", hex(&bytes));
}

/// Threads that start with the same seed, in no particular order.
pub fn threads_with_one_seed() {
    let settings = Determinism::new().seed_threads(12);
    enable_op_determinism(settings).expect("this process has run no tensor operation");
    let device = Device::default();
    let root = RandomStream::from_seed(12);
    let drawing = || {
        let device = device.clone();
        thread::spawn(move || [draw(&device), draw(&device)])
    };
    let beside: Vec<_> = (0..4).map(|_| drawing()).collect();
    for thread in beside {
        assert_eq!(thread.join().expect("a thread"), [expected(&root, 0), expected(&root, 1)]);
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(RandomStream::current().expect("the seed of every thread"), root);
            // Issued under the seed of every thread, run under another.
            let queued = queue(&device);
            set_random_seed(13);
            assert_eq!(draw(&device), expected(&RandomStream::from_seed(13), 0));
            assert_eq!(read(queued), expected(&root, 0));
        });
        scope.spawn(|| {
            let of_its_own = root.fork("worker");
            let draws = of_its_own.enter();
            assert_eq!(draw(&device), expected(&of_its_own, 0));
            drop(draws);
            assert_eq!(draw(&device), expected(&root, 0));
            let state = random_state().expect("a working device");
            let next = draw(&device);
            restore_random_state(&state).expect("the same place");
            assert_eq!((next.clone(), next), (draw(&device), expected(&root, 1)));
        });
    });
    let again = enable_op_determinism(Determinism::new());
    assert!(matches!(again, Err(Error::AlreadyEnabled { .. })), "{again:?}");
}

#[test]
fn a_thread_without_a_seed_starts_with_that_of_all() {
    Program::new("threads_with_one_seed").run();
}

#[test]
fn threads_draw_the_same_in_any_interleaving() {
    let device = crate::deterministic_device();
    let root = RandomStream::from_seed(77);
    let alone = [0, 1].map(|index| {
        let worker = worker(root.fork("worker").fork_index(index), device.clone());
        thread::spawn(worker).join().expect("a worker")
    });
    assert_ne!(alone[0], alone[1]);
    for _ in 0..5 {
        assert_eq!(two_threads(), alone);
    }
    // One after the other's every step, in both orders.
    for order in [[0, 1], [1, 0]] {
        let streams = order.map(|index| root.fork("worker").fork_index(index));
        let (steps, drawn): (Vec<_>, Vec<_>) = streams
            .map(|stream| {
                let device = device.clone();
                let (step, steps) = mpsc::channel::<()>();
                let (give, drawn) = mpsc::channel();
                thread::spawn(move || {
                    let _draws = stream.enter();
                    steps.into_iter().for_each(|()| give.send(draw(&device)).expect("it waits"));
                });
                (step, drawn)
            })
            .into_iter()
            .unzip();
        for operation in 0..3 {
            for (turn, index) in order.into_iter().enumerate() {
                steps[turn].send(()).expect("it waits");
                let stream = root.fork("worker").fork_index(index);
                assert_eq!(drawn[turn].recv().expect("drawn"), expected(&stream, operation));
            }
        }
    }
}

#[test]
fn threads_draw_the_same_in_every_process() {
    let [one, other] = [(); 2].map(|()| Program::new("two_threads_of_a_process").run());
    let here: Vec<u8> = two_threads().concat().iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(one.reported("drawn"), hex(&here));
    assert_eq!(other.reported("drawn"), hex(&here));
}

#[test]
fn a_restored_thread_goes_on() {
    let device = crate::deterministic_device();
    set_random_seed(6);
    let root = RandomStream::from_seed(6);
    // Not run yet when the state is taken.
    let queued = [queue(&device), queue(&device), queue(&device)];
    let state = random_state().expect("a working device");
    assert_eq!(random_state().expect("a working device"), state);
    assert_eq!(draw(&device), expected(&root, 3), "taking a state changes nothing");
    let text = serde_json::to_string(&state).expect("a state");
    let state: RandomState = serde_json::from_str(&text).expect("a state");
    // Issued before, run after.
    let before = queue(&device);
    restore_random_state(&state).expect("the same place");
    assert_eq!(draw(&device), expected(&root, 3));
    assert_eq!(read(before), expected(&root, 4));
    let elsewhere = device.clone();
    let drawn = thread::spawn(move || {
        restore_random_state(&state).expect("the same place");
        assert_eq!(RandomStream::current().expect("restored"), RandomStream::from_seed(6));
        draw(&elsewhere)
    });
    assert_eq!(drawn.join().expect("its assertions hold"), expected(&root, 3));
    for (operation, queued) in (0..).zip(queued) {
        assert_eq!(read(queued), expected(&root, operation));
    }
}

#[test]
fn a_state_has_every_entered_stream() {
    let device = crate::deterministic_device();
    set_random_seed(6);
    let root = RandomStream::from_seed(6);
    let (outer, inner) = (root.fork("outer"), root.fork("outer").fork("inner"));
    draw(&device);
    let state = {
        let _outer = outer.enter();
        draw(&device);
        draw(&device);
        let _inner = inner.enter();
        draw(&device);
        random_state().expect("a working device")
    };
    draw(&device);
    let error = restore_random_state(&state).expect_err("nothing is entered here");
    assert_eq!(error, Error::Depth { state: 2, thread: 0 });
    assert!(error.to_string().contains("inside 2 entered streams, and this thread is inside 0"), "{error}");
    set_random_seed(1);
    {
        let _some = root.enter();
        {
            let _other = root.enter();
            restore_random_state(&state).expect("the same depth");
            assert_eq!(draw(&device), expected(&inner, 1));
        }
        assert_eq!(draw(&device), expected(&outer, 2));
    }
    assert_eq!(draw(&device), expected(&root, 1));
}

/// Continues from the state that it is given, or starts; reports its state half way, and what it draws after it.
pub fn interrupted() {
    let device = crate::deterministic_device();
    let state = match std::env::var(STATE) {
        Ok(state) => serde_json::from_str(&state).expect("a state"),
        Err(_) => {
            set_random_seed(19);
            let _drawn = [queue(&device), queue(&device)];
            random_state().expect("a working device")
        }
    };
    report("state", serde_json::to_string(&state).expect("a state"));
    restore_random_state(&state).expect("the same place");
    report("drawn", format!("{:?}", draw(&device)));
}

/// The state that [`interrupted`] is to continue from.
const STATE: &str = "BURN_DETERMINISTIC_RANDOM_STATE";

#[test]
fn another_process_goes_on() {
    let first = Program::new("interrupted").run();
    let second = Program::new("interrupted").env(STATE, first.reported("state")).run();
    assert_eq!(second.reported("drawn"), first.reported("drawn"));
    assert_eq!(second.reported("drawn"), format!("{:?}", expected(&RandomStream::from_seed(19), 2)));
}

/// Takes a state while the first operation of a device that nothing has used yet waits.
pub fn state_before_a_device_is_up() {
    crate::deterministic_device();
    set_random_seed(19);
    let device = Device::default();
    let first = queue(&device);
    let state = random_state().expect("nothing failed");
    match first.try_into_data() {
        Err(refused) => {
            let refused = refused.to_string();
            assert!(refused.contains("ran only after `burn_deterministic::random_state`"), "{refused}");
        }
        Ok(_) => {
            let next = draw(&device);
            restore_random_state(&state).expect("the same place");
            assert_eq!(draw(&device), next, "the state lacks an operation, and nothing said so");
        }
    }
    device.sync().expect("a working device");
    let state = random_state().expect("nothing failed");
    let next = draw(&device);
    restore_random_state(&state).expect("the same place");
    assert_eq!(draw(&device), next);
}

#[test]
fn a_state_misses_no_operation_in_silence() {
    Program::new("state_before_a_device_is_up").run();
}
