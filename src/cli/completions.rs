//! `completions`: what a shell completes command lines with, and the manual pages, from the very definition of the commands.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Command;
use clap_complete::Shell;

use super::Outcome;

/// Print a completion script for a shell, or write the manual pages
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  contextweaver completions bash > ~/.local/share/bash-completion/completions/contextweaver
  contextweaver completions zsh > ~/.zfunc/_contextweaver
  contextweaver completions --man ~/.local/share/man/man1")]
pub(super) struct Args {
    /// The shell
    #[arg(value_enum, required_unless_present = "man")]
    shell: Option<Shell>,
    /// Write a manual page for every command into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "shell")]
    man: Option<PathBuf>,
}

pub(super) fn run(args: &Args, command: &mut Command, out: &mut dyn Write) -> Result<Outcome> {
    match (&args.shell, &args.man) {
        (Some(shell), _) => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, command, "contextweaver", &mut script);
            out.write_all(&script)?;
        }
        (None, Some(folder)) => {
            if folder.is_file() {
                bail!("--man {}: it is a file; name a folder", folder.display());
            }
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
            clap_mangen::generate_to(command.clone(), folder).with_context(|| folder.display().to_string())?;
            writeln!(out, "manual pages are in {}", folder.display())?;
        }
        (None, None) => bail!("name a shell, or give --man"),
    }
    Ok(Outcome::Ok)
}
