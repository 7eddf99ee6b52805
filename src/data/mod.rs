//! Data loading whose batches are the same for any number of workers.
//!
//! ```
//! use burn::data::{dataloader::batcher::Batcher, dataset::InMemDataset};
//! use burn::tensor::Device;
//! use burn_deterministic::data::{DataLoaderBuilder, Pipeline};
//! use rand::RngExt;
//!
//! struct Stack;
//!
//! impl Batcher<f32, Vec<f32>> for Stack {
//!     fn batch(&self, items: Vec<f32>, _device: &Device) -> Vec<f32> {
//!         items // a real one makes tensors on the device
//!     }
//! }
//!
//! let samples = Pipeline::new(InMemDataset::new(vec![1.0, f32::NAN, 3.0, 4.0]))
//!     .filter(|value| value.is_finite())
//!     .augment(812, |value, rng| value + rng.random_range(-0.1..0.1));
//! let loader = DataLoaderBuilder::new("train", Stack).shuffle(812).batch_size(2).num_workers(4).prefetch(2);
//! let loader = loader.build_pipeline(samples);
//! for _epoch in 0..3 {
//!     for batch in loader.batches() {
//!         let _batch = batch?; // the same in every run
//!     }
//! }
//! # Ok::<(), burn_deterministic::data::LoadError>(())
//! ```
//!
//! [`DataLoaderBuilder`] has the methods of Burn's builder of that name and gives the loader a name; what it builds is a
//! [`DataLoader`](burn_core::data::dataloader::DataLoader) that burn-train's `SupervisedTraining` takes. A [`Pipeline`]
//! says what a sample is: an item of a dataset, then the functions applied to it.
//!
//! # What decides a batch
//!
//! The seeds, the loader's name, the epoch, the samples' indices in the dataset, the batch size and
//! [`drop_last`](DataLoaderBuilder::drop_last). Nothing is drawn in the order in which samples are made: the order of
//! epoch `e` has a [`RandomStream`](crate::RandomStream) forked from the shuffle's by `e`, and what
//! [`augment`](Pipeline::augment) does to sample `i` in epoch `e` has one forked from its own by its place in the
//! pipeline, the loader's name, `e` and `i`. A seed stands for the root of its streams, wherever a stream is asked for.
//!
//! So loaders that have one seed draw different numbers where their names differ (`"train"`, `"valid"`), whatever other
//! loaders the program has, and whichever it makes first.
//!
//! In each epoch the samples are put in order, made, filtered, and those that are left are cut into batches in that
//! order; the last batch may be smaller, or dropped. The order is the dataset's, or one of these:
//!
//! | order | samples of an epoch | memory |
//! |---|---|---|
//! | [`shuffle`](DataLoaderBuilder::shuffle) | each once | 8 bytes for each |
//! | [`shuffle_window`](DataLoaderBuilder::shuffle_window) | each once, not far from its place | a window |
//! | [`weighted`](DataLoaderBuilder::weighted) | drawn with replacement, by weight | 8 bytes for each draw and each weight |
//!
//! # Datasets and streams
//!
//! A dataset gives any sample by its index; it need not fit in memory, if its `get` reads a file. A stream
//! ([`Pipeline::shards`]) is read from its start to its end: files of lines, archives, a generator. Whatever worker
//! reads an item, it is the same one at the same place. A stream keeps a window in memory, resumes by reading what is
//! before the position, and cannot be sliced.
//!
//! # Sequences of unequal lengths
//!
//! [`pad_sequences`] makes one matrix of them in a batcher, and a mask.
//!
//! # Workers
//!
//! Workers are threads that make batches ahead of the program, each a whole batch: its samples, then the batcher. They
//! are handed over in order. So dataset, functions and batcher run in any of the workers, several at a time, and must
//! compute the same for the same samples: no counter, cache of random things or generator of their own.
//!
//! A batcher may work on the device, random operations included: batch `b` of epoch `e` draws from a stream of its own
//! (see [`random`](DataLoaderBuilder::random)), with any number of workers and without. What it draws from is the stream
//! of the thread that asks for the pass, if nothing else is said; where that has no seed, the batches carry the error
//! that any random operation without one has. An index out of range is an error of the batch it is in.
//!
//! # Epochs and positions
//!
//! Each [`batches`](DataLoader::batches), and each `iter` of Burn's trait, is the next epoch, from 0. For an evaluation
//! whose results are to be compared, [`fixed_epoch`](DataLoaderBuilder::fixed_epoch) makes each pass the same one.
//! [`position`](DataLoader::position) says which batch comes next, and [`resume_at`](DataLoader::resume_at) starts the
//! next pass there, in the same process or in another. It refuses the position of a loader with another name, length,
//! batch size, `drop_last`, `fixed_epoch`, order, pipeline or seed. Each loader has a position of its own: a program
//! with two resumes both.
//!
//! # Failures
//!
//! A dataset, a function or a batcher that fails or panics ends the pass with a [`LoadError`] that names the sample, in
//! place of the batch that it was to be in. The batches before it are handed out, with any number of workers.
//!
//! A worker that panics anywhere else, say in the `Drop` of a sample of which no batch is made, ends the pass at once, with
//! [`LoadError::WorkerPanic`]. Without workers such a panic is that of the thread that asks for the batch; if it
//! asks again, it is given the batch.

mod batches;
mod batching;
mod builder;
mod cut;
mod dealing;
mod error;
mod identity;
mod interleave;
mod loader;
mod padding;
mod panic;
mod pass;
mod pipeline;
mod position;
mod sampler;
mod slices;
mod stage;
mod stream;
mod weights;
mod windows;
mod worker_stream;
mod workers;

pub use batches::Batches;
pub use builder::DataLoaderBuilder;
#[cfg(feature = "train")]
pub(crate) use dealing::deal;
pub use error::LoadError;
pub use interleave::Interleaved;
pub use loader::DataLoader;
pub use padding::{PadTo, Padded, pad_sequences};
pub use pipeline::Pipeline;
pub use position::Position;
