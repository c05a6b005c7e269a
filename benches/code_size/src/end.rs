//! Turns the result of a program into its exit code, and prints the error if there is one.

use std::{fmt::Display, process::ExitCode};

pub fn end(result: Result<bool, impl Display>) -> ExitCode {
    match result {
        Ok(found) => ExitCode::from(u8::from(found)),
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
