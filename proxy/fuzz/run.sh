#!/usr/bin/env bash
# Runs every fuzz target, one a core at a time: run.sh CARGO_FUZZ SECONDS
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

# One line: what became of a target.
fuzz_one() {
    local target=$1 corpus=$out/corpus/$1 log=$out/$1.log
    mkdir -p "$corpus"
    if "${fuzz[@]}" run "${options[@]}" "$target" "$corpus" "fuzz/seeds/$target" -- \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 >"$log" 2>&1; then
        echo "ok      $target: $(sed -n 's/^Done //p' "$log")"
    else
        echo "FAILED  $target: $(grep -m 1 -E 'panicked|ERROR' "$log" || echo 'no run'); see $(realpath "$log")"
    fi
}

summary=$out/summary
: >"$summary"
for target in $("${fuzz[@]}" list); do
    # As many at once as there are cores.
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
    fuzz_one "$target" | tee -a "$summary" &
done
wait
passed=$(grep -c ^ok "$summary" || true) failed=$(grep -c ^FAILED "$summary" || true)
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
