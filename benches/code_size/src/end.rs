//! The exit code of the programs: their result, or a failure with the message of an error.

use std::{fmt::Display, process::ExitCode};

pub fn end(answer: Result<bool, impl Display>) -> ExitCode {
    match answer {
        Ok(found) => ExitCode::from(u8::from(found)),
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
