#include "kumi/device/composite/sleep/descriptor_set.hpp"

#include <array>
#include <cerrno>
#include <sys/epoll.h>

namespace kumi::device::composite {

Result<DescriptorSet> DescriptorSet::open() {
    base::Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll) return system_error(errno, "making a set of descriptors to sleep on (epoll)");
    return DescriptorSet(std::move(epoll));
}

bool DescriptorSet::watch(Entry& entry, const Entry& wanted, unsigned mark) noexcept {
    if (entry.descriptor == wanted.descriptor && entry.or_writable == wanted.or_writable) return true;
    const bool is_same = entry.descriptor == wanted.descriptor;
    if (!is_same && entry.descriptor >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, entry.descriptor, nullptr);
    epoll_event event{};
    event.events = wanted.or_writable ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.u32 = mark;
    const bool done = wanted.descriptor < 0 || ::epoll_ctl(epoll_.get(), is_same ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
                                                           wanted.descriptor, &event) == 0;
    if (done) entry = wanted;
    else if (!is_same) entry = {};
    return done;
}

unsigned DescriptorSet::ready() const noexcept {
    std::array<epoll_event, 128> events; // as many as a composite has; if there are more, they are the next time
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    unsigned marks = 0;
    for (int i = 0; i < count; ++i) marks |= events[static_cast<std::size_t>(i)].data.u32;
    return marks;
}

} // namespace kumi::device::composite
