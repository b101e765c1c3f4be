#pragma once

// How nodes of one host end each other's sleep when they sleep on several channels at once: a call is a datagram of one
// byte to a Unix socket. The system makes up the socket's name, which the nodes exchange; nothing is left in the file
// system. Names hold within one network namespace.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"
#include "kumi/pm/joint_sleep.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace kumi::device::composite {

class WakeSocket {
public:
    /// What other nodes need to call this one.
    struct Name {
        std::array<char, 15> text;
        std::uint8_t bytes;
    };
    static_assert(sizeof(Name) == 16);

    static Result<WakeSocket> open();

    const Name& name() const noexcept { return name_; }
    /// Readable when a call has come.
    int descriptor() const noexcept { return descriptor_.get(); }
    /// Ends the sleep of the node whose socket has that name. From any thread.
    void wake(const Name& name) const noexcept;
    void wake_self() const noexcept { wake(name_); }
    /// Discards calls, a few at a time. Calls that are left end the next sleep.
    void drain() const noexcept;

private:
    base::Descriptor descriptor_;
    Name name_{};
};

/// Wakes the nodes of one channel.
class SocketWaker final : public pm::Waker {
public:
    explicit SocketWaker(const WakeSocket& socket) : socket_(socket) {}
    /// By the channel's numbers.
    void set_names(std::vector<WakeSocket::Name> names) { names_ = std::move(names); }
    void wake(pm::Node node) noexcept override { socket_.wake(names_[node]); }

private:
    const WakeSocket& socket_;
    std::vector<WakeSocket::Name> names_;
};

} // namespace kumi::device::composite
