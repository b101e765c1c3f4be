#include "kumi/boot/session.hpp"

#include "kumi/boot/alone.hpp"
#include "kumi/boot/started.hpp"

#include <charconv>
#include <cstdlib>
#include <fcntl.h>
#include <string_view>

namespace kumi::boot {
namespace {

/// The socket that `kumi run` left us. Children of this process shall neither see nor use it.
Result<base::Descriptor> inherited_socket(std::string_view text) {
    int number = -1;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (status != std::errc{} || end != text.data() + text.size() || ::fcntl(number, F_SETFD, FD_CLOEXEC) != 0)
        return error("{}={} names no open socket: start the program with kumi run, or unset {}", socket_variable, text,
                     socket_variable);
    return base::Descriptor(number);
}

} // namespace

Result<std::unique_ptr<Session>> open_session() {
    const char* variable = std::getenv(socket_variable);
    if (variable == nullptr) return make_alone_session();
    auto socket = inherited_socket(variable);
    if (!socket) return socket.error();
    ::unsetenv(socket_variable);
    return join_started_job(*std::move(socket));
}

} // namespace kumi::boot
