//! Random numbers. They are addressed, not consumed: a random operation draws words of its own under the key of the
//! stream that its thread draws from. How keys are derived, and which words an operation draws, is in the documentation of [`RandomStream`].

mod device_seed;
mod draw;
mod position;
mod repeat;
mod rng;
mod seed;
mod seeded_only;
mod state;
mod stream;
mod thread;
mod threads;

pub(crate) use device_seed::{plant, waited};
pub(crate) use draw::{next_stream, set_backend_seed};
pub(crate) use position::{begun, is_run_unasked, run_on, run_unasked, tensors_exist};
pub(crate) use repeat::repeatable;
pub use rng::StreamRng;
pub use seed::set_random_seed;
pub(crate) use seed::{note_seeds, seed_in_words, unseed};
pub use state::{RandomState, random_state, restore_random_state};
pub use stream::{EnteredStream, RandomStream};
