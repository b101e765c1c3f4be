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

# show HEADLINE COMMAND...: prints the headline and the command, then runs the command.
show() {
    printf '\n%s%s%s\n$ %s\n' "$bold" "$1" "$plain" "${*:2}"
    "${@:2}"
}

# Makes the hosts and networks of lab/figure3.toml of namespaces on this machine, and runs jobs on them.
demo_lab() {
    export KUMI_LAB=demo
    export KUMI_RSH="$PWD/bin/kumi lab exec"
    printf '\n%s%s%s\n' "$bold" \
        "That cluster on this machine, made of namespaces: eight hosts, three networks. No root needed." "$plain"
    if ! kumi lab up ../../lab/figure3.toml; then
        echo "(so the rest of the demo is left out)"
        return
    fi
    trap 'kumi lab down' EXIT
    local question="How long does a message take between every two of its nodes, and over what?"
    show "$question (They share this machine's cores: some wait.)" \
        kumi run --cluster ../../lab/figure3.toml --no-bind -n 12 examples/matrix
    show "The same program finds the networks by itself when no file tells it." \
        kumi lab exec front kumi run --hosts a0:2,a1,b0 --no-bind -n 4 examples/matrix
    (sleep 2; kumi lab link a1 myrinet down; sleep 1.5; kumi lab link a1 myrinet up) &
    show "A network is cut after two seconds, and mended. Every message arrives, once and in order." \
        kumi run --cluster ../../lab/figure3.toml --hosts 'a[0-1]' -n 2 examples/steady 5.5
    wait
}

echo "In build/release, with build/release/bin in PATH:"
show "Four nodes greet node 0, which prints what it gets; the label tells who printed a line." \
    kumi run -n 4 --label examples/01_hello
show "A token goes round four nodes. Then: who talked to whom, over what." \
    kumi run -n 4 --traffic examples/02_ring
show "How fast are messages between two nodes, by size?" \
    kumi run -n 2 examples/03_pingpong
show "Nodes write into each other's memory, set flags there, and draw numbers from a counter." \
    kumi run -n 4 examples/05_remote_memory
show "Functions called on other nodes: what they answer, or throw, comes back." \
    kumi run -n 4 examples/07_invoke
show "A simulation that is steered: every 20 ms another set of nodes is told, computes and answers, and nobody else." \
    kumi run -n 6 examples/08_steering 12
show "Laplace's equation on two nodes; the rows that neighbours need travel while the others are computed." \
    kumi run -n 2 examples/06_jacobi 1024 300 1 overlap
show "Two nodes over UDP, while one packet of twenty is lost on purpose. Then: what was repaired." \
    kumi run -n 2 --stats -x KUMI_DEVICE=udp -x KUMI_FAULT=udp.loss=0.05 examples/02_ring
show "A cluster of clusters, as the file has it: which node reaches which over what, and why." \
    kumi map --cluster ../../lab/figure3.toml -n 12
demo_lab

cat <<'END'

What to try next, from the project's root:
  build/release/bin/kumi doctor      what Kumi sees on this machine
  build/release/bin/kumi run --help  hosts, labels, traffic, counters, binding, environment
  build/release/bin/kumi lab --help  a cluster of namespaces to try things on
  examples/01_hello.cpp              the program that greeted you; the others are to be read in order
  make bench                         beside MPI, TCP and other libraries, on this machine
  make check                         all tests
END
