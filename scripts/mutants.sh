#!/usr/bin/env bash
# mutants.sh [WORD...]: puts one fault at a time into a copy of the sources, and checks that a test fails.
# mutants.sh --check: checks only that every fault applies to the present sources.
#
# The faults are blocks of tests/mutants/*.txt:
#
#     # A comment.
#     an acknowledgement of packets that were never sent is believed
#     in src/kumi/reliable/sender.cpp
#     after void Sender::on_ack
#     was if (next > sent_) return false;
#     now if (next > sent_ + 1) return false;
#     fails unit_tests Sender.an_acknowledgement_of_more_than_was_sent_is_dropped
#
# The first line names the fault. `was` is a whole line of the file, leading spaces aside; `now` replaces it, and may be
# empty. If the line occurs more than once, the optional `after` names text of an earlier line, behind whose first
# occurrence the search begins. `fails` names a test program and a filter for GoogleTest: at least one of those tests
# must fail. A fault that no test can notice has `survives REASON` instead, and is only checked to apply.
#
# WORDs select the faults whose name or file contains one of them. Exits with 1 if a fault survives its tests.
#
# WORKERS processes share the faults, one process per core by default. Each has a copy of the sources and a build.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

root="$PWD"
workers="${WORKERS:-$(nproc)}"
test_seconds_max=120

stop() {
    echo "mutants: $*" >&2
    exit 1
}

# ---- the list: parallel arrays, one element a fault

names=() files=() afters=() olds=() news=() programs=() filters=() reasons=()

# read_list FILE: appends the faults of FILE that were selected.
read_list() {
    local line name='' file='' after='' old='' new='' program='' filter='' reason='' has_new=no
    while IFS= read -r line || [ -n "$line" ]; do
        case "$line" in
        '#'*) ;;
        'in '*) file="${line#in }" ;;
        'after '*) after="${line#after }" ;;
        'was '*) old="${line#was }" ;;
        'now') new='' has_new=yes ;;
        'now '*) new="${line#now }" has_new=yes ;;
        'fails '*) read -r program filter <<<"${line#fails }" ;;
        'survives '*) reason="${line#survives }" ;;
        '')
            [ -n "$name$file$after$old" ] || continue
            [ -n "$name" ] || stop "$1: a fault in $file has no name, or one that begins with a word of this format"
            [ -f "$file" ] || stop "$1: \"$name\": there is no file \"$file\""
            [ -n "$old" ] && [ "$has_new" = yes ] || stop "$1: \"$name\" lacks was or now"
            [ -n "$filter$reason" ] || stop "$1: \"$name\" has neither a test that fails nor a reason to survive"
            if is_selected "$name $file"; then
                names+=("$name") files+=("$file") afters+=("$after") olds+=("$old") news+=("$new")
                programs+=("$program") filters+=("$filter") reasons+=("$reason")
            fi
            name='' file='' after='' old='' new='' program='' filter='' reason='' has_new=no
            ;;
        *) [ -z "$name" ] && name="$line" || stop "$1: cannot make sense of \"$line\"" ;;
        esac
    done < <(cat "$1"; echo)
}

