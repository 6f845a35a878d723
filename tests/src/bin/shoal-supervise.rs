//! `shoal-supervise PROGRAM [ARG...]`: runs a program for as long as stdin is open; see [`shoal_tests::supervise`].

use std::ffi::OsString;

fn main() {
    let command: Vec<OsString> = std::env::args_os().skip(1).collect();
    std::process::exit(shoal_tests::supervise::supervise(&command));
}
