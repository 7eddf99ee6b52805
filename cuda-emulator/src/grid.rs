//! A launch: blocks one after the other, a block's threads as fibers where they wait for each other, else one after the other.

use crate::check::{Checker, Verdict};
use crate::count;
use crate::module::{Index, Kernel, State};
use crate::schedule::Schedule;
use crate::settings::{Arithmetic, settings};
use crate::subnormals::Flushed;
use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::ffi::{c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// A fiber's stack, in bytes; its pages are mapped when they are touched.
const STACK: usize = 256 << 10;

/// What shared memory holds before a block writes it.
const FILL: u8 = 0xCD;

/// What a launch is given.
pub struct Launch<'a> {
    pub kernel: &'a Kernel,
    pub grid: Index,
    pub block: Index,
    /// Bytes of shared memory a block.
    pub shared: usize,
    pub arguments: *mut *mut c_void,
}

/// The launch had an access outside every buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IllegalAddress;

/// Why a fiber stops.
enum Pause {
    /// At a barrier, in a line of the source.
    Barrier(u32),
    /// Before an access that cannot happen: it does not go on.
    Abandoned,
}

type Fiber = Coroutine<(), Pause, (), DefaultStack>;

enum Thread {
    Ready,
    Waiting(Waiting),
    Ended,
}

/// A fiber at a barrier, or not yet started.
struct Waiting {
    fiber: Fiber,
    yielder: *const Yielder<(), Pause>,
    /// Its stack's addresses.
    stack: (usize, usize),
}

/// What a kernel's callbacks get.
struct Running {
    yielder: *const Yielder<(), Pause>,
    checker: Option<Checker>,
}

unsafe extern "C" fn barrier(context: *mut c_void, line: c_uint) {
    let running = context.cast::<Running>();
    // SAFETY: `launch` gives the context, and sets the yielder to that of the running fiber before it resumes it.
    unsafe { (*(*running).yielder).suspend(Pause::Barrier(line)) }
}

unsafe extern "C" fn access(context: *mut c_void, address: *const c_void, size: c_ulong, write: c_uint) {
    let running = context.cast::<Running>();
    // SAFETY: as for `barrier`; the reference to the checker ends before the fiber is suspended.
    unsafe {
        let checker = (*running).checker.as_mut().expect("a kernel compiled with checks is launched with them");
        if checker.access(address as usize, size as usize, write != 0) == Verdict::Abandon {
            (*(*running).yielder).suspend(Pause::Abandoned);
        }
    }
}

/// Runs a launch to its end. Launches of other threads wait.
///
/// # Safety
///
/// `arguments` are those of the kernel's parameters, and the memory that they name is there.
pub unsafe fn launch(launch: &Launch) -> Result<(), IllegalAddress> {
    static ONE: Mutex<Pool> = Mutex::new(Pool { stacks: Vec::new() });
    let mut pool = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Launch { kernel, grid, block, shared, .. } = *launch;
    let settings = settings();
    let number = count::LAUNCHES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let mut schedule = Schedule::new(settings.seed, number);

    let mut pointers = Vec::new();
    let mut arguments: Vec<*mut c_void> =
        // SAFETY: the caller's promise.
        (0..kernel.parameters.len()).map(|i| unsafe { *launch.arguments.add(i) }).collect();
    let mut running = Running { yielder: ptr::null(), checker: None };
    if settings.check {
        // SAFETY: the caller's promise.
        let (checker, moved) = unsafe { Checker::new(kernel, grid, block, launch.arguments) };
        pointers = moved;
        running.checker = Some(checker);
        for ((argument, pointer), parameter) in arguments.iter_mut().zip(&mut pointers).zip(&kernel.parameters) {
            if parameter.pointee != 0 {
                *argument = ptr::from_mut(pointer).cast();
            }
        }
    }
    let mut memory = vec![0u128; shared.div_ceil(16) + 8];
    // As aligned as a device's.
    let memory = (memory.as_mut_ptr() as usize).next_multiple_of(128) as *mut u8;
    if let Some(checker) = &mut running.checker {
        checker.share(memory as usize, shared);
    }
    let running = ptr::from_mut(&mut running);
    // SAFETY: the state is the library's own, and one launch runs at a time.
    unsafe {
        *kernel.state = State {
            thread: Index::default(),
            block: Index::default(),
            block_size: block,
            grid_size: grid,
            shared: memory,
            context: running.cast(),
            barrier: Some(barrier),
            access: Some(access),
        };
    }
    // SAFETY: blocks, threads and checks are counted in integers.
    let flushed = (settings.arithmetic == Arithmetic::Flushed).then(|| unsafe { Flushed::begin() });
    let mut order: Vec<u32> = (0..block.size() as u32).collect();
    let (first, step) = schedule.blocks(grid.size().max(1));
    for turn in 0..grid.size() {
        let at = ((u128::from(first) + u128::from(turn) * u128::from(step)) % u128::from(grid.size())) as u64;
        // SAFETY: as above; shared memory has `shared` bytes.
        unsafe {
            (*kernel.state).block = grid.place(at);
            memory.write_bytes(FILL, shared);
            if let Some(checker) = &mut (*running).checker {
                checker.enter_block(at);
            }
        }
        if kernel.barriers || settings.check {
            // SAFETY: `running` outlives the fibers, which end in the call.
            unsafe { run_fibers(launch, &mut arguments, running, &mut pool, &mut schedule, &mut order) };
        } else {
            schedule.threads(&mut order);
            for &thread in &order {
                // SAFETY: the arguments are the kernel's.
                unsafe {
                    (*kernel.state).thread = block.place(thread.into());
                    (kernel.run)(arguments.as_mut_ptr());
                }
            }
        }
    }
    drop(flushed);
    drop(pointers);
    // SAFETY: the fibers have ended: nobody else refers to it.
    match unsafe { (*running).checker.take() } {
        None => Ok(()),
        Some(checker) => {
            count::add(&count::READ, checker.bytes_read);
            count::add(&count::WRITTEN, checker.bytes_written);
            let illegal = checker.illegal;
            checker.finish();
            if illegal { Err(IllegalAddress) } else { Ok(()) }
        }
    }
}

