//! Where timings were taken: what a row of a timings file says about its machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::day::Day;
use super::latency::Sample;
use super::timing::TimingRow;

/// Checks a machine's short name: it becomes part of a file name.
///
/// # Errors
/// What a name is made of.
pub fn parse_name(text: &str) -> Result<String, String> {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !text.is_empty() && text.len() <= 40 && text.chars().all(valid) {
        Ok(text.to_owned())
    } else {
        Err("a machine name is 1 to 40 letters, digits, - and _".to_owned())
    }
}

/// `samples` as rows, stamped with the day, the machine (`name`, or its architecture and core count), and the revision
/// of the checkout at `root` (`-dirty` with uncommitted changes). What cannot be found out is `unknown`.
#[must_use]
pub fn rows(samples: &[Sample], name: Option<&str>, root: &Path) -> Vec<TimingRow> {
    let machine = self::name(name);
    let date = Day::now();
    let cpu = proc_line("/proc/cpuinfo", "model name", ':');
    let os = proc_line("/etc/os-release", "PRETTY_NAME", '=');
    let rustc = output("rustc", &["--version"]).trim_start_matches("rustc ").to_owned();
    let revision = revision(root);
    let row = |sample: &Sample| TimingRow {
        date: date.clone(),
        machine: machine.clone(),
        cpu: cpu.clone(),
        os: os.clone(),
        rustc: rustc.clone(),
        revision: revision.clone(),
        subject: sample.subject,
        engine: sample.engine.clone(),
        tools: sample.tools,
        unit: sample.unit,
        runs: sample.runs,
        median: round3(sample.median),
        p95: round3(sample.p95),
        p99: round3(sample.p99),
        mad: round3(sample.mad),
    };
    samples.iter().map(row).collect()
}

/// `name`, or what this machine is called without one: its architecture and cores.
#[must_use]
pub fn name(name: Option<&str>) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    name.map_or_else(|| format!("{}-{cores}core", std::env::consts::ARCH), str::to_owned)
}

/// The revision of the checkout at `root`, `-dirty` with uncommitted changes.
#[must_use]
pub fn revision(root: &Path) -> String {
    output("git", &["-C", root.to_string_lossy().as_ref(), "describe", "--always", "--dirty", "--abbrev=12"])
}

/// Whether nothing can have been recorded on `day` yet: it is later than tomorrow by the clock, and by the last commit of
/// the checkout at `root`, which a machine with a clock that is slow has all the same.
#[must_use]
pub fn is_to_come(day: &Day, root: &Path) -> bool {
    let committed = || {
        let seconds = output("git", &["-C", root.to_string_lossy().as_ref(), "log", "-1", "--format=%ct"]);
        Day::after_seconds(seconds.parse().ok()?)
    };
    *day > Day::tomorrow() && committed().is_none_or(|last| *day > last)
}

fn round3(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// The value of the first `key<separator>value` line of a system file.
fn proc_line(path: &str, key: &str, separator: char) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut values = text.lines().filter(|line| line.starts_with(key)).filter_map(|line| line.split_once(separator));
    values.next().map_or("unknown".to_owned(), |(_, value)| value.trim().trim_matches('"').to_owned())
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success());
    output.map_or("unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::timing::{Subject, Unit};
    use super::*;

    #[test]
    fn rows_are_of_the_day_of_the_build_environment() {
        const VARIABLE: &str = "SOURCE_DATE_EPOCH";
        if std::env::var(VARIABLE).as_deref() != Ok("1769817600") {
            // A process has one environment for all of its tests, so the test is run again in one of its own.
            let mut again = Command::new(std::env::current_exe().unwrap());
            again.args(["--exact", "eval::machine::tests::rows_are_of_the_day_of_the_build_environment"]);
            let output = again.env(VARIABLE, "1769817600").output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        let sample = Sample {
            subject: Subject::Search,
            engine: None,
            tools: None,
            unit: Unit::Microseconds,
            runs: 1,
            median: 1.0,
            p95: 1.0,
            p99: 1.0,
            mad: 0.0,
        };
        let rows = rows(&[sample], Some("desk"), Path::new("/"));
        assert_eq!(rows[0].date.to_string(), "2026-01-31");
    }
}
