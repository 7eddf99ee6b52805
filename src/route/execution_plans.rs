//! Bounds Burn's store of execution plans.
//!
//! Burn keeps a plan for every sequence of operations that it has seen, and never drops one. A random operation is part
//! of a plan with the parameters of its distribution, and so is the order in which tensors are dropped: a program that
//! anneals a rate, or drops the values of a hash map, makes new plans for ever. Each takes memory, and each makes the
//! search for a plan slower: it reads all plans that begin with an operation of the same kind.
//!
//! burn-fusion 0.22.1 has a bound of its own (`max_explorations`), past which it runs what it has no plan for on the plain
//! backend, and no other way to drop plans. They are a field of the server that runs a device's operations, whose type is
//! private. So from time to time the server's state is exchanged for that of a new one, on the thread that runs it, between
//! two of its tasks:
//!
//! 1. run all operations that wait;
//! 2. take the tensors out: an operation of this module's gets Burn's container of them, and keeps it;
//! 3. exchange the state of the device's server and that of a new server, made for a device that does not exist;
//! 4. put the tensors back, by an operation on the new server.
//!
//! From then on the server says that it is for the device that does not exist. This crate's fuser knows better; another
//! optimization that the program has registered, whose operations are refused in any case, would get that device.
//!
//! Plans decide which operations share a kernel, and that changes no bits. Queues of threads that have ended, which Burn
//! keeps too, go with the same exchange. It is due when too many of either were made (see [`Kept`]).

use super::pending;
use crate::memory::note_unused_stream;
use crate::random::run_unasked;
use burn_backend::{DeviceHandle, StreamId};
use burn_cubecl::CubeDevice;
use burn_cubecl::fusion::FusionCubeRuntime;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_fusion::ExecutionError;
use burn_fusion::client::GlobalFusionClient;
use burn_fusion::custom::{CustomOpIr, HandleContainer, Operation};
use burn_ir::OperationIr;
use core::any::Any;
use core::cell::{Cell, RefCell};
use core::hash::{Hash, Hasher};
use core::mem::MaybeUninit;
use cubecl::device::CudaDevice;
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

/// Plans, and queues, that are made before an exchange at least.
const MIN_MADE: usize = 1 << 8;

/// Plans, and queues, that are made before an exchange at most.
const MAX_MADE: usize = 1 << 16;

/// Plans of like operations that count as made again.
const MAX_ALIKE: usize = 8;

/// The operation that takes tensors out or puts them back.
pub(super) const EXCHANGE: &str = "burn-deterministic::exchange";

/// The device of the new servers, until they take another one's place; no machine has so many.
const NOWHERE: usize = u16::MAX as usize;

type Client = GlobalFusionClient<FusionCubeRuntime>;

/// What Burn's server keeps for ever of one kind: plans, or queues.
///
/// How many are made before the next exchange follows what the program needs: four times as many as were made again after
/// they had been dropped, within [`MIN_MADE`] and [`MAX_MADE`].
struct Kept<K> {
    /// How many were made since the last exchange.
    made: usize,
    /// How many of them have this key.
    keys: HashMap<K, usize>,
    /// Keys of those made before.
    known: HashSet<K>,
    limit: usize,
}

impl<K: Eq + Hash> Kept<K> {
    fn new(limit: usize) -> Self {
        Self { made: 0, keys: HashMap::new(), known: HashSet::new(), limit }
    }

    /// Counts one. Whether an exchange is due.
    fn made(&mut self, key: K) -> bool {
        self.made += 1;
        *self.keys.entry(key).or_default() += 1;
        self.made >= self.limit
    }

    /// Notes that all were dropped.
    fn dropped(&mut self) {
        let again = self.keys.iter().filter(|(key, _)| self.known.contains(key));
        let again: usize = again.map(|(_, made)| *made.min(&MAX_ALIKE)).sum();
        self.limit = (4 * again).clamp(MIN_MADE, MAX_MADE);
        if self.known.len() > MAX_MADE {
            self.known.clear();
        }
        self.known.extend(self.keys.drain().map(|(key, _)| key));
        self.made = 0;
    }
}

