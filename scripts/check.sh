#!/usr/bin/env bash
# check.sh PRESET...: builds each preset and runs all its tests. Ends with the line "N passed, M failed".
#
# A failing test does not keep the other presets from running; a failing build ends the check.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

stop() {
    echo "check: $*" >&2
    exit 1
}

# Newer kernels spread addresses wider than g++ 12's ThreadSanitizer can stand; then run without.
prefix_of() {
    local bits
    bits="$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)"
    [ "$1" = tsan ] && [ "$bits" -gt 28 ] && setarch -R true 2>/dev/null && echo "setarch -R"
}

# Where undefined behaviour was met is shown; see cmake/warnings.cmake.
export ASAN_OPTIONS="handle_sigill=1:handle_sigtrap=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"

# On aarch64 the leak check of g++ 12 takes some 4 seconds at the end of every process, an empty one too, and
# tests start hundreds. ASAN_OPTIONS=detect_leaks=1 has it all the same.
if [ "$(uname -m)" = aarch64 ] && [[ " $* " == *" asan "* ]]; then
    ASAN_OPTIONS="detect_leaks=0:$ASAN_OPTIONS"
    echo "asan on aarch64: ASAN_OPTIONS=$ASAN_OPTIONS"
fi

# Tests start processes that spin: more at a time would miss deadlines. Some run alone; see tests/CMakeLists.txt.
test_jobs=2

# count REPORT RESULTS: sets good, bad and skipped to how many tests of ctest's REPORT ended so. Those that are whole suites
# have left a file of their name in RESULTS (see tests/suites.cmake), unless they crashed or were killed.
count() {
    local name status file text tests failures skips
    local suite='<testsuite [^>]* tests="([0-9]+)" failures="([0-9]+)" disabled="[0-9]+" skipped="([0-9]+)"'
    good=0 bad=0 skipped=0
    while IFS=$'\t' read -r name status; do
        tests=1 failures=0 skips=0
        file="$2/${name//[^A-Za-z0-9_]/_}.xml"
        if [ -s "$file" ]; then
            text="$(<"$file")"
            [[ "$text" =~ $suite ]] || stop "$file does not say how many tests there were"
            tests="${BASH_REMATCH[1]}" failures="${BASH_REMATCH[2]}" skips="${BASH_REMATCH[3]}"
        fi
        case "$status" in
        run) ;;
        fail)
            # Leaks are found at a process's end, when all TESTs have passed.
            [ ! -s "$file" ] || [ "$failures" -gt 0 ] || tests=$((tests + 1))
            [ "$failures" -gt 0 ] || failures=1
            ;;
        *) skips="$tests" ;;
        esac
        bad=$((bad + failures))
        skipped=$((skipped + skips))
        good=$((good + tests - failures - skips))
    done < <(sed -n 's/.*<testcase name="\([^"]*\)".* status="\([a-z]*\)".*/\1\t\2/p' "$1")
}

passed=0
failed=0
table="$(printf '%-10s %8s %8s %8s %10s' preset passed failed skipped seconds)"
for preset in "$@"; do
    read -ra prefix < <(prefix_of "$preset"; echo)
    echo "== $preset: build"
    cmake --preset "$preset" -DKUMI_TESTS=ON >/dev/null || stop "configuring $preset failed, see above"
    "${prefix[@]}" cmake --build "build/$preset" ${JOBS:+-j "$JOBS"} || stop "building $preset failed, see above"

    echo "== $preset: test"
    report="$PWD/build/$preset/tests.xml"
    results="$PWD/build/$preset/tests/results"
    rm -rf "$report" "$results"
    start=$SECONDS
    "${prefix[@]}" ctest --test-dir "build/$preset" --progress --output-on-failure --no-tests=error -j "$test_jobs" \
        --output-junit "$report"
    status=$?
    seconds=$((SECONDS - start))

    [ -s "$report" ] || stop "ctest ended with $status in $preset and left no report"
    count "$report" "$results"
    [ $((good + bad + skipped)) -gt 0 ] || stop "$report names no tests"
    # What ctest finds wrong besides tests must not pass for success.
    [ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || stop "ctest ended with $status in $preset though no test failed"
    passed=$((passed + good))
    failed=$((failed + bad))
    table+="$(printf '\n%-10s %8d %8d %8d %10d' "$preset" "$good" "$bad" "$skipped" "$seconds")"
done

printf '\n%s\n\n%d passed, %d failed\n' "$table" "$passed" "$failed"
[ "$failed" -eq 0 ]
