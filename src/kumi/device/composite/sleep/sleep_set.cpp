#include "kumi/device/composite/sleep/sleep_set.hpp"

#include <cerrno>
#include <utility>

namespace kumi::device::composite {
namespace {

// Marks of what is slept on.
constexpr unsigned mark_call = 1;
constexpr unsigned mark_interfaces = 2;
constexpr unsigned mark_part = 4;

} // namespace

Result<std::unique_ptr<SleepSet>> SleepSet::open() {
    auto socket = WakeSocket::open();
    if (!socket) return socket.error();
    auto set = DescriptorSet::open();
    if (!set) return set.error();
    DescriptorSet::Entry for_good;
    if (!set->watch(for_good, {.descriptor = socket->descriptor()}, mark_call))
        return system_error(errno, "watching a socket (epoll)");
    return std::unique_ptr<SleepSet>(new SleepSet(*std::move(socket), *std::move(set)));
}

void SleepSet::watch_interfaces(int descriptor) noexcept {
    DescriptorSet::Entry for_good;
    set_.watch(for_good, {.descriptor = descriptor}, mark_interfaces);
}

bool SleepSet::watch(OfPart& part, const pm::Watched& watched) noexcept {
    const bool has_bell = set_.watch(part.bell, {.descriptor = watched.bell}, mark_part);
    return set_.watch(part.descriptor, {watched.descriptor, watched.or_writable}, mark_part) && has_bell;
}

bool SleepSet::end() noexcept {
    asleep_.store(false);
    woken_.exchange(false); // a call before this has ended this sleep, and the node that slept sees what it was for
    const unsigned ready = set_.ready();
    if ((ready & mark_call) != 0) socket_.drain();
    return (ready & mark_interfaces) != 0;
}

} // namespace kumi::device::composite
