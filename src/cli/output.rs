//! Standard output, whose reader may leave before the end (`| head`).
//!
//! What a command does and how it ends hangs on what it finds, and not on whether somebody reads all of it: a gate that
//! failed has failed. So what is written for nobody counts as written.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the reader was missed; standard output is one for the whole process.
static READER_HAS_GONE: AtomicBool = AtomicBool::new(false);

/// Standard output. When its reader has gone, the rest goes nowhere.
#[derive(Debug)]
pub(crate) struct Output(io::Stdout);

impl Output {
    /// That of this process.
    pub(crate) fn new() -> Self {
        Self(io::stdout())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        read_or_not(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        read_or_not(self.0.flush(), ())
    }
}

/// What was done, or `instead` where the reader has gone.
pub(super) fn read_or_not<T>(done: io::Result<T>, instead: T) -> io::Result<T> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            READER_HAS_GONE.store(true, Ordering::Relaxed);
            Ok(instead)
        }
        done => done,
    }
}

/// Whether something was written that nobody reads: a command that writes without end has a reason to end.
pub(super) fn reader_has_gone() -> bool {
    READER_HAS_GONE.load(Ordering::Relaxed)
}
