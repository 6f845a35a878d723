#!/usr/bin/env bash
# run.sh all | fast | faults | node: runs cargo's tests, shows what they print, and closes with the runner's own result
# lines and their sum, `N passed, N failed`, alone on the last line and in target/test-summary.
#
# faults runs what goes wrong on the wire, and shows what the tests print: the fault matrix and their counts.
#
# node runs the tests on a real kubelet in a box of its own, or says in one line why it can't and ends well; with
# SHOAL_REQUIRE_NODE=1 that is a failure, and all runs them too.
#
# fast leaves out the tests of this crate that start real programs. A test that starts none says so in the first lines
# of its file, or of its folder's main.rs ("No control plane is needed"); one that forgets to is merely not run here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
log=target/test.log
summary=target/test-summary
mkdir -p target
rm -f "$summary"
: >"$log"

failed=0
# Adds to the log; the next run of cargo goes on after a failed one, so that the sum is of everything.
run() {
    echo "+ $*"
    "$@" 2>&1 | tee -a "$log" || failed=1
}

fast_targets() {
    local file
    for file in $(grep -l 'No control plane is needed' tests/tests/*.rs tests/tests/*/main.rs); do
        echo "--test=$(basename "${file%/main.rs}" .rs)"
    done
}

# Connections that end in the middle of something, on either side; bodies that are slow, cut, wrong or as large as they
# get; clients that mean harm; informers through it all; files that go or change while a proxy runs; and its own end.
fault_targets() {
    local name
    for name in faults connections streaming hostile large_objects informers operations drain; do
        if [ -e "tests/tests/$name.rs" ] || [ -e "tests/tests/$name/main.rs" ]; then
            echo "--test=$name"
        fi
    done
}

# The tests are built before the box is entered, from where no network is reached.
node() {
    local reason test
    reason=$(tests/node.sh missing)
    if [ -n "$reason" ]; then
        if [ "${SHOAL_REQUIRE_NODE:-}" != 1 ]; then
            echo "SKIPPED: test-node: $reason"
            exit 0
        fi
        echo "test result: FAILED. 0 passed; 1 failed; the tests on a real node: $reason" | tee -a "$log"
        failed=1
        return
    fi
    tests/control-plane/build.sh
    tests/control-plane/build.sh node
    # With the test, so that both are built with the same features as in `all`.
    cargo build --workspace --bins --test node
    test=$(cargo test --workspace --test node --no-run 2>&1 | sed -n 's/^ *Executable .*(\(.*\))$/\1/p')
    # One after the other, on one cluster.
    run tests/node.sh run "$test" --ignored --test-threads=1
}

case ${1:-} in
all)
    # Cargo builds the programs of a package for that package's tests only.
    # With the tests, so that both are built with the same features, hence once.
    cargo build --workspace --bins --tests
    run cargo test --workspace --no-fail-fast
    if [ "${SHOAL_REQUIRE_NODE:-}" = 1 ]; then
        node
    else
        echo "SKIPPED: test-node: not a part of make test; run make test-node where there is root and cgroup v1"
    fi
    ;;
node) node ;;
fast)
    cargo build -p shoal-proxy -p shoal-judge --bins
    run cargo test --workspace --exclude shoal-tests --no-fail-fast
    # shellcheck disable=SC2046
    run cargo test -p shoal-tests --no-fail-fast --lib --bins $(fast_targets)
    ;;
faults)
    cargo build -p shoal-proxy -p shoal-judge --bins
    # One after the other, so that each table stays in one piece.
    # shellcheck disable=SC2046
    run cargo test -p shoal-tests --no-fail-fast $(fault_targets) -- --nocapture --test-threads=1
    ;;
*)
    echo "usage: $0 all|fast|faults|node" >&2
    exit 2
    ;;
esac

echo
grep -E '^test result:|^test .* \.\.\. FAILED$' "$log" || true
awk '/^test result:/ { passed += $4; failed += $6 } END { print passed + 0 " passed, " failed + 0 " failed" }' "$log" |
    tee "$summary"
exit $failed
