//! Collections x engines -> records of facts and timings.

pub mod record;
pub mod timing;
