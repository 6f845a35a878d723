//! `shoal-demo [--keep]`: the demo; `make demo` builds what it needs and runs it. See [`shoal_tests::demo`].

use std::process::ExitCode;

use shoal_tests::demo::{self, Screen};

fn main() -> ExitCode {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let keep = std::env::args().skip(1).any(|arg| arg == "--keep");
    demo::main(&Screen::stdout(!no_color), keep)
}
