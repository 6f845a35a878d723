#!/usr/bin/env bash
# demo.sh [--keep]: builds what is missing, then runs the demo. However it ends, its last line says how.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}

fail() {
    echo "demo: failed $1"
    exit 1
}

tests/control-plane/build.sh || fail "the real programs do not build; the lines above say why"
[ -x "$target/debug/shoal-demo" ] || echo "demo: building Shoal (the first time takes about four minutes on two cores)"
# All of the workspace, so that its dependencies are built once for the demo and the tests.
cargo build --workspace --bin shoal-proxy --bin shoal-controller --bin shoal --bin shoal-supervise --bin shoal-demo ||
    fail "Shoal does not build; the lines above are cargo's"
exec "$target/debug/shoal-demo" "$@"
