#pragma once

// Where a thread is: the functions that it is in, by name. For a process that crashes.

#include <string>
#include <string_view>

namespace kumi::base {

/// The function at `address` of this process and the distance from its start, as "kumi::run(int) + 0x1c", and where in
/// which file it is, as "(program+0x5a1c)", which addr2line takes. Functions of programs that were stripped have no
/// names.
std::string name_of_address(const void* address);

/// Writes "START #0 NAME" and so on for the functions that this thread is in, from the caller of this one on. A signal
/// handler leaves out the frames of itself and of the kernel; the first one after those was interrupted, and has not
/// called anything. What a signal handler must not do (to ask for memory), this does: it is for a process that is about
/// to end.
void write_backtrace(int descriptor, std::string_view start, int left_out = 0);

/// Loads what write_backtrace() needs, so that it does not load it while the process crashes.
void prepare_backtrace();

} // namespace kumi::base
