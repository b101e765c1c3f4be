#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <ctime>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace kumi::bench {

/// The processor time, user and system, of several processes together. One of them may read it at any moment; so
/// getrusage(), which tells of the calling process only, is no help. Made before the processes are forked.
class ProcessorTime {
public:
    ProcessorTime() {
        void* const memory =
            ::mmap(nullptr, sizeof(Processes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory != MAP_FAILED) processes_ = new (memory) Processes;
    }
    ProcessorTime(const ProcessorTime&) = delete;
    ProcessorTime& operator=(const ProcessorTime&) = delete;
    ~ProcessorTime() {
        if (processes_ != nullptr) ::munmap(processes_, sizeof(Processes));
    }

    /// Counts this process from now on. At most `processes_max` may call it, before one of them reads.
    void join() noexcept {
        if (processes_ == nullptr) return;
        const std::size_t index = processes_->count++;
        if (index < processes_max) processes_->ids[index] = ::getpid();
    }
    /// Seconds since each of the processes began; 0 if there is no memory to share.
    double seconds() const noexcept {
        double sum = 0;
        for (std::size_t i = 0; processes_ != nullptr && i < processes_max; ++i) {
            clockid_t clock{};
            timespec time{};
            const pid_t id = processes_->ids[i];
            if (id == 0 || ::clock_getcpuclockid(id, &clock) != 0 || ::clock_gettime(clock, &time) != 0) continue;
            sum += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
        }
        return sum;
    }

private:
    static constexpr std::size_t processes_max = 2;

    struct Processes {
        std::atomic<std::size_t> count = 0;
        std::array<std::atomic<pid_t>, processes_max> ids{};
    };

    Processes* processes_ = nullptr;
};

} // namespace kumi::bench
