#!/usr/bin/env bash
# soak.sh MINUTES: runs random tests with new seeds, fuzzers with new inputs, and random jobs, for about MINUTES.
#
# A third of the time goes to fuzzing, a third to rounds over all tests that take seeds, a third to whole jobs
# (scripts/soak-jobs.sh). The script ends at the first failure and prints how to reproduce it. Every run explores
# something else. So it is run by hand, and no part of `make check`, whose result must not depend on luck.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

minutes="$1"
[[ "$minutes" =~ ^[1-9][0-9]*$ ]] || { echo "soak: MINUTES=$minutes: write a whole number, 1 or more" >&2; exit 2; }
end=$((SECONDS + minutes * 40))
tests=build/release/tests
log=build/soak.log
seed="$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')"

# The tests that take seeds: "PROGRAM FILTER".
seeded=(
    "simulation_tests *"
    "unit_tests Barriers.*:Set.*:Archive.*:FreeRanges.*"
    "engine_tests OneThread.*"
    "group_tests *InOneThread*:*RandomGroups*"
    "conformance_tests *"
    "cluster_tests Failover.links_that_come_and_go_at_random_lose_nothing"
)

scripts/fuzz.sh $((minutes * 60 / 12)) || exit 1

round=0
while [ $SECONDS -lt $end ]; do
    round=$((round + 1))
    for entry in "${seeded[@]}"; do
        [ $SECONDS -lt $end ] || break
        read -r program filter <<<"$entry"
        if ! KUMI_FIRST_SEED="$seed" "$tests/$program" --gtest_filter="$filter" --gtest_brief=1 >"$log" 2>&1; then
            grep -v '^\[ *SKIPPED' "$log" | tail -40
            echo "soak: $program failed; again: KUMI_FIRST_SEED=$seed $tests/$program --gtest_filter='$filter'" >&2
            exit 1
        fi
        if grep -q ' 0 tests from 0 test suites' "$log"; then
            echo "soak: $program has no tests called $filter" >&2
            exit 1
        fi
        ran="$(sed -n 's/^\[==========\] \(.*\) ran.*/\1/p' "$log")"
        printf '%-20s seeds from %s on: %s\n' "$program" "$seed" "$ran"
    done
    seed=$((seed + 1000000))
done
scripts/soak-jobs.sh $(((minutes + 2) / 3)) || exit 1
echo "soak: $round rounds and all fuzzers in $minutes minutes, nothing found"
