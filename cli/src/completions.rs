//! `koel completions`

use std::process::ExitCode;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::{Cli, terminal};

/// Print a completion script for a shell.
///
/// With it, the shell completes commands, options, their values and file names. bash loads it from
/// ~/.local/share/bash-completion/completions/koel, zsh from _koel in a folder of $fpath, fish from
/// ~/.config/fish/completions/koel.fish; elvish and PowerShell evaluate it in their profiles.
#[derive(Args)]
#[command(after_help = "\
Examples:
    koel completions bash > koel
    koel completions zsh > _koel
    koel completions fish > koel.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "koel", &mut script);
        terminal::print(&String::from_utf8_lossy(&script))?;
        Ok(ExitCode::SUCCESS)
    }
}
