//! The same work gives the same bits: in another process, again and again, under stress, whatever other threads do.

pub mod injection;
pub mod random_programs;
pub mod reads;
pub mod reinforced;
pub mod repeats;
pub mod rerun;
pub mod run_to_run;
pub mod stress;
pub mod threads;
