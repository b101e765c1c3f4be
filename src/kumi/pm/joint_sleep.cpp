#include "kumi/pm/joint_sleep.hpp"

#include "kumi/base/sync/futex.hpp"

#include <algorithm>
#include <array>
#include <poll.h>

namespace kumi::pm {

void block(const Watched& watched, Instant deadline) noexcept {
    deadline = std::min(deadline, watched.deadline);
    if (watched.word != nullptr) return base::futex_wait(*watched.word, watched.value, deadline);
    std::array<pollfd, 2> descriptors{
        {{watched.descriptor, static_cast<short>(watched.or_writable ? POLLIN | POLLOUT : POLLIN), 0},
         {watched.bell, POLLIN, 0}}}; // those that are -1 are passed over
    const timespec limit = time_until(deadline);
    ::ppoll(descriptors.data(), descriptors.size(), deadline == never ? nullptr : &limit, nullptr);
}

} // namespace kumi::pm
