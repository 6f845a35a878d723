//! The witness owes the product nothing: no crate of it, nor its slot hash, is in the judge's dependency tree.

#![cfg(test)]

use std::process::Command;

#[test]
fn no_product_crate_is_in_the_dependency_tree() {
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--package",
            "shoal-judge",
            "--edges",
            "all",
            "--all-features",
            "--prefix",
            "none",
            "--locked",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    let crates: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(crates.contains(&"twox-hash"), "not the judge's tree: {tree}");
    let forbidden =
        |name: &&&str| name.starts_with("shoal") && **name != "shoal-judge" || **name == "xxhash-rust";
    let found: Vec<_> = crates.iter().filter(forbidden).collect();
    assert!(found.is_empty(), "the judge depends on {found:?}");
}
