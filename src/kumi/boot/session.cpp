#include "kumi/boot/session.hpp"

#include "kumi/base/text/number_text.hpp"
#include "kumi/boot/alone.hpp"
#include "kumi/boot/foreign/foreign_job.hpp"
#include "kumi/boot/launcher.hpp"
#include "kumi/boot/kumi_run.hpp"
#include "kumi/boot/store/pmi.hpp"
#include "kumi/boot/store/pmix.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <string_view>

namespace kumi::boot {
namespace {

/// The socket inherited from `kumi run`. Children of this process must not inherit it.
Result<base::Descriptor> inherited_socket(std::string_view text) {
    const auto number = base::number_in<int>(text);
    if (!number || ::fcntl(*number, F_SETFD, FD_CLOEXEC) != 0)
        return error("{}={} names no open socket: start the program with kumi run, or unset {}", socket_variable, text,
                     socket_variable);
    return base::Descriptor(*number);
}

Result<std::unique_ptr<Session>> join_kumi_run() {
    auto socket = inherited_socket(std::getenv(socket_variable));
    if (!socket) return socket.error();
    ::unsetenv(socket_variable);
    return join_started_job(*std::move(socket));
}

Result<std::unique_ptr<Session>> join_through(Result<std::unique_ptr<KeyValues>> store) {
    if (!store) return store.error();
    const auto host = this_host();
    if (!host) return host.error();
    return join_foreign_job(*std::move(store), *host);
}

} // namespace

Result<std::unique_ptr<Session>> open_session() {
    const auto variable = [](const char* name) -> const char* { return std::getenv(name); };
    const auto launcher = find_launcher(variable);
    if (!launcher) return launcher.error();
    switch (*launcher) {
    case Launcher::kumi_run: return join_kumi_run();
    case Launcher::pmix: return join_through(open_pmix(foreign_answer_max));
    case Launcher::pmi1: return join_through(open_pmi(variable, foreign_answer_max));
    case Launcher::none: break;
    }
    return make_alone_session();
}

} // namespace kumi::boot
