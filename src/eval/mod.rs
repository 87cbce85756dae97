//! Collections x engines -> records of facts and timings.

pub mod abstention;
pub mod audit;
pub mod collection;
pub mod growth;
pub mod loss;
pub mod measure;
pub mod record;
pub mod rng;
pub mod statistics;
pub mod ties;
pub mod trec;
