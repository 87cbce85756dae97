//! The `contextweaver` command: parse, run, print the error chain, exit code.

use std::io::{self, Write};
use std::process::ExitCode;

mod cli;

// That of musl makes static binaries slow.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Not locked: a server writes its answers from another thread.
    let mut stdout = io::BufWriter::new(cli::Output::new());
    let outcome = cli::run(std::env::args_os(), &mut stdout).and_then(|outcome| {
        stdout.flush()?;
        Ok(outcome)
    });
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            // Standard error may be closed as well; the exit code still tells.
            cli::report(&error, std::env::args_os());
            ExitCode::from(2)
        }
    }
}
