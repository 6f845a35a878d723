//! The golden table that `shoal-proxy` reads requests by is what the API server's own code answers today.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the requests and of the answers.
const TESTDATA: &str = "proxy/src/request/testdata";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn the_golden_table_is_what_the_api_server_answers_today() {
    let program = workspace().join("target/control-plane/bin/requestinfo");
    assert!(program.exists(), "{} is missing: run `make control-plane`", program.display());

    let testdata = workspace().join(TESTDATA);
    let requests = File::open(testdata.join("requests.txt")).unwrap();
    let output = Command::new(&program).stdin(requests).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let answers = String::from_utf8(output.stdout).unwrap();
    let golden = fs::read_to_string(testdata.join("requestinfo.golden.jsonl")).unwrap();
    for (today, committed) in answers.lines().zip(golden.lines()) {
        assert_eq!(
            today, committed,
            "the API server's reading changed; requests.txt says how to make the table anew"
        );
    }
    assert_eq!(
        answers.lines().count(),
        golden.lines().count(),
        "requests.txt says how to make the table anew"
    );
}
