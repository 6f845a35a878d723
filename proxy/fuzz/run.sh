#!/usr/bin/env bash
# Runs every fuzz target, one after the other: run.sh CARGO_FUZZ SECONDS
#
# Inputs that broke a target stay in proxy/fuzz/artifacts/TARGET/; what is learned about the parsers stays in
# target/fuzz/corpus/. The stable toolchain has no sanitizers; the parsers have no unsafe code that would need them.
set -euo pipefail
cargo_fuzz=$(realpath "$1")
seconds=$2
cd "$(dirname "$0")/.."
out=../target/fuzz
fuzz=("$cargo_fuzz" fuzz)
options=(--sanitizer none --target-dir "$out")

"${fuzz[@]}" build "${options[@]}"
passed=0 failed=0
for target in $("${fuzz[@]}" list); do
    corpus=$out/corpus/$target log=$out/$target.log
    mkdir -p "$corpus"
    if "${fuzz[@]}" run "${options[@]}" "$target" "$corpus" "fuzz/seeds/$target" -- \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 >"$log" 2>&1; then
        passed=$((passed + 1))
        echo "ok      $target: $(sed -n 's/^Done //p' "$log")"
    else
        failed=$((failed + 1))
        echo "FAILED  $target: $(grep -m 1 -E 'panicked|ERROR' "$log" || echo 'no run'); see $(realpath "$log")"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
