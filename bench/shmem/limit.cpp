#include "shmem/limit.hpp"

#include "contestant/core.hpp"
#include "contestant/work.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <linux/futex.h>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace kumi::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_from(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A cache line with its data and its flag.
struct alignas(64) Line {
    std::atomic<std::uint64_t> flag;
    std::uint64_t data;
};
struct Shared {
    Line there;
    alignas(128) Line back;
};

void hand_over(Line& line, std::uint64_t number) {
    line.data = number;
    // Release: partner of the acquire in take().
    line.flag.store(number, std::memory_order_release);
}

std::uint64_t take(const Line& line, std::uint64_t number) {
    // Acquire: partner of the release in hand_over().
    while (line.flag.load(std::memory_order_acquire) != number) {}
    return line.data;
}

/// Two processes hand a number to and fro. Pages have different distances from the cores, so several are tried.
double handover_seconds() {
    constexpr int pages = 8;
    constexpr std::uint64_t count = pingpongs_small / 4;
    void* memory = ::mmap(nullptr, pages * 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 0;
    const auto page = [&](int i) { return reinterpret_cast<Shared*>(static_cast<char*>(memory) + i * 4096); };
    double total = 0;
    const pid_t other = ::fork();
    bind_to_core(other == 0 ? 1 : 0);
    for (int i = 0; i < pages; ++i) {
        Shared& shared = *page(i);
        const auto start = Clock::now();
        for (std::uint64_t number = 1; number <= count; ++number) {
            if (other != 0) hand_over(shared.there, number);
            take(other != 0 ? shared.back : shared.there, number);
            if (other == 0) hand_over(shared.back, number);
        }
        total += seconds_from(start) / static_cast<double>(count) / 2;
    }
    if (other == 0) ::_exit(0);
    ::waitpid(other, nullptr, 0);
    ::munmap(memory, pages * 4096);
    return total / pages;
}

double copy_seconds() {
    std::vector<char> from(large_bytes, 1), to(large_bytes, 1);
    const auto start = Clock::now();
    for (int i = 0; i < stream_large; ++i) {
        std::memcpy(to.data(), from.data(), large_bytes);
        asm volatile("" ::"r"(to.data()) : "memory");
    }
    return seconds_from(start) / stream_large;
}

/// A word that a process sleeps on, in a page of its own.
struct alignas(4096) Bed {
    std::atomic<std::uint32_t> round;
};

/// How long the system takes to put one process to sleep and wake the next, in a ring of 16 processes, without
/// messages.
double wake_up_ring_seconds() {
    constexpr std::uint32_t processes = 16;
    constexpr std::uint32_t rounds = ring_rounds;
    void* memory = ::mmap(nullptr, processes * sizeof(Bed), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 0;
    Bed* beds = static_cast<Bed*>(memory);
    const auto sleep_until = [&](std::uint32_t who, std::uint32_t round) {
        while (beds[who].round.load() != round)
            ::syscall(SYS_futex, &beds[who].round, FUTEX_WAIT, round - 1, nullptr, nullptr, 0);
    };
    const auto wake = [&](std::uint32_t who, std::uint32_t round) {
        beds[who].round.store(round);
        ::syscall(SYS_futex, &beds[who].round, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    };
    for (std::uint32_t who = 1; who < processes; ++who) {
        if (::fork() != 0) continue;
        for (std::uint32_t round = 1; round <= rounds; ++round) {
            sleep_until(who, round);
            wake((who + 1) % processes, round);
        }
        ::_exit(0);
    }
    const auto start = Clock::now();
    for (std::uint32_t round = 1; round <= rounds; ++round) {
        wake(1, round);
        sleep_until(0, round);
    }
    const double seconds = seconds_from(start) / rounds / processes;
    while (::wait(nullptr) > 0) {}
    ::munmap(memory, processes * sizeof(Bed));
    return seconds;
}

} // namespace

void measure_limits() {
    report("shmem.ring.16", wake_up_ring_seconds() * 1e6); // comes first, because the next one binds this process
    report("shmem.latency.8", handover_seconds() * 1e9);
    const double copy = copy_seconds();
    for (const char* how : {"copy", "pingpong"})
        report(("shmem.bandwidth." + std::string(how) + ".1048576").c_str(), large_bytes * 1e-6 / copy);
}

} // namespace kumi::bench
