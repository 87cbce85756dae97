//! Reading a file again while something is served.

use std::time::Duration;

use anyhow::{Result, anyhow};

/// How long that may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// What `read` gives, which reads `what` on another thread. A file may be slow, or a pipe that nobody writes into: the next
/// signal is heeded all the same. The thread is not waited for any more.
///
/// # Errors
/// Those of `read`, or it took longer than `patience`.
pub(super) async fn read_again<T: Send + 'static>(
    what: &str,
    patience: Duration,
    read: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let reading = tokio::time::timeout(patience, tokio::task::spawn_blocking(read)).await;
    reading.map_err(|_| anyhow!("{what}: not read within {} s", patience.as_secs_f64()))??
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_file_that_nobody_writes_is_not_waited_for() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let short = Duration::from_millis(50);
        // Ends the thread that reads.
        let (written, waits) = channel::<()>();
        let never = move || {
            let _ = waits.recv();
            Ok(())
        };
        let late = runtime.block_on(read_again("gateway.yaml", short, never)).unwrap_err().to_string();
        assert_eq!(late, "gateway.yaml: not read within 0.05 s");
        drop(written);
        assert_eq!(runtime.block_on(read_again("x", PATIENCE, || Ok(7))).unwrap(), 7);
        let wrong = runtime.block_on(read_again("x", PATIENCE, || Err::<(), _>(anyhow!("wrong")))).unwrap_err();
        assert_eq!(wrong.to_string(), "wrong");
    }
}
