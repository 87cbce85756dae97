//! What a run took on one machine: rows of `scorecard/timings/<date>-<machine>.csv`.
//!
//! Timings never share a file with facts: they differ from machine to machine and are shown, not gated. Every row
//! repeats where it was taken, so that rows of several files can be put together without losing that. This module
//! holds the types only; measuring and file access live elsewhere.

use serde::{Deserialize, Serialize};

use super::day::Day;
use contextweaver_core::names::named;

/// One measured distribution. The fields are the columns of the file, in this order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimingRow {
    /// Day of the recording; rows are ordered by it.
    pub date: Day,
    /// A short name of the machine, as in the file name.
    pub machine: String,
    /// The processor as the system names it.
    pub cpu: String,
    /// The operating system and its version.
    pub os: String,
    /// The compiler version.
    pub rustc: String,
    /// The revision of the sources that were measured.
    pub revision: String,
    /// What was timed.
    pub subject: Subject,
    /// The engine that was timed; empty where none takes part.
    pub engine: Option<String>,
    /// Tools in the catalog; for a compiled prompt events in the log, for the firewall megabytes of the result; empty
    /// where there is no size.
    pub tools: Option<usize>,
    /// The unit of the four figures that follow the number of runs.
    pub unit: Unit,
    /// How often it was run after warm-up; one sample each.
    pub runs: usize,
    /// Median over the runs.
    pub median: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Median absolute deviation from the median.
    pub mad: f64,
}

named! {
    /// What was timed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum Subject {
        /// Query text in, ids of the first ten tools out, in memory, on one thread.
        Search = "search",
        /// The index of a loaded catalog.
        IndexBuild = "index build",
        /// A saved index made ready for its first query by mapping its file into memory.
        Open = "open",
        /// The same, and the answer to that query.
        OpenAndAnswer = "open and answer",
        /// The choice graph of a loaded catalog.
        TreeBuild = "tree build",
        /// The `route` command, from the start of the process to its end.
        RouteColdProcess = "route cold process",
        /// The `--help` option, from the start of the process to its end.
        HelpColdProcess = "help cold process",
        /// One choice card from its item, token count included.
        Card = "card",
        /// A prompt from a log, in memory, on one thread; the size is the number of events.
        ContextCompile = "context compile",
        /// A JSON result through the firewall into memory; the size is in megabytes.
        Firewall = "firewall, MB of JSON",
    }
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Unit {
    /// A millionth of a second.
    #[serde(rename = "us")]
    Microseconds,
    /// A thousandth of a second.
    #[serde(rename = "ms")]
    Milliseconds,
}

impl Unit {
    /// The symbol shown to people: `µs` or `ms`.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
        }
    }

    /// The length of one unit in microseconds.
    #[must_use]
    pub fn microseconds(self) -> f64 {
        match self {
            Self::Microseconds => 1.0,
            Self::Milliseconds => 1000.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
date,machine,cpu,os,rustc,revision,subject,engine,tools,unit,runs,median,p95,p99,mad
2026-01-31,desk,Some CPU,Linux 6.1,1.95.0,abc1234,search,default,1000,us,4000,5.6,9.25,11.0,0.4
2026-01-31,desk,Some CPU,Linux 6.1,1.95.0,abc1234,help cold process,,,ms,50,1.5,2.0,2.5,0.1
";

    #[test]
    fn a_file_is_read_and_written_byte_for_byte() {
        let rows: Vec<TimingRow> =
            csv::Reader::from_reader(FILE.as_bytes()).deserialize().map(Result::unwrap).collect();
        assert_eq!((rows[0].engine.as_deref(), rows[0].tools), (Some("default"), Some(1000)));
        assert_eq!((rows[1].engine.as_deref(), rows[1].tools), (None, None));
        let mut writer = csv::Writer::from_writer(Vec::new());
        rows.iter().for_each(|row| writer.serialize(row).unwrap());
        assert_eq!(String::from_utf8(writer.into_inner().unwrap()).unwrap(), FILE);
    }

    #[test]
    fn an_unknown_column_is_refused() {
        let file = FILE.replace("mad\n", "spread\n");
        assert!(csv::Reader::from_reader(file.as_bytes()).deserialize::<TimingRow>().next().unwrap().is_err());
    }
}
