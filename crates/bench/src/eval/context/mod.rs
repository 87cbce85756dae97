//! Context engine x results and event logs -> records of what survives, what fits and what it costs.
//!
//! Probes ask a text for answers that were derived from the whole result; fidelity is the share of them that a summary
//! still gives; questions that people wrote are a second set. Nothing here shares code with the summariser that it measures.

pub mod controls;
pub mod fidelity;
pub mod probe;
pub mod question;
pub mod reach;
pub mod record;
pub mod rival;
pub mod run;
pub mod scenario;
pub mod source;
pub mod sweep;
pub mod timing;
pub mod way;
