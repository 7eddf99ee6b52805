//! Fixed-order CubeCL kernels for `burn-deterministic`.
//!
//! Every family states its **order contract** at the top of its module: which floating-point operations make up one
//! output element, in which order, as a function of logical shapes, parameters, dtype and, where operands select the
//! terms (indices, labels, offsets), of those. Where it computes, its `reference` module is the same contract in plain
//! Rust, and the tests require equal bits of the two.
//!
//! Where a family has several kernels or launches for one contract, its `plan` module has them as data: `Problem` is
//! what a plan may depend on, `plan(&Problem, Machine)` chooses, `Plan::candidates(&Problem)` lists a plan of each kind
//! that applies, with edge geometries, and `Plan::refuses(&Problem)` says why one does not. Every plan gives the same
//! bits. Where kernels keep [`subnormals`], `of_few_products` or `of_few_operations` chooses instead, since what compiles them takes
//! long for many operations a unit. A function takes an `Option<Plan>` as its last parameter, and without one chooses it. A plan that does not
//! apply is [`KernelError::Plan`], and so is a problem to which none applies: `plan` then chooses one that does not,
//! or, of [`scatter`], none. The plans of [`radix_sort`] are part of those of sorts and updates, and [`coarsening`] is
//! the plan of several families.
//!
//! Where a result has no element, no kernel of the family is launched. A reduction of no elements and a product with `k
//! = 0` are filled with a constant, and an update without values is a copy. In these cases no plan is looked at, except
//! that [`convolution`] refuses one that does not apply to a problem of any size; a convolution of no terms is launched
//! as any other.
//!
//! Kernels are written in CubeCL, and named in its words: a **unit** is a thread, a **cube** a block of threads, a
//! **plane** a warp. A **line** is the elements along an axis at fixed other indices, a **block** of an order its
//! consecutive terms that are summed before others.
//!
//! # Layers
//!
//! Imports go one way. Families import the modules above them in this table, and of each other what the other's
//! `mod.rs` exports, never its inside. In a family, `mod.rs` imports the other files and no file imports `mod.rs`: it
//! has the order contract and the public functions; `launch.rs` launches, `kernel.rs` is the device side, `plan.rs` has
//! the plans, and `reference.rs` is the contract in plain Rust. A family of one straight sequence of launches has them
//! in `mod.rs`, and one with a file for each plan has launch and kernel there.
//!
//! | module | what it is |
//! |---|---|
//! | [`error`], [`arithmetic`], [`device`] | refusals; float arithmetic that no compiler contracts; GPU or software driver, limits |
//! | [`quotient`] | quotients and square roots that are correctly rounded on every device |
//! | [`function`] | elementary functions with equal bits on every device |
//! | [`append_only`] | what is kept of each device |
//! | [`subnormals`] | kernels that keep subnormal numbers on devices that take them for zero |
//! | [`known_answer`] | what a device's arithmetic makes of questions with known answers, and what a kernel does about it |
//! | `dtype`, `buffer`, `grid`, `view`, `index` | element types and sortable keys; memory; launch grids; strided views; what an index names |
//! | [`order`] | the three orders of summation, their references, a table of who uses which, and the chain over parts |
//! | `outer_product` | the core of products in shared memory |
//! | [`planned`] | refuses plans that do not apply, tells an observer of the others |
//! | [`coarsening`] | how many elements that share index work a unit computes |
//! | [`radix_sort`] | stable sort of keys with their positions, CSR row offsets |
//! | the families | every other module |
//!
//! This crate knows nothing of Burn. Operands are [`TensorHandle`](cubecl::std::tensor::TensorHandle)s with any
//! strides; results are newly allocated and contiguous.

pub mod append_only;
pub mod arithmetic;
mod buffer;
pub mod coarsening;
pub mod convolution;
pub mod copy;
pub mod ctc;
pub mod deform_convolution;
pub mod device;
pub mod digest;
mod dtype;
pub mod elementwise;
pub mod error;
pub mod fourier;
pub mod function;
pub mod gather;
pub mod grid;
pub mod grid_sample;
mod index;
pub mod index_check;
pub mod interpolation;
pub mod known_answer;
pub mod matmul;
pub mod order;
mod outer_product;
pub mod planned;
pub mod pool;
pub mod quotient;
pub mod radix_sort;
pub mod random;
pub mod reduce;
pub mod rows;
pub mod scan;
pub mod scatter;
mod side_by_side;
pub mod sort;
pub mod subnormals;
mod tables;
mod view;

pub use error::KernelError;
