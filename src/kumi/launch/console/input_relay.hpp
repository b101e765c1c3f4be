#pragma once

#include "kumi/base/bytes.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/launch/remote/link_wire.hpp"
#include "kumi/launch/host/poller.hpp"

namespace kumi::launch {

/// Brings the standard input of this process to a node on another host, no more than that node has room for.
class InputRelay final {
public:
    /// `poller` announces input as Source::input.
    explicit InputRelay(host::Poller& poller) : poller_(poller) { watch(); }
    InputRelay(const InputRelay&) = delete;
    InputRelay& operator=(const InputRelay&) = delete;

    /// Looks out for input, if some may be sent. Call it also when this process has come to the terminal's foreground.
    void watch();
    /// Reads once, and sends what it read; at the end of the input it sends no bytes, once.
    void on_ready(base::FunctionRef<void(Bytes)> send);
    /// The node has taken so many bytes.
    void on_taken(std::uint32_t bytes);
    /// Standard input is a file, which is ready without an event, and some may be sent.
    bool is_ready_file() const noexcept { return is_file_ && !ended_ && room_bytes_ != 0; }
    /// The node has ended: reads nothing more.
    void end();

private:
    host::Poller& poller_;
    std::uint32_t room_bytes_ = remote::input_bytes_max;
    bool is_file_ = false;
    bool ended_ = false;
};

} // namespace kumi::launch
