//! What a hop through the gateway costs, and the engines over HTTP: rows that `benches/gateway/overhead.rs` and
//! `benches/interface/overhead.rs` measured between processes.
//!
//! They belong to the machine and the day on which they were taken, and are shown, never gated.

use serde::{Deserialize, Serialize};

/// The file of the rows, in `scorecard/timings/`.
pub const FILE: &str = "gateway-overhead.csv";

/// The file of the rows about the engines over HTTP, beside it.
pub const INTERFACE_FILE: &str = "interface-overhead.csv";

/// One measured value. The fields are the columns of the file, in this order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverheadRow {
    /// Between what: `stdio to stdio`, `HTTP to stdio`, `HTTP to HTTP`, or what a start is measured on.
    pub path: String,
    /// What stands in the middle; `direct` and `direct over HTTP` where nothing does.
    pub engine: String,
    /// What was measured, e.g. `10 B p50` or `8 clients`.
    pub measure: String,
    /// The measured value, in `unit`.
    pub value: f64,
    /// The unit of the value: `us`, `calls/s` or `MiB`.
    pub unit: String,
}