/// Stacks that no fiber has.
struct Pool {
    stacks: Vec<DefaultStack>,
}

/// Runs the threads of a block, in a new order after each barrier.
///
/// # Safety
///
/// The arguments are the kernel's, and `running` is not otherwise referred to.
unsafe fn run_fibers(
    launch: &Launch,
    arguments: &mut [*mut c_void],
    running: *mut Running,
    pool: &mut Pool,
    schedule: &mut Schedule,
    order: &mut [u32],
) {
    let kernel = launch.kernel;
    let mut threads: Vec<Thread> = order.iter().map(|_| Thread::Ready).collect();
    let (run, arguments) = (kernel.run, arguments.as_mut_ptr());
    loop {
        schedule.threads(order);
        let mut lines: Option<(u32, u32)> = None;
        let mut at_barrier = 0;
        for &number in order.iter() {
            let thread = &mut threads[number as usize];
            let mut waiting = match std::mem::replace(thread, Thread::Ended) {
                Thread::Ended => continue,
                Thread::Waiting(waiting) => waiting,
                Thread::Ready => {
                    let stack = pool.stacks.pop();
                    let stack = stack.unwrap_or_else(|| DefaultStack::new(STACK).expect("memory for a fiber's stack"));
                    let addresses = (stack.limit().get(), stack.base().get());
                    let fiber = Fiber::with_stack(stack, move |yielder, ()| {
                        // SAFETY: the caller's promise.
                        unsafe {
                            (*running).yielder = yielder;
                            run(arguments);
                        }
                    });
                    Waiting { fiber, yielder: ptr::null(), stack: addresses }
                }
            };
            // SAFETY: the caller's promise; the references end before the fiber runs.
            unsafe {
                (*kernel.state).thread = launch.block.place(number.into());
                (*running).yielder = waiting.yielder;
                if let Some(checker) = &mut (*running).checker {
                    checker.enter_thread(number.into(), waiting.stack);
                }
            }
            match waiting.fiber.resume(()) {
                CoroutineResult::Yield(Pause::Barrier(line)) => {
                    at_barrier += 1;
                    lines = Some(lines.map_or((line, line), |(first, last)| (first.min(line), last.max(line))));
                    // SAFETY: the fiber set it, and it stays valid while the fiber does.
                    waiting.yielder = unsafe { (*running).yielder };
                    *thread = Thread::Waiting(waiting);
                }
                CoroutineResult::Yield(Pause::Abandoned) => {
                    // SAFETY: a kernel's stack has nothing to drop.
                    unsafe { waiting.fiber.force_reset() };
                    pool.stacks.push(waiting.fiber.into_stack());
                }
                CoroutineResult::Return(()) => pool.stacks.push(waiting.fiber.into_stack()),
            }
        }
        let Some(lines) = lines else { return };
        count::add(&count::BARRIERS, 1);
        // SAFETY: no fiber runs.
        if let Some(checker) = unsafe { &mut (*running).checker } {
            checker.pass_barrier(at_barrier, threads.len() - at_barrier, lines);
        }
    }
}
