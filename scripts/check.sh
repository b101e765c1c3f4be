#!/usr/bin/env bash
# check.sh PRESET...: builds each preset and runs all its tests. Ends with the line "N passed, M failed".
#
# The presets are those of CMakePresets.json. The preset clang only compiles. "cross" stands for scripts/cross.sh. After
# a failed test the check goes on with the next preset; a failed build ends the check. More skipped tests than
# tests/skips.txt allows are a failure.
#
# Many tests have deadlines, and may miss them on a machine that is busy with something else. So a test that has found
# a wrong result runs once more, alone. If it passes then, it is listed as unsteady and counts as passed; more than
# unsteady_max of them in a preset are a failure. A test that crashed, or did not end, or in which a sanitizer found
# something, has failed for good.
#
# The last lines list the slowest tests and objects, the time of each part beside its budget (tests/budgets.txt), the
# unsteady tests, and the failed ones.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

stop() {
    echo "check: $*" >&2
    exit 1
}

# prefix_of PRESET: the command that must run the programs of PRESET, if any. Newer kernels randomise more bits of
# addresses than the ThreadSanitizer of g++ 12 supports; there its programs run without randomisation.
prefix_of() {
    local bits
    bits="$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)"
    [ "$1" = tsan ] && [ "$bits" -gt 28 ] && setarch -R true 2>/dev/null && echo "setarch -R"
}

# AddressSanitizer shows the place of undefined behaviour; see cmake/warnings.cmake.
export ASAN_OPTIONS="handle_sigill=1:handle_sigtrap=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"

# On aarch64 the leak check takes some 3 seconds at the end of every process, even of an empty one, and the tests start
# hundreds of processes. So the leak check is off there; ASAN_OPTIONS=detect_leaks=1 turns it on.
if [ "$(uname -m)" = aarch64 ] && [[ " $* " == *" asan "* ]]; then
    ASAN_OPTIONS="detect_leaks=0:$ASAN_OPTIONS"
    echo "asan on aarch64: ASAN_OPTIONS=$ASAN_OPTIONS"
fi

# How many tests run at a time. Tests wait more than they compute, but they start processes that spin: with more tests
# at a time some would miss their deadlines. Some tests run alone; see tests/CMakeLists.txt.
test_jobs=3

# How many tests of a preset may fail beside others and pass alone.
unsteady_max=3

# ccache is used where it is installed.
launcher=()
! command -v ccache >/dev/null || launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)

# ---- how tests ended

# entries_of REPORT: prints "NAME<tab>STATUS" for every entry of ctest's REPORT. An entry that REPORT.unsteady names has
# passed.
entries_of() {
    sed -n 's/.*<testcase name="\([^"]*\)".* status="\([a-z]*\)".*/\1\t\2/p' "$1" |
        awk -F '\t' -v unsteady="$1.unsteady" '
            BEGIN { while ((getline name < unsteady) > 0) passed[name] = 1 }
            { print $1 "\t" ($1 in passed ? "run" : $2) }'
}

# output_of REPORT NAME: prints what the entry NAME of ctest's REPORT has printed.
output_of() {
    awk -v entry="name=\"$2\"" '
        index($0, entry) { is_in = 1 }
        is_in { print }
        /<\/testcase>/ { is_in = 0 }' "$1"
}

