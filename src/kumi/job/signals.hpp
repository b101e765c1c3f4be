#pragma once

// What a node says of itself when it is asked what it waits for, and when it crashes.

#include <string_view>

namespace kumi::job {

/// From now on SIGQUIT prints what each thread of this process waits for, and the process goes on. `who` is the start
/// of each line: "node 3 on a". False: the program handles SIGQUIT itself, and keeps its way.
bool print_waits_on_quit(std::string_view who) noexcept;

/// From now on a signal that kills this process because of a fault (SIGSEGV, SIGABRT and the like) first prints the
/// functions that the faulty thread is in. Signals that the program, or a sanitizer, handles itself stay theirs.
void print_backtrace_on_crash(std::string_view who) noexcept;

} // namespace kumi::job
