#pragma once

#include "kumi/base/system/descriptor.hpp"
#include "kumi/launch/host/host.hpp"

#include <deque>
#include <memory>

namespace kumi::launch::host {

/// Frames that wait to be sent over a socket whose other end reads when it likes.
class Letters {
public:
    void add(SharedFrame frame, std::shared_ptr<base::Descriptor> descriptor = nullptr) {
        waiting_.push_back({std::move(frame), std::move(descriptor), 0});
    }

    /// Sends what `socket` takes now. True if more is to be sent when there is room. If the other end is gone, so are
    /// the letters.
    bool send(int socket);

private:
    struct Letter {
        SharedFrame frame;
        std::shared_ptr<base::Descriptor> descriptor;
        std::size_t sent_bytes;
    };
    std::deque<Letter> waiting_;
};

} // namespace kumi::launch::host
