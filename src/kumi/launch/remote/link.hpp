#pragma once

#include "kumi/base/system/descriptor.hpp"
#include "kumi/launch/remote/link_wire.hpp"
#include "kumi/launch/host/poller.hpp"

#include <string>

namespace kumi::launch::remote {

/// One end of the connection between `kumi run` and its helper on a host. Sends as much as fits, and keeps the rest
/// until there is room.
class Link final {
public:
    /// `in` and `out` are two descriptors, even if of one socket. `poller` announces their events as `about`.
    Link(host::Poller& poller, host::Event about, base::Descriptor in, base::Descriptor out);
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;
    ~Link();

    void send(LinkKind kind, std::uint32_t node = 0, std::uint32_t value = 0, Bytes body = {});
    void send_text(std::string_view text);
    /// Tries again to send what was kept. False when the other side does not read any more.
    bool flush();
    /// How many bytes are still to be sent.
    std::size_t kept_bytes() const noexcept { return kept_.size() - kept_start_; }

    /// Reads what is there, 1 MiB at most. False when the other side has closed.
    bool read();
    /// Whether read() would bring something, or the end.
    bool is_readable() const noexcept;
    LinkReader& reader() noexcept { return reader_; }

private:
    host::Poller& poller_;
    host::Event about_;
    base::Descriptor in_;
    base::Descriptor out_;
    LinkReader reader_;
    std::vector<std::byte> kept_;
    std::size_t kept_start_ = 0;
    bool wants_room_ = false;
    bool broken_ = false;
};

} // namespace kumi::launch::remote
