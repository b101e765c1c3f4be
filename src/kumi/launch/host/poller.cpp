#include "kumi/launch/host/poller.hpp"

#include <array>
#include <cerrno>
#include <sys/epoll.h>

namespace kumi::launch::host {

Result<Poller> Poller::open() {
    base::Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll) return system_error(errno, "preparing to watch the nodes");
    return Poller(std::move(epoll));
}

bool Poller::watch(int descriptor, Event about, std::uint32_t epoll_events) noexcept {
    epoll_event event{};
    event.events = epoll_events;
    event.data.u64 = std::uint64_t{about.index} << 32 | static_cast<std::uint32_t>(about.source);
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0 ||
           ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event) == 0;
}

void Poller::forget(int descriptor) noexcept { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr); }

std::vector<Event> Poller::wait(Instant deadline) const {
    std::array<epoll_event, 64> ready;
    const int count = ::epoll_wait(epoll_.get(), ready.data(), ready.size(), milliseconds_until(deadline));
    std::vector<Event> events;
    for (int i = 0; i < count; ++i) {
        const std::uint64_t data = ready[static_cast<std::size_t>(i)].data.u64;
        events.push_back(
            {static_cast<Source>(static_cast<std::uint32_t>(data)), static_cast<std::uint32_t>(data >> 32)});
    }
    return events;
}

} // namespace kumi::launch::host
