//! All chapters at once: measured, merged with what is recorded, written, rendered and checked.
//!
//! The way is one: [`Measured::of`] measures what can be measured here; [`Measured::recordings`] puts it together with the
//! records that are kept; [`write()`] and [`pages::of`] make files of that. [`check`] compares what was measured with what is
//! committed. A chapter knows nothing of this.

pub mod check;
pub mod engines;
mod files;
mod measured;
pub mod pages;
mod run;

pub use files::{committed, write};
pub use measured::{Measured, Unmeasured};
pub use run::{Ran, Recorder, render, run, terminal};
