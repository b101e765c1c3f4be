#!/usr/bin/env bash
# soak-jobs.sh MINUTES: runs random jobs of real processes for about MINUTES: over shared memory, over UDP that loses
# packets, and in a lab with cables that are cut. tests/cluster/soak.test.cpp is one round; tests/soak has what its
# nodes do.
#
# Nodes leave, die and stop at random moments. A round fails if a node gets a wrong answer, or an error that no loss
# explains; if it hangs; if a node grows; if something is left behind. The script ends at the first failure and prints
# the command that repeats the round.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

minutes="${1:-}"
[[ "$minutes" =~ ^[1-9][0-9]*$ ]] || { echo "soak: MINUTES=$minutes: write a whole number, 1 or more" >&2; exit 2; }
end=$((SECONDS + minutes * 60))
program=build/release/tests/cluster_tests
log=build/soak-jobs.log
worlds=(over_shared_memory over_udp in_a_lab)
# By kind of round, "EPOCHS STEPS SECONDS_MAX": many short jobs, some that go on for longer, where growth shows.
lengths=("4 8 180" "10 20 300" "40 20 600")
seed="$(od -An -N5 -tu8 /dev/urandom | tr -d ' ')"

# What a round must not leave behind. Other tests may run on this machine: what is young may be theirs.
left_behind() { find /dev/shm /tmp -maxdepth 1 -name 'kumi*' -mmin +10 2>/dev/null | sort; }

before="$(left_behind)"
rounds=0
skipped=0
while [ $SECONDS -lt $end ]; do
    world="${worlds[rounds % 3]}"
    read -r epochs steps seconds <<<"${lengths[rounds / 3 % 3]}"
    again="KUMI_SEED=$seed KUMI_SOAK_EPOCHS=$epochs KUMI_SOAK_STEPS=$steps KUMI_SOAK_SECONDS=$seconds"
    again="$again $program --gtest_filter='Soak.$world*'"
    begin=$SECONDS
    if ! KUMI_SEED="$seed" KUMI_SOAK_EPOCHS="$epochs" KUMI_SOAK_STEPS="$steps" KUMI_SOAK_SECONDS="$seconds" \
        "$program" --gtest_filter="Soak.$world*" --gtest_brief=1 >"$log" 2>&1; then
        tail -n 300 "$log"
        echo "soak: round $((rounds + 1)) failed, all of its output is in $log; again: $again" >&2
        exit 1
    fi
    if grep -q ' 0 tests from 0 test suites' "$log"; then
        echo "soak: $program has no tests called Soak.$world*" >&2
        exit 1
    fi
    note=""
    if grep -q '^\[ *SKIPPED' "$log"; then
        note=": skipped, this machine has no namespaces for it"
        skipped=$((skipped + 1))
    fi
    printf 'round %-4s %-20s seed %-14s %3s s%s\n' $((rounds + 1)) "$world" "$seed" $((SECONDS - begin)) "$note"
    rounds=$((rounds + 1))
    seed=$((seed + 1))
done
if [ "$(left_behind)" != "$before" ]; then
    echo "soak: left behind in /dev/shm or /tmp:" >&2
    diff <(echo "$before") <(left_behind) >&2
    exit 1
fi
echo "soak: $rounds jobs in $minutes minutes, $skipped of them skipped, nothing found"
