#!/usr/bin/env bash
# cross.sh: compiles Kumi for the other architecture, runs the unit tests by emulation, and runs jobs whose nodes have
# different architectures.
#
# The other architecture is aarch64 on x86-64, and x86-64 on aarch64. The compiler and the emulator are packages of this
# machine. The libraries of the other architecture are only unpacked, into build/cross/root. If a package cannot be
# installed or fetched, a line says so and nothing is tested. build/cross/passed has the number of tests that passed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

here="$(uname -m)"
case "$here" in
x86_64) there=aarch64 debian=arm64 ;;
aarch64) there=x86_64 debian=amd64 ;;
*) echo "cross: nothing is known of an architecture beside $here"; exit 0 ;;
esac
work="$PWD/build/cross"
root="$work/root"
mkdir -p "$work"
rm -f "$work/passed"

stop() {
    echo "cross: $*" >&2
    exit 1
}
cannot() {
    echo "cross: NOT TESTED for $there: $*"
    echo 0 >"$work/passed"
    exit 0
}

# ---- packages

scripts/install-packages.sh "cross-$here" >"$work/log" 2>&1 ||
    cannot "$(sed -n "s/^cross-$here: *//p" packages.txt) cannot be installed, see build/cross/log"

# apt WORDS: apt-get for the other architecture, with lists of packages of its own. The configuration of this system
# stays as it is.
apt() {
    apt-get -q -y -o APT::Architecture="$debian" -o APT::Architectures="$debian" -o Dir::State::status=/dev/null \
        -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o Acquire::http::Timeout=30 \
        -o APT::Sandbox::User="$(id -un)" "$@" >"$work/log" 2>&1 </dev/null
}
read -ra libraries < <(sed -n 's/^cross-libraries: *//p' packages.txt | tr '\n' ' ')
if [ "$(cat "$root/list" 2>/dev/null)" != "${libraries[*]}" ]; then
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || cannot "there is no apt-get or dpkg-deb"
    rm -rf "$root" "$work/debs"
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/debs" "$root"
    apt update && (cd "$work/debs" && apt download "${libraries[@]}") ||
        cannot "libraries cannot be fetched, see build/cross/log"
    for package in "$work"/debs/*.deb; do dpkg-deb -x "$package" "$root" || stop "$package cannot be unpacked"; done
    echo "${libraries[*]}" >"$root/list"
fi

# ---- build

echo "== cross: build for $there"
cmake -S . -B "$work/build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/cross.cmake" -DKUMI_CROSS="$there" \
    -DKUMI_CROSS_ROOT="$root" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DKUMI_BENCH=OFF \
    >"$work/log" 2>&1 || { cat "$work/log"; stop "configuring failed"; }
programs=(01_hello 02_ring 04_active_messages 05_remote_memory 07_invoke 08_steering)
cmake --build "$work/build" ${JOBS:+-j "$JOBS"} --target unit_tests "${programs[@]}" ||
    stop "building failed, see above"
cmake --preset release >/dev/null &&
    cmake --build build/release ${JOBS:+-j "$JOBS"} --target kumi_command "${programs[@]}" ||
    stop "building for $here failed, see above"

# ---- the unit tests

# Some tests run natively only: tests of features that the emulator lacks (tests/not_emulated.txt has them, with the
# causes), and tests that would take minutes in the emulator.
not_emulated='*Model.*:*OnTheWire.*'
not_emulated+="$(sed -n 's/^\([^#].*\)/:\1/p' tests/not_emulated.txt | tr -d '\n')"
libraries_there="$root/usr/lib/$there-linux-gnu:$root/lib/$there-linux-gnu"
emulator=("qemu-$there" -L "/usr/$there-linux-gnu" -E "LD_LIBRARY_PATH=$libraries_there")
echo "== cross: unit tests"
at_once="$(nproc)"
# The emulator keeps memory of what has ended, such as threads: two long runs took more than 20 GiB.
shards=$((4 * at_once))
passed=0
for ((first = 0; first < shards; first += at_once)); do
    for ((i = first; i < first + at_once; ++i)); do
        GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i timeout -k 10 600 "${emulator[@]}" \
            "$work/build/tests/unit_tests" --gtest_filter="-$not_emulated" --gtest_brief=1 >"$work/log.$i" 2>&1 &
        running[i]=$!
    done
    for ((i = first; i < first + at_once; ++i)); do
        if ! wait "${running[i]}"; then
            grep -v '^\[  *OK' "$work/log.$i" | tail -60
            stop "unit tests for $there failed, see above"
        fi
        passed=$((passed + $(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$work/log.$i")))
    done
done
[ "$passed" -gt 1000 ] || stop "only $passed unit tests ran"

# ---- jobs of both architectures

# The script "either" runs as each node of a job. It takes the next free number. Nodes with even numbers run the program
# of this machine's architecture, the others that of the other architecture.
cat >"$work/either" <<END
#!/bin/sh
number=0
until mkdir "\$EITHER/\$number" 2>/dev/null; do number=\$((number + 1)); done
program="\$1"; shift
[ \$((number % 2)) -eq 0 ] && exec "$PWD/build/release/examples/\$program" "\$@"
exec ${emulator[*]} "$work/build/examples/\$program" "\$@"
END
chmod +x "$work/either"
echo "== cross: jobs of $here and $there"
for program in "${programs[@]}"; do
    EITHER="$(mktemp -d)"
    export EITHER
    KUMI_DEVICE=udp timeout -k 10 60 build/release/bin/kumi run -n 4 "$work/either" "$program" >"$work/log" 2>&1
    status=$?
    numbers="$(ls "$EITHER" | wc -l)"
    rm -rf "$EITHER"
    if [ $status -ne 0 ] || [ "$numbers" -ne 4 ]; then
        cat "$work/log"
        stop "a job of both architectures failed: $program"
    fi
    passed=$((passed + 1))
done
echo "$passed" >"$work/passed"
