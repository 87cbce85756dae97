//! What the measurements between processes have in common.

use std::process::Child;
use std::time::Duration;

/// Ends the process when dropped.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Resident memory of a process, without its children, in MiB.
pub(crate) fn resident(id: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}

/// The time below which this share of the samples is, in µs; the samples are then in order.
pub(crate) fn quantile(samples: &mut [Duration], share: f64) -> f64 {
    samples.sort_unstable();
    let at = ((samples.len() as f64 * share) as usize).min(samples.len().saturating_sub(1));
    samples.get(at).map_or(f64::NAN, |sample| sample.as_secs_f64() * 1e6)
}
