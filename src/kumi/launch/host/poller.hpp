#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"

#include <cstdint>
#include <vector>

namespace kumi::launch::host {

/// The kinds of descriptors that are watched.
enum class Source : std::uint32_t { signals, input, input_room, job, boot, out, err, pmi, pmix, link, link_errors };

struct Event {
    Source source;
    std::uint32_t index; // of the node on its host, or of the host in its job
};

/// Waits for many descriptors at once, by epoll(7), and knows the kind of each.
class Poller {
public:
    static Result<Poller> open();

    /// Watches a descriptor for these events, instead of those that it was watched for before. False for a regular
    /// file, which is always ready and cannot be watched.
    bool watch(int descriptor, Event about, std::uint32_t epoll_events) noexcept;
    void forget(int descriptor) noexcept;

    /// Is readable while there are events: a poller may be watched by another.
    int descriptor() const noexcept { return epoll_.get(); }

    /// Waits for events until the deadline; answers at most 64.
    std::vector<Event> wait(Instant deadline) const;

private:
    explicit Poller(base::Descriptor epoll) : epoll_(std::move(epoll)) {}

    base::Descriptor epoll_;
};

} // namespace kumi::launch::host
