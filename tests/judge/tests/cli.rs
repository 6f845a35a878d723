//! The program: exit status and forms of the report.

#![cfg(test)]

use std::process::{Command, Output};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");

fn judge(audit: &str, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_shoal-judge"))
        .current_dir(FIXTURES)
        .args(["--audit", audit, "--ring", "ring.yaml", "--map", "map-2.yaml", "--asked", "asked.jsonl"])
        .args([
            "--writer",
            "system:kube-controller-manager",
            "--writer",
            "system:serviceaccount:kube-system:*",
        ])
        .args(more)
        .output()
        .unwrap()
}

fn last_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn clean_is_0_and_ends_in_one_line() {
    let output = judge("hub=clean.jsonl", &[]);
    assert_eq!(output.status.code(), Some(0));
    let line = "judge: clean lines=22 writes=8 lane=7 unsharded=1 dry_run=1 refused=1 foreign=0 late=0 unasked=0 evidence=0";
    assert_eq!(last_line(&output.stdout), line);
}

#[test]
fn a_finding_is_1_and_names_its_line() {
    let output = judge("hub=forged/WrongEpoch.jsonl", &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("WrongEpoch hub:3 (3f9a1c"), "{text}");
}

#[test]
fn several_logs_add_up() {
    let output = judge("hub=clean.jsonl", &["--audit", "member-a=forged/EmptyLog.jsonl", "-o", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["reasons"], serde_json::json!({"EmptyLog": 1}));
    assert_eq!(report["findings"][0]["cluster"], "member-a");
    assert_eq!(report["judged"], 8);
}

#[test]
fn unusable_input_is_2() {
    for (audit, more) in [
        ("clean.jsonl", vec![]),
        ("hub=no-such-file", vec![]),
        ("hub=clean.jsonl", vec!["--map", "no-such-file"]),
        ("hub=clean.jsonl", vec!["--map", "clean.jsonl"]),
        ("hub=clean.jsonl", vec!["-o", "xml"]),
    ] {
        let output = judge(audit, &more);
        assert_eq!(output.status.code(), Some(2), "{audit} {more:?}");
        assert!(!output.stderr.is_empty(), "{audit} {more:?}");
    }
}