# may_be_unsteady REPORT NAME: true if the entry NAME of REPORT ended by itself, with a wrong result. A process of tests
# that failed though none of its tests did has crashed: a test that captures what is printed also captures the report of
# a sanitizer.
may_be_unsteady() {
    # ctest's message names the signal, or is "Timeout".
    output_of "$1" "$2" | awk '
        /<failure message=""/ { failed = 1 }
        /Sanitizer/ { bad = 1 }
        /\[ RUN / { has_tests = 1 }
        /\[  FAILED  \]/ { wrong = 1 }
        END { exit !failed || bad || (has_tests && !wrong) }'
}

# try_again PRESET REPORT: runs entries of REPORT that may be unsteady once more, alone, and writes the names of those
# that pass to REPORT.unsteady.
try_again() {
    local name status again="$2.again"
    local -a found=()
    while IFS=$'\t' read -r name status; do
        [ "$status" = fail ] && may_be_unsteady "$2" "$name" && found+=("$name")
    done < <(entries_of "$2")
    # A broken build fails everywhere: there is nothing to find out.
    { [ ${#found[@]} -gt 0 ] && [ ${#found[@]} -le 20 ]; } || return 0
    echo "== $1: ${#found[@]} failed tests run once more, alone"
    "${prefix[@]}" ctest --test-dir "build/$1" --rerun-failed --output-on-failure -j 1 --output-junit "$again"
    for name in "${found[@]}"; do
        entries_of "$again" | grep -qxF "$name"$'\t'run && echo "$name" >>"$2.unsteady"
    done
    return 0
}

# count REPORT RESULTS: sets good, bad and skipped to the number of tests that passed, failed and were skipped. REPORT
# is ctest's. An entry of REPORT that is a whole suite has a file of its name in RESULTS (see tests/suites.cmake),
# unless the suite crashed or was killed.
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
            # A leak is found at the end of a process, after all its TESTs have passed: the leak counts as a test.
            [ ! -s "$file" ] || [ "$failures" -gt 0 ] || tests=$((tests + 1))
            [ "$failures" -gt 0 ] || failures=1
            ;;
        *) skips="$tests" ;;
        esac
        bad=$((bad + failures))
        skipped=$((skipped + skips))
        good=$((good + tests - failures - skips))
    done < <(entries_of "$1")
}

# reasons REPORT RESULTS: prints the reason of every skipped test, one a line, up to the first colon.
reasons() {
    {
        # GoogleTest prints "FILE:LINE: Skipped", and the reason on the next line.
        awk '
            /<testcase / { is_skipped = / status="(notrun|disabled)"/ }
            is_reason { print }
            { is_reason = is_skipped && /: Skipped$/ }' "$1"
        [ ! -d "$2" ] || find "$2" -name '*.xml' -exec sed -n 's/.*<skipped message="[^"&]*&#x0A;\([^"&]*\).*/\1/p' {} +
    } | sed 's/: .*//; s/<.*//'
}

# excess_skips PRESET REPORT RESULTS: prints a line for each reason for which more tests were skipped than
# tests/skips.txt allows for PRESET.
excess_skips() {
    local number reason line allowed
    while read -r number reason; do
        line="$(awk -F ' *[|] *' -v reason="$reason" -v preset="$1" \
            '$1 == reason && ($2 == preset || $2 == "any") { print; exit }' tests/skips.txt)"
        allowed="$(cut -d'|' -f3- <<<"$line" | sed 's/^ *//; s/ *$//')"
        if [[ "$allowed" == if\ * ]]; then
            bash -c "${allowed#if }" >/dev/null 2>&1 && continue
            allowed=0
        fi
        [ "$number" -gt "${allowed:-0}" ] || continue
        echo "$1: $number tests were skipped with the reason \"$reason\"; tests/skips.txt allows ${allowed:-0} here"
    done < <(reasons "$2" "$3" | sort | uniq -c)
}

# failures PRESET REPORT RESULTS: prints the name of every failed test and the first lines that say why.
failures() {
    local name status file
    while IFS=$'\t' read -r name status; do
        [ "$status" = fail ] || continue
        echo "$1: $name"
        file="$3/${name//[^A-Za-z0-9_]/_}.xml"
        if [ -s "$file" ]; then
            # GoogleTest's report of a suite has <failure message="FILE:LINE&#x0A;..." behind the line of its TEST.
            awk -F '"' '
                /<testcase name=/ { test = $2 }
                /<failure message=/ { gsub(/&#x0A;/, " ", $2); print "    " test ": " substr($2, 1, 200) }' "$file"
        else
            # Otherwise the report has what the test printed.
            output_of "$2" "$name" | grep -E -m 5 'Failure|ERROR|SUMMARY|rror:|Timeout|terminate' |
                cut -c 1-200 | sed 's/^/    /'
        fi
    done < <(entries_of "$2")
}

# ---- how long parts took

# tests_of REPORT: prints "SECONDS NAME" for every entry of ctest's REPORT.
tests_of() { sed -n 's/.*<testcase name="\([^"]*\)".* time="\([0-9.e-]*\)".*/\2 \1/p' "$1" | sed 's/  # GetParam.*//'; }
# objects_of BUILD: prints "SECONDS OBJECT" for every object and program, of the last time that it was built. The log of
# ninja keeps objects of earlier builds.
objects_of() {
    awk 'NR > 1 { seconds[$4] = ($2 - $1) / 1000 }
        END { for (file in seconds) print seconds[file], file }' "$1/.ninja_log"
}
# slowest PRESET: prints the ten slowest lines of standard input, which are "SECONDS NAME".
slowest() {
    sort -rn | head -10 |
        awk -v preset="$1" '{ printf "%-8s %7.1f s  %s\n", preset, $1, substr($0, index($0, $2)) }'
}

# by_part BUILD SUMMARY: prints the seconds of one core that each part of tests/budgets.txt took, and its budget.
# Compile times are from the log of BUILD, test times from SUMMARY, which is what ctest printed.
by_part() {
    {
        objects_of "$1" | sed 's/^/object /'
        # A line of the summary by label: "engine_tests = 12.34 sec*proc (380 tests)".
        sed -n 's/^\([a-z_]*\) *= *\([0-9.]*\) sec\*proc.*/test \2 \1/p' "$2"
    } | awk '
        FNR == NR && ($0 ~ /^#/ || NF < 5) { next }
        FNR == NR { part[++count] = $1; compile[$1] = $2; test[$1] = $3; objects[$1] = $4; labels[$1] = $5; next }
        { for (i = 1; i <= count; ++i) {
              p = part[i]
              if ($1 == "object" && $3 ~ objects[p]) { compiled[p] += $2; break }
              if ($1 == "test" && $3 ~ "^(" labels[p] ")$") { tested[p] += $2; break } } }
        END { for (i = 1; i <= count; ++i) { p = part[i]
              over = compiled[p] > compile[p] || tested[p] > test[p] ? "  over its budget" : ""
              printf "%-12s %8.0f of %4d %8.0f of %4d%s\n",
                  p, compiled[p], compile[p], tested[p], test[p], over } }' tests/budgets.txt -
}

# ---- the presets

passed=0 failed=0
table="$(printf '%-10s %8s %8s %8s %10s %10s' preset passed failed skipped build/s tests/s)"
slow_tests='' slow_objects='' parts='' failed_tests='' unsteady_tests=''
for preset in "$@"; do
    start=$SECONDS
    if [ "$preset" = cross ]; then
        scripts/cross.sh || { failed=$((failed + 1)) failed_tests+="cross: see what scripts/cross.sh printed"$'\n'; }
        cross_passed="$(cat build/cross/passed 2>/dev/null)"
        table+="$(printf '\n%-10s %8s %8s %8s %10d' cross "$cross_passed" '' '' $((SECONDS - start)))"
        continue
    fi
    read -ra prefix < <(prefix_of "$preset"; echo)
    echo "== $preset: build"
    tests=(-DKUMI_TESTS=ON) targets=(all)
    # The preset asan compiles most sources with clang, too.
    [ "$preset" != clang ] || { tests=() targets=(not_in_asan); }
    cmake --preset "$preset" "${tests[@]}" "${launcher[@]}" >/dev/null || stop "configuring $preset failed, see above"
    # One compiler per core. Ninja would start two more, and they would only compete for the caches of the cores.
    "${prefix[@]}" cmake --build "build/$preset" -j "${JOBS:-$(nproc)}" --target "${targets[@]}" ||
        stop "building $preset failed, see above"
    built=$((SECONDS - start))
    slow_objects+="$(objects_of "build/$preset" | slowest "$preset")"$'\n'
    if [ "$preset" = clang ]; then
        table+="$(printf '\n%-10s %8s %8s %8s %10d' clang '' '' '' $built)"
        continue
    fi

    echo "== $preset: test"
    report="$PWD/build/$preset/tests.xml"
    results="$PWD/build/$preset/tests/results"
    summary="$PWD/build/$preset/tests.log"
    rm -rf "$report" "$report.unsteady" "$report.again" "$results"
    start=$SECONDS
    "${prefix[@]}" ctest --test-dir "build/$preset" --progress --output-on-failure --no-tests=error -j "$test_jobs" \
        --output-junit "$report" | tee "$summary"
    status=${PIPESTATUS[0]}
    [ -s "$report" ] || stop "ctest ended with $status in $preset and left no report"
    [ "$status" -eq 0 ] || try_again "$preset" "$report"
    seconds=$((SECONDS - start))

    count "$report" "$results"
    [ $((good + bad + skipped)) -gt 0 ] || stop "$report names no tests"
    # An error of ctest that is no failed test is a failure, too.
    unsteady=0
    if [ -s "$report.unsteady" ]; then
        unsteady="$(wc -l <"$report.unsteady")"
        unsteady_tests+="$(sed "s/^/$preset: /" "$report.unsteady")"$'\n'
    fi
    [ "$status" -eq 0 ] || [ $((bad + unsteady)) -gt 0 ] ||
        stop "ctest ended with $status in $preset though no test failed"
    if [ "$unsteady" -gt "$unsteady_max" ]; then
        bad=$((bad + 1))
        failed_tests+="$preset: $unsteady tests are unsteady, and at most $unsteady_max may be"$'\n'
    fi
    [ "$bad" -eq 0 ] || failed_tests+="$(failures "$preset" "$report" "$results")"$'\n'
    skips="$(excess_skips "$preset" "$report" "$results")"
    [ -z "$skips" ] || { bad=$((bad + 1)) failed_tests+="$skips"$'\n'; }
    passed=$((passed + good))
    failed=$((failed + bad))
    slow_tests+="$(tests_of "$report" | slowest "$preset")"$'\n'
    [ "$preset" != release ] || parts="$(by_part build/release "$summary")"
    table+="$(printf '\n%-10s %8d %8d %8d %10d %10d' "$preset" "$good" "$bad" "$skipped" "$built" "$seconds")"
done

printf '\nThe slowest tests:\n%s\nThe slowest objects:\n%s\n' "$slow_tests" "$slow_objects"
[ -z "$parts" ] || printf 'release, seconds of one core: %s\n%s\n\n' "compile, tests, and their budgets" "$parts"
[ -z "$unsteady_tests" ] || printf 'Unsteady tests, which passed alone:\n%s\n' "$unsteady_tests"
[ -z "$failed_tests" ] || printf 'Failed tests:\n%s\n' "$failed_tests"
printf '%s\n\n%d minutes\n%d passed, %d failed\n' "$table" $(((SECONDS + 59) / 60)) "$passed" "$failed"
[ "$failed" -eq 0 ]
