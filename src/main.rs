//! The `contextweaver` command: parse, run, print the error chain, exit code.

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;

mod cli;

// That of musl makes static binaries slow.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Not locked: a server writes its answers from another thread.
    let out = cli::Output::new();
    // On a terminal, lines stand in the order in which they and the notes between them were written.
    let mut stdout: Box<dyn Write> = match io::stdout().is_terminal() {
        true => Box::new(io::LineWriter::new(out)),
        false => Box::new(io::BufWriter::new(out)),
    };
    let outcome = cli::run(std::env::args_os(), &mut stdout).and_then(|outcome| {
        stdout.flush()?;
        Ok(outcome)
    });
    // A hook may be at work for a thread that nobody waits for any more.
    contextweaver_context::hooks::end_programs();
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            // Standard error may be closed as well; the exit code still tells.
            cli::report(&error, std::env::args_os());
            ExitCode::from(2)
        }
    }
}
