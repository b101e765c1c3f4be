#!/usr/bin/env bash
# fuzz.sh SECONDS: every fuzzer explores new inputs for SECONDS. The script ends at the first failure and prints how to
# reproduce it. `make fuzz` and `make soak` build the fuzzers first.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

log="$PWD/build/fuzz/log"
for entry in "fuzz_packets corpus" "fuzz_seal seal_corpus" "fuzz_engine engine_corpus" "fuzz_group group_corpus"; do
    read -r name corpus <<<"$entry"
    mkdir -p "build/fuzz/$corpus"
    if ! (cd build/fuzz && "tests/fuzz/$name" -max_total_time="$1" -timeout=20 -max_len=4096 \
        "$corpus" "../../tests/fuzz/$corpus") >"$log" 2>&1; then
        tail -30 "$log"
        echo "fuzz: $name found something wrong;" \
            "build/fuzz/crash-* runs again with build/fuzz/tests/fuzz/$name FILE" >&2
        exit 1
    fi
    printf '%-20s %s\n' "$name" "$(sed -n 's/^Done \([0-9]*\) runs in \([0-9]*\) second.*/\1 inputs in \2 s/p' "$log")"
done