/// What a device's server keeps.
struct Server {
    /// Plans, by a hash of their operations in which parameters of distributions take no part.
    plans: Kept<u64>,
    /// Queues, by the thread that has issued operations.
    queues: Kept<StreamId>,
    /// Whether an exchange was asked for.
    asked: bool,
    /// The device, where its server was made for another.
    device: Option<CubeDevice>,
}

thread_local! {
    /// Of the device whose operations this thread runs. Not in the thread's [context](crate::context): it lives as long
    /// as the device.
    static SERVER: RefCell<Server> = RefCell::new(Server {
        plans: Kept::new(4 * MIN_MADE),
        queues: Kept::new(MIN_MADE),
        asked: false,
        device: None,
    });
    /// The tensors of the device while its server is exchanged: [`exchange_here`] hands them to [`Exchange`], which Burn
    /// runs in the same thread.
    static TENSORS: RefCell<HandleContainer<CubeFusionHandle>> = RefCell::default();
    /// Whether [`Exchange`] ran since this was last cleared.
    static SWAPPED: Cell<bool> = const { Cell::new(false) };
}

/// The device that a stream's operations run on, whose server says that it is for `device`.
pub(super) fn device_of_server(device: &CubeDevice) -> CubeDevice {
    SERVER.with_borrow(|server| server.device.clone()).unwrap_or_else(|| device.clone())
}

/// Counts a plan, and has the plans dropped where they are too many.
pub(super) fn made(operations: &[OperationIr], device: &CubeDevice) {
    let mut hasher = DefaultHasher::new();
    operations.hash(&mut hasher);
    let hash = hasher.finish();
    SERVER.with_borrow_mut(|server| {
        if server.plans.made(hash) {
            server.ask(device);
        }
    });
}

/// Counts a queue of the thread at work, made for `device`, and has it dropped where there are too many.
pub(super) fn queue_made(device: &CubeDevice) {
    SERVER.with_borrow_mut(|server| {
        if server.queues.made(StreamId::current()) {
            server.ask(device);
        }
    });
}

impl Server {
    /// Has the server exchanged. It is at work here, so another thread has to ask for it; without one the plans go on to
    /// grow.
    fn ask(&mut self, device: &CubeDevice) {
        if !core::mem::replace(&mut self.asked, true) {
            let device = device.clone();
            let spawned = std::thread::Builder::new().name("plans".to_owned()).spawn(move || exchange(&device));
            // Asked again at the next plan.
            self.asked = spawned.is_ok();
        }
    }
}

/// Exchanges the state of the device's server for a new one without plans.
fn exchange(device: &CubeDevice) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let nowhere = CubeDevice::Cuda(CudaDevice::new(NOWHERE));
    let new = Client::new(nowhere.clone());
    let server = server(Client::new(device.clone()));
    // What fails leaves the server as it is, with its tensors: plans go on to grow.
    if let Err(error) = server.exclusive(|| exchange_here(device, &new)) {
        let text = "could not be dropped; training goes on, and slows down as they grow";
        // A closed standard error must not become a panic.
        let _ = writeln!(std::io::stderr(), "burn-deterministic: Burn's plans for {device:?} {text}: {error:?}");
    }
    drop(new);
    // Ends the thread of the other server, and drops what is now there.
    DeviceHandle::<dyn Any>::shutdown(nowhere.to_id());
}

