#include "kumi/job/signals.hpp"

#include "kumi/base/log.hpp"
#include "kumi/base/system/backtrace.hpp"
#include "kumi/base/system/machine.hpp"
#include "kumi/base/system/shown_wait.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace kumi::job {
namespace {

/// How long a crashing process may take to print where it is: it may have crashed with the lock of its heap.
constexpr unsigned backtrace_seconds_max = 2;

/// The start of each line. Written before the handlers are there.
std::array<char, 128> line_start{};

void set_line_start(std::string_view who) noexcept {
    const auto end = fmt::format_to_n(line_start.data(), line_start.size() - 1, "kumi: {}:", who);
    line_start[std::min(end.size, line_start.size() - 1)] = '\0';
}

/// False: the program handles this signal itself.
bool install(int number, void (*handler)(int, siginfo_t*, void*), int flags) noexcept {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0) return false;
    // Shells ignore SIGQUIT in programs that they start in the background: what is printed there ends nothing.
    const bool is_free = action.sa_handler == SIG_DFL || (number == SIGQUIT && action.sa_handler == SIG_IGN);
    if (!is_free) return false;
    action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    return ::sigaction(number, &action, nullptr) == 0;
}

constexpr std::size_t line_max = 256;

// ---- waits

void on_quit(int, siginfo_t* info, void*) {
    // The kernel also signals that kumi run is gone, or has room for more.
    if (info->si_code > 0 && info->si_code != POLL_IN && info->si_code != SI_KERNEL) return;
    const int error_number = errno;
    if (base::write_shown_waits(STDERR_FILENO, line_start.data()) == 0)
        base::write_line<line_max>(STDERR_FILENO,
                                   "{} no thread has waited in a call of Kumi for long: this node computes, or waits "
                                   "for something else",
                                   line_start.data());
    errno = error_number;
}

// ---- crashes

std::atomic<int> crash{0}; // the signal

[[noreturn]] void end_by(int number) noexcept {
    ::signal(number, SIG_DFL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    ::raise(number);
    ::_exit(128 + number); // not reached
}

void on_crash(int number, siginfo_t* info, void*) {
    if (int nothing = 0; !crash.compare_exchange_strong(nothing, number)) {
        // Another thread prints its backtrace and will end the process, or this thread has crashed while it did so.
        for (unsigned i = 0; i < backtrace_seconds_max; ++i) ::sleep(1);
        end_by(number);
    }
    ::signal(SIGALRM, [](int) { end_by(crash.load()); });
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    ::pthread_sigmask(SIG_UNBLOCK, &alarm_only, nullptr);
    ::alarm(backtrace_seconds_max);
    const bool has_address = (number == SIGSEGV || number == SIGBUS) && info->si_code > 0; // not one that was sent
    const char* const name = ::sigabbrev_np(number);
    if (has_address)
        base::write_line<line_max>(STDERR_FILENO, "{} SIG{} at address {:#x}; the thread was in", line_start.data(),
                                   name, reinterpret_cast<std::uintptr_t>(info->si_addr));
    else base::write_line<line_max>(STDERR_FILENO, "{} SIG{}; the thread was in", line_start.data(), name);
    constexpr int own_frames = 2; // this function, and the kernel's, which called it
    base::write_backtrace(STDERR_FILENO, line_start.data(), own_frames);
    end_by(number);
}

/// A thread whose stack has overflowed has no room for a handler. This is for the thread that joins the job, which
/// is the main thread of most programs.
void set_crash_stack() noexcept {
    constexpr std::size_t guard_bytes = base::page_bytes_max, stack_bytes = 4 * base::page_bytes_max;
    stack_t present{};
    if (::sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return; // the program has one
    // For as long as the thread lives, which nobody knows.
    void* const memory = ::mmap(nullptr, guard_bytes + stack_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    auto* const start = static_cast<std::byte*>(memory) + guard_bytes;
    if (::mprotect(start, stack_bytes, PROT_READ | PROT_WRITE) != 0) return;
    const stack_t own{.ss_sp = start, .ss_flags = 0, .ss_size = stack_bytes};
    ::sigaltstack(&own, nullptr);
}

} // namespace

bool print_waits_on_quit(std::string_view who) noexcept {
    set_line_start(who);
    return install(SIGQUIT, on_quit, SA_RESTART);
}

void print_backtrace_on_crash(std::string_view who) noexcept {
    set_line_start(who);
    bool is_any = false;
    for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) is_any |= install(number, on_crash, SA_ONSTACK);
    if (!is_any) return;
    base::prepare_backtrace();
    set_crash_stack();
}

} // namespace kumi::job
