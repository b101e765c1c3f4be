#pragma once

// File descriptors that close themselves.

#include <sys/socket.h>
#include <utility>
#include <vector>

namespace kumi::base {

/// Owns one file descriptor and closes it.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int number) noexcept : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        if (this != &other) reset(std::exchange(other.number_, -1));
        return *this;
    }
    ~Descriptor() { reset(); }

    int get() const noexcept { return number_; }
    explicit operator bool() const noexcept { return number_ >= 0; }
    int release() noexcept { return std::exchange(number_, -1); }
    void reset(int number = -1) noexcept;

private:
    int number_ = -1;
};

/// Takes ownership of the descriptors that came with a message of a Unix socket. Empty when none came, or when the
/// message had no room for them.
std::vector<Descriptor> descriptors_in(msghdr& message);

} // namespace kumi::base
