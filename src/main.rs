//! The `contextweaver` command: parse, run, print the error chain, exit code.

use std::io::{self, Write};
use std::process::ExitCode;

mod cli;

fn main() -> ExitCode {
    // Not locked: a server writes its answers from another thread.
    let mut stdout = io::BufWriter::new(io::stdout());
    let outcome = cli::run(std::env::args_os(), &mut stdout).and_then(|outcome| {
        stdout.flush()?;
        Ok(outcome)
    });
    match outcome {
        Ok(outcome) => outcome.into(),
        // The reader has gone (`| head`): nothing is left to say, and nothing failed.
        Err(error) if cli::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error may be closed as well; the exit code still tells.
            cli::report(&error, std::env::args_os());
            ExitCode::from(2)
        }
    }
}
