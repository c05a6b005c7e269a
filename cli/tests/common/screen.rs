//! A terminal for the command, and what is on its screen.

use std::{
    fs::File,
    io::{ErrorKind, Read as _},
    num::NonZero,
    os::fd::OwnedFd,
    process::{Child, Command},
};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use super::Koel;

const ROWS: NonZero<u16> = NonZero::new(24).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(60).unwrap();

/// A command whose three streams are a terminal.
pub(crate) struct Terminal {
    pub(crate) child: Child,
    ours: File,
    /// All that was written.
    written: Vec<u8>,
}

impl Terminal {
    /// Runs a line in a shell, as [`Koel::shell`] does.
    pub(crate) fn start(koel: &Koel, script: &str) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("a terminal");
        let name = ptsname(&ours, Vec::new()).expect("its name");
        let theirs: OwnedFd = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("a terminal");
        tcsetwinsize(&theirs, Winsize { ws_row: ROWS.get(), ws_col: COLUMNS.get(), ws_xpixel: 0, ws_ypixel: 0 })
            .expect("its size");
        let stream = || theirs.try_clone().expect("a descriptor");
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).env("TERM", "xterm").env("PATH", super::search_path()).current_dir(koel.0.path());
        let child = shell.stdin(stream()).stdout(stream()).stderr(stream()).spawn().expect("a process");
        Self { child, ours: ours.into(), written: Vec::new() }
    }

    /// Reads until this text was written.
    pub(crate) fn read_until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.written).contains(text) {
            assert!(self.read(), "no \"{text}\" in: {:?}", String::from_utf8_lossy(&self.written));
        }
    }

    /// Reads more. Returns `false` at the end: the command has ended.
    fn read(&mut self) -> bool {
        let mut piece = [0; 4096];
        match self.ours.read(&mut piece) {
            Ok(0) => false,
            Ok(read) => {
                self.written.extend(&piece[..read]);
                true
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            // Linux reports the end of a terminal's other side as an error.
            Err(_) => false,
        }
    }

    /// Waits for the end. Returns the lines on the screen, without empty ones, and all that was ever written.
    pub(crate) fn finish(mut self) -> (Vec<String>, String) {
        while self.read() {}
        self.child.wait().expect("its end");
        (screen(&self.written), String::from_utf8_lossy(&self.written).into_owned())
    }
}

/// Returns the lines that a terminal shows after it has received these bytes, without empty ones.
fn screen(bytes: &[u8]) -> Vec<String> {
    let mut terminal = vt100::Parser::new(ROWS, COLUMNS, 0);
    terminal.process(bytes);
    let text = terminal.screen().contents();
    text.lines().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}
