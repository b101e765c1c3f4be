# The front door. CMake does the work, in build/PRESET; see CMakePresets.json.

# make check runs these; make check-all adds the sanitizers, clang and the other architecture.
PRESETS ?= release
PRESETS_ALL ?= release asan tsan clang cross
PREFIX ?= /usr/local
# JOBS=2 builds with two processes; unset, with one per core.
JOBS ?=
# How long `make fuzz`, `make soak` and `make soak-jobs` explore.
FUZZ_SECONDS ?= 600
MINUTES ?= 10
# MUTANTS="word ...": `make mutants` tries only the faults whose name or file has one of these words.
MUTANTS ?=
# KUMI_PACKAGES=no: never install packages.
export JOBS KUMI_PACKAGES

packages = scripts/install-packages.sh
build = cmake --build build/release $(if $(JOBS),-j $(JOBS))
demo_programs = 01_hello 02_ring 03_pingpong 05_remote_memory 06_jacobi 07_invoke 08_steering matrix steady
fuzzers = fuzz_packets fuzz_seal fuzz_engine fuzz_group
formatted = $(shell find src tools examples tests bench -name '*.[ch]pp')

.PHONY: all release demo check check-all mutants soak soak-jobs fuzz bench install format clean help
.NOTPARALLEL:

all: release

# The first build has no tests and needs no packages for tests. `make check` adds the tests.
build/release/build.ninja:
	@$(packages) core
	@cmake --preset release -DKUMI_TESTS=OFF >/dev/null

release: build/release/build.ninja
	@$(build)

demo: build/release/build.ninja
	@$(packages) demo
	@$(build) --target kumi_command $(demo_programs)
	@scripts/demo.sh

check:
	@$(packages) core test
	@scripts/check.sh $(PRESETS)

check-all:
	@$(packages) core test clang
	@scripts/check.sh $(PRESETS_ALL)

# Puts faults into a copy of the sources, one at a time. Tests must fail with each.
mutants:
	@$(packages) core test
	@scripts/mutants.sh $(MUTANTS)

# Runs random tests with new seeds, fuzzers with new inputs, and random jobs.
soak:
	@$(packages) core test fuzz
	@cmake --preset release -DKUMI_TESTS=ON >/dev/null
	@$(build)
	@cmake --preset fuzz >/dev/null
	@cmake --build build/fuzz $(if $(JOBS),-j $(JOBS)) --target $(fuzzers)
	@scripts/soak.sh $(MINUTES)

# Runs random jobs alone.
soak-jobs:
	@$(packages) core test
	@cmake --preset release -DKUMI_TESTS=ON >/dev/null
	@$(build) --target cluster_tests
	@scripts/soak-jobs.sh $(MINUTES)

# The fuzzers add inputs that reach new code to build/fuzz/*corpus. An input that fails is build/fuzz/crash-*.
fuzz:
	@$(packages) core fuzz
	@cmake --preset fuzz >/dev/null
	@cmake --build build/fuzz $(if $(JOBS),-j $(JOBS)) --target $(fuzzers)
	@scripts/fuzz.sh $(FUZZ_SECONDS)

bench: build/release/build.ninja
	@$(packages) bench
	@cmake --preset release -DKUMI_PEERS=ON >/dev/null
	@$(build)
	@build/release/bin/kumi bench shmem --against openmpi,mpich
	@build/release/bin/kumi bench udp --against tcp,openmpi,enet,zeromq
	@build/release/bin/kumi bench composite --against openmpi,mpich
	@build/release/bin/kumi bench engine --against openmpi,mpich,oshmem
	@build/release/bin/kumi bench group --against openmpi,mpich
	@build/release/bin/kumi bench mpi --against openmpi,mpich
	@build/release/bin/kumi bench sizes --against openmpi,mpich --rounds 3 --figures build/figures
	@build/release/bin/kumi bench patterns --against openmpi,mpich --rounds 3 --figures build/figures
	@build/release/bin/kumi bench simulated --against mpich,tree,create,paper,doubling --figures build/figures

install: release
	@cmake --install build/release --prefix "$(PREFIX)"

format:
	@$(packages) format
	@clang-format -i $(formatted)

clean:
	@rm -rf build

help:
	@echo "make            build the library, the kumi command and the examples in build/release"
	@echo "make demo       build what is needed and show it"
	@echo "make check      run all tests, in release; PRESETS=asan runs them under that sanitizer instead"
	@echo "make check-all  the same with both sanitizers, clang, and the other architecture by emulation"
	@echo "make mutants    put faults into a copy of the sources, one at a time: the tests must notice each"
	@echo "make soak       run random tests with new seeds, fuzzers and random jobs for MINUTES ($(MINUTES))"
	@echo "make soak-jobs  run random jobs alone, with lost nodes, cut cables and lost packets"
	@echo "make bench      measure beside bare sockets, MPI and other libraries"
	@echo "make fuzz       explore the reliable protocol, the engine and groups with arbitrary messages," \
		"FUZZ_SECONDS ($(FUZZ_SECONDS)) each"
	@echo "make install    install to PREFIX ($(PREFIX)); DESTDIR is honoured"
	@echo "make format     format all sources with clang-format"
	@echo "make clean      remove build/"
	@echo
	@echo "Missing Debian packages are installed, with sudo if need be; KUMI_PACKAGES=no keeps make from it."
	@echo "JOBS=2 builds with two processes instead of one per core."