/// [`exchange`], on the thread that runs the device's operations, between two of its tasks.
fn exchange_here(device: &CubeDevice, new: &Client) {
    let client = Client::new(device.clone());
    for stream in pending::streams() {
        // A failure stays with the operation's results.
        let _ = run_unasked(stream, || stream.executes(|| client.try_sync(|| ())));
    }
    SERVER.with_borrow_mut(|server| server.device = Some(device.clone()));
    assert!(swap_tensors(&client), "the operation that takes tensors out did not run");
    let swapped = catch_unwind(AssertUnwindSafe(|| swap_servers(&client, new)));
    assert!(swap_tensors(&client), "the operation that puts tensors back did not run: all tensors are lost");
    if let Err(panic) = swapped {
        resume_unwind(panic);
    }
    SERVER.with_borrow_mut(|server| {
        server.plans.dropped();
        server.queues.dropped();
        server.asked = false;
    });
}

/// Exchanges the tensors of the server and those in [`TENSORS`]. Whether that was done.
fn swap_tensors(client: &Client) -> bool {
    let stream = *STREAM;
    SWAPPED.set(false);
    stream.executes(|| {
        let operation = OperationIr::Custom(CustomOpIr::new(EXCHANGE, &[], &[]));
        client.register(stream, operation, Exchange);
        // Runs it here and now.
        let _ = client.try_sync(|| ());
    });
    SWAPPED.get()
}

/// A stream for the operations of this module.
static STREAM: std::sync::LazyLock<StreamId> = std::sync::LazyLock::new(|| {
    let stream = StreamId::allocate();
    note_unused_stream();
    stream
});

#[derive(Debug)]
struct Exchange;

impl Operation<FusionCubeRuntime> for Exchange {
    fn execute(&self, handles: &mut HandleContainer<CubeFusionHandle>) -> Result<(), ExecutionError> {
        TENSORS.with_borrow_mut(|tensors| core::mem::swap(tensors, handles));
        SWAPPED.set(true);
        Ok(())
    }
}

/// The fields of burn-fusion 0.22.1's client, with another type in place of the private one.
struct ClientFields {
    server: DeviceHandle<()>,
    device: CubeDevice,
}

/// A handle on the server behind a client.
fn server(client: Client) -> DeviceHandle<dyn Any> {
    let device = client.device().to_id();
    // SAFETY: `GlobalFusionClient` has these two fields, and `DeviceHandle<S>` differs for another `S` only in the type
    // that a function pointer returns a reference to, which `seen_as` replaces before it is called. That Rust lays out
    // both structs in the same way is not promised by the language; it is so for the version of burn-fusion that Cargo.toml
    // pins, sizes are compared by the compiler, and devices below.
    let client: ClientFields = unsafe { core::mem::transmute(client) };
    assert_eq!(
        (client.device.to_id(), client.server.device_id()),
        (device, device),
        "burn-fusion's client has changed"
    );
    client.server.seen_as(|server| server)
}

/// Exchanges the states of two servers, on the thread of the first.
fn swap_servers(first: &Client, second: &Client) {
    struct State(*mut dyn Any);
    // SAFETY: burn-fusion's server is a `DeviceService`, and so `Send`; the pointer is used while its borrow lasts.
    unsafe impl Send for State {}

    let second = server(second.clone());
    let swapped = server(first.clone()).submit_blocking(|first| {
        let first = State(first);
        second.submit_blocking(move |second| {
            let first = first;
            // SAFETY: the borrow that the pointer is from lasts until this task ends, for which its owner waits.
            let first: &mut dyn Any = unsafe { &mut *first.0 };
            assert_eq!((*first).type_id(), (*second).type_id(), "both are burn-fusion's server");
            let size = size_of_val(first);
            let (first, second) = (&raw mut *first, &raw mut *second);
            // SAFETY: two values of one type that do not overlap, each borrowed uniquely: this is `mem::swap`.
            unsafe { core::ptr::swap_nonoverlapping(first.cast::<MaybeUninit<u8>>(), second.cast(), size) };
        })
    });
    match swapped {
        Ok(Ok(())) => {}
        Ok(Err(error)) | Err(error) => error.resume(),
    }
}
