#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/base/descriptor.hpp"
#include "kumi/base/result.hpp"

#include <cstdint>
#include <vector>

namespace kumi::launch::host {

/// What an event is about.
enum class Source : std::uint32_t { signals, input, input_room, job, boot, out, err, link, link_errors };

struct Event {
    Source source;
    std::uint32_t index; // of the node on its host, or of the host
};

/// Waits for many descriptors at once: epoll(7), with what each is about.
class Poller {
public:
    static Result<Poller> open();

    /// From now on, and instead of what was asked of it before. False for a file, which is always ready.
    bool watch(int descriptor, Event about, std::uint32_t epoll_events) noexcept;
    void forget(int descriptor) noexcept;

    /// Is readable while there are events: a poller may be watched by another.
    int descriptor() const noexcept { return epoll_.get(); }

    /// At most 64 of what happened.
    std::vector<Event> wait(Instant deadline) const;

private:
    explicit Poller(base::Descriptor epoll) : epoll_(std::move(epoll)) {}

    base::Descriptor epoll_;
};

} // namespace kumi::launch::host