selection=("$@")
[ "${1:-}" != --check ] || selection=()
is_selected() {
    local word
    [ ${#selection[@]} -gt 0 ] || return 0
    for word in "${selection[@]}"; do
        [[ "$1" != *"$word"* ]] || return 0
    done
    return 1
}

for list in tests/mutants/*.txt; do read_list "$list"; done
[ ${#names[@]} -gt 0 ] || stop "no fault is called so; see tests/mutants"

# ---- applying one

# line_of INDEX: prints the number of the line that fault INDEX replaces, and fails if it is not exactly one.
line_of() {
    OLD="${olds[$1]}" AFTER="${afters[$1]}" awk '
        function bare(text) { sub(/^[ \t]+/, "", text); sub(/[ \t]+$/, "", text); return text }
        BEGIN { is_on = ENVIRON["AFTER"] == "" }
        !is_on { is_on = index($0, ENVIRON["AFTER"]) > 0; next }
        bare($0) == bare(ENVIRON["OLD"]) && (!found || ENVIRON["AFTER"] == "") { ++found; line = NR }
        END { if (found != 1) exit 1; print line }' "${files[$1]}"
}

strays=0
for i in "${!names[@]}"; do
    line_of "$i" >/dev/null && continue
    echo "mutants: \"${names[i]}\": ${files[i]} has no such line, or several: ${olds[i]}" >&2
    strays=$((strays + 1))
done
[ $strays -eq 0 ] || stop "$strays faults do not apply: the sources have changed, so change tests/mutants, too"

if [ "${1:-}" = --check ]; then
    echo "${#names[@]} faults apply"
    exit 0
fi

copy_sources() {
    # A file that has not changed keeps its time, so that it is not compiled again. This also holds for the file with
    # the last fault of the last run: it was restored after it was compiled. With an older time its object, which has
    # the fault, would pass for up to date.
    local file
    while IFS= read -r -d '' file; do
        [ -e "$file" ] && ! cmp -s "$file" "$tree/$file" || continue
        mkdir -p "$tree/$(dirname "$file")"
        cp "$file" "$tree/$file" || stop "the sources could not be copied to $tree"
    done < <(git ls-files -z --cached --others --exclude-standard)
}

# put INDEX: puts the fault into the copy. restore INDEX: takes it out again.
put() {
    local line
    line="$(line_of "$1")"
    LINE="$line" NEW="${news[$1]}" awk 'NR == ENVIRON["LINE"] { print ENVIRON["NEW"]; next } { print }' \
        "${files[$1]}" >"$tree/${files[$1]}"
}
restore() { cat "${files[$1]}" >"$tree/${files[$1]}"; }

# ---- building and running

make_target() { cmake --build "$build" ${JOBS:+-j "$JOBS"} --target "$1" >"$build/log" 2>&1; }

# runs PROGRAM FILTER: runs these tests and prints how they ended: passed, failed, hung, or nothing if FILTER names
# none.
runs() {
    local output status
    output="$(cd "$build" && timeout -k 5 "$test_seconds_max" \
        "tests/$1" --gtest_filter="$2" --gtest_brief=1 2>&1 </dev/null)"
    status=$?
    if [[ "$output" == *" 0 tests from 0 test suites ran"* ]]; then
        echo nothing
    elif [ $status -eq 124 ] || [ $status -eq 137 ]; then
        echo hung
    elif [ $status -ne 0 ]; then
        echo failed
    else
        echo passed
    fi
}

# prepare INDEX...: copies the sources, builds the test programs of these faults, and stops if a test fails without its
# fault.
prepare() {
    copy_sources
    # Each fault compiles one file again, so sources are compiled one at a time and without optimisation. ccache spares
    # the compilation of a restored file.
    local launcher=()
    ! command -v ccache >/dev/null || launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O0 -g0" -DKUMI_UNITY=OFF \
        -DKUMI_BENCH=OFF -DKUMI_PEERS=OFF -DKUMI_WERROR=OFF "${launcher[@]}" >/dev/null ||
        stop "configuring failed, see above"
    local i outcome
    declare -A seen=()
    for i in "$@"; do
        [ -n "${programs[i]}" ] && [ -z "${seen[${programs[i]} ${filters[i]}]:-}" ] || continue
        seen["${programs[i]} ${filters[i]}"]=yes
        make_target "${programs[i]}" || { tail -40 "$build/log"; stop "building ${programs[i]} failed, see above"; }
        outcome="$(runs "${programs[i]}" "${filters[i]}")"
        [ "$outcome" = passed ] ||
            stop "without the fault \"${names[i]}\", ${programs[i]} --gtest_filter=${filters[i]}: $outcome"
    done
}

# try INDEX: puts the fault in, runs its tests and prints how they ended.
try() {
    local outcome
    if [ -n "${reasons[$1]}" ]; then
        printf '%-10s %s (%s)\n' explained "${names[$1]}" "${reasons[$1]}"
        return
    fi
    put "$1"
    if make_target "${programs[$1]}"; then
        outcome="$(runs "${programs[$1]}" "${filters[$1]}")"
    else
        tail -20 "$build/log"
        outcome="does not compile"
    fi
    restore "$1"
    case "$outcome" in
    failed) outcome=killed ;;
    hung) outcome=hangs ;;
    *) outcome="SURVIVES: $outcome," ;;
    esac
    printf '%-10s %s\n' "$outcome" "${names[$1]}"
}

# work NUMBER: tries the faults of one worker. Neighbours in the list need the same objects, so each worker has a
# contiguous part of the list.
work() {
    local i mine=()
    for ((i = ${#names[@]} * $1 / workers; i < ${#names[@]} * ($1 + 1) / workers; ++i)); do mine+=("$i"); done
    tree="$root/build/mutants/$1/tree" build="$root/build/mutants/$1/build"
    mkdir -p "$tree"
    prepare "${mine[@]}"
    for i in "${mine[@]}"; do try "$i"; done
}

[ "$workers" -eq 1 ] || JOBS=1
echo "== ${#names[@]} faults, $workers at a time; first their tests without them"
log="$root/build/mutants/log"
mkdir -p "$root/build/mutants"
exec 3> >(tee "$log")
reader=$!
pids=()
for ((worker = 0; worker < workers; ++worker)); do
    work "$worker" >&3 &
    pids+=($!)
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
exec 3>&-
wait "$reader"

count() { grep -c "^$1" "$log"; }
printf '\n%d faults in %d s: %d killed, %d explained, %d survived\n' ${#names[@]} $SECONDS \
    $(($(count killed) + $(count hangs))) "$(count explained)" "$(count SURVIVES)"
as_wanted=$(($(count killed) + $(count hangs) + $(count explained)))
[ $status -eq 0 ] && [ "$(count SURVIVES)" -eq 0 ] && [ $as_wanted -eq ${#names[@]} ]
