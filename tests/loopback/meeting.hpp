#pragma once

// Threads as nodes that meet.

#include "kumi/pm/device.hpp"

#include <barrier>
#include <fcntl.h>
#include <memory>
#include <vector>

namespace kumi::loopback {

/// Where they meet; all of one host.
class Place {
public:
    explicit Place(pm::Node nodes) : all_(static_cast<std::ptrdiff_t>(nodes)), told_(nodes) {}

private:
    friend class ThreadMeeting;
    std::barrier<> all_;
    std::vector<std::vector<std::byte>> told_;
    base::Descriptor shared_;
};

/// One node's.
class ThreadMeeting final : public pm::Meeting {
public:
    ThreadMeeting(Place& place, pm::Node self) : place_(place), self_(self) {}

    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override {
        place_.told_[self_].assign(mine.begin(), mine.end());
        place_.all_.arrive_and_wait();
        auto told = place_.told_;
        place_.all_.arrive_and_wait();
        return told;
    }
    Result<base::Descriptor> share(base::Descriptor mine) override {
        if (self_ == 0) place_.shared_ = std::move(mine);
        place_.all_.arrive_and_wait();
        base::Descriptor got(self_ == 0 ? -1 : ::fcntl(place_.shared_.get(), F_DUPFD_CLOEXEC, 0));
        place_.all_.arrive_and_wait();
        return got;
    }

private:
    Place& place_;
    pm::Node self_;
};

} // namespace kumi::loopback
