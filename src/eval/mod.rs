//! Collections x engines -> records of facts and timings.

pub mod collection;
pub mod record;
