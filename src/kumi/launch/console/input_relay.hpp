#pragma once

#include "kumi/base/bytes.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/launch/remote/link_wire.hpp"
#include "kumi/launch/host/poller.hpp"

namespace kumi::launch {

/// Brings our standard input to a node on another host: so much as that has room for.
class InputRelay final {
public:
    /// Events are announced as Source::input.
    explicit InputRelay(host::Poller& poller) : poller_(poller) { watch(); }
    InputRelay(const InputRelay&) = delete;
    InputRelay& operator=(const InputRelay&) = delete;

    /// Looks out for input, if some may be sent; also when we have come to the terminal's foreground.
    void watch();
    /// Reads once. Sends nothing at the end of it.
    void on_ready(base::FunctionRef<void(Bytes)> send);
    void on_taken(std::uint32_t bytes);
    /// A file, which is ready without an event.
    bool is_ready_file() const noexcept { return is_file_ && !ended_ && room_bytes_ != 0; }
    /// Nobody wants more.
    void end();

private:
    host::Poller& poller_;
    std::uint32_t room_bytes_ = remote::input_bytes_max;
    bool is_file_ = false;
    bool ended_ = false;
};

} // namespace kumi::launch
