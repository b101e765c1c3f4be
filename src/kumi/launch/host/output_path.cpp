#include "kumi/launch/host/output_path.hpp"

#include <cerrno>
#include <fcntl.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

namespace kumi::launch::host {
namespace {

Result<OutputPath> make_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return system_error(errno, "making a pipe for a node's output");
    return OutputPath{base::Descriptor(ends[0]), base::Descriptor(ends[1])};
}

} // namespace

Result<OutputPath> make_output_path(const std::optional<winsize>& terminal) {
    if (!terminal) return make_pipe();
    int ours = -1;
    int nodes = -1;
    winsize size = *terminal;
    termios plain{};
    ::cfmakeraw(&plain); // what a node writes comes out as it is
    if (::openpty(&ours, &nodes, nullptr, &plain, &size) != 0) return make_pipe(); // the system has no more terminals
    ::fcntl(ours, F_SETFD, FD_CLOEXEC);
    ::fcntl(nodes, F_SETFD, FD_CLOEXEC);
    return OutputPath{base::Descriptor(ours), base::Descriptor(nodes)};
}

} // namespace kumi::launch::host
