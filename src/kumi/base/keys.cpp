#include "kumi/base/keys.hpp"

#include "kumi/base/bytes.hpp"

#include <cerrno>
#include <sys/random.h>

namespace kumi::base {
namespace {

Result<void> fill_with_random(MutableBytes bytes) {
    while (!bytes.empty()) {
        const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
        if (got < 0 && errno != EINTR) return system_error(errno, "making the job's keys (getrandom)");
        if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return {};
}

} // namespace

Result<JobKeys> make_job_keys() {
    JobKeys keys;
    while (keys.token == 0)
        if (auto filled = fill_with_random(std::as_writable_bytes(std::span(&keys.token, 1))); !filled)
            return filled.error();
    if (auto filled = fill_with_random(keys.secret); !filled) return filled.error();
    return keys;
}

} // namespace kumi::base
