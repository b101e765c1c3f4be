#include "kumi/base/system/keys.hpp"

#include <cerrno>
#include <sys/random.h>

namespace kumi::base {

Result<void> fill_with_random(MutableBytes bytes, std::string_view purpose) {
    while (!bytes.empty()) {
        const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
        if (got < 0 && errno != EINTR) return system_error(errno, fmt::format("{} (getrandom)", purpose));
        if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return {};
}

Result<JobKeys> make_job_keys() {
    constexpr std::string_view purpose = "making the job's keys";
    JobKeys keys;
    while (keys.token == 0)
        if (auto filled = fill_with_random(std::as_writable_bytes(std::span(&keys.token, 1)), purpose); !filled)
            return filled.error();
    if (auto filled = fill_with_random(keys.secret, purpose); !filled) return filled.error();
    return keys;
}

} // namespace kumi::base
