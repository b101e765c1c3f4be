#!/usr/bin/env bash
# demo.sh: shows what is built in build/release, in less than a minute.
set -euo pipefail
cd "$(dirname "$0")/../build/release"
PATH="$PWD/bin:$PATH"

if [ -t 1 ]; then
    bold=$'\e[1m' plain=$'\e[0m'
else
    bold='' plain=''
fi

# show HEADLINE COMMAND...
show() {
    printf '\n%s%s%s\n$ %s\n' "$bold" "$1" "$plain" "${*:2}"
    "${@:2}"
}

echo "In build/release, with build/release/bin in PATH:"
show "Four nodes greet node 0, which prints what it gets; the label tells who printed a line." \
    kumi run -n 4 --label examples/01_hello
show "A token goes round four nodes. Then: who talked to whom, over what." \
    kumi run -n 4 --traffic examples/02_ring
show "How fast are messages between two nodes, by size?" \
    kumi run -n 2 examples/03_pingpong
show "Two nodes over UDP, while one packet of twenty is lost on purpose. Then: what was repaired." \
    kumi run -n 2 --stats -x KUMI_DEVICE=udp -x KUMI_FAULT=udp.loss=0.05 examples/02_ring
show "A cluster of clusters: which node reaches which over what, and why." \
    kumi map --cluster ../../lab/figure3.toml -n 12

cat <<'END'

What to try next, from the project's root:
  build/release/bin/kumi doctor      what Kumi sees on this machine
  build/release/bin/kumi run --help  labels, traffic, counters, binding, environment
  examples/01_hello.cpp              the program that greeted you
  make bench                         beside MPI, TCP and other libraries, on this machine
  make check                         all tests, with and without sanitizers
END
