#pragma once

// Two nodes that send each other messages by PM alone.

#include "contestant/work.hpp"

#include "kumi/base/clock.hpp"
#include "kumi/pm/channel.hpp"
#include "kumi/pm/wait.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

namespace kumi::bench {

/// The other of two nodes. An empty message is its arrival at a barrier. The arrival may come before this node waits
/// for it, and messages that the other node sent after the barrier may come together with the arrival.
class Partner {
public:
    explicit Partner(pm::Channel& channel) : channel_(channel), node_(1 - channel.self()) {}

    bool is_first() const noexcept { return node_ == 1; }
    pm::Channel& channel() const noexcept { return channel_; }

    /// Sends a message; spins until there is room for it.
    void send(Bytes bytes) {
        while (!channel_.try_send(node_, bytes)) {
            channel_.poll([this](pm::Message& message) { keep(message); }, pm::all_messages);
            pm::relax();
        }
    }

    /// Calls `work` with the bytes of each message until `wanted` messages have come since the last call.
    template <class Work>
    void take(int wanted, Work&& work) {
        taken_ -= std::exchange(wanted_, wanted);
        for (; !early_.empty(); early_.pop_front(), ++taken_) work(early_.front().bytes());
        const auto sort = [&](pm::Message& message) {
            if (!count(message)) work(message.bytes()), ++taken_;
        };
        pm::poll_until(
            channel_, sort, [&] { return taken_ >= wanted_; }, patience);
    }

    void barrier() {
        send({});
        ++barriers_;
        taken_ = wanted_ = 0;
        pm::poll_until(
            channel_, [this](pm::Message& message) { keep(message); }, [&] { return arrivals_ >= barriers_; },
            patience);
    }

private:
    static constexpr pm::Patience patience{std::chrono::microseconds(50)};

    /// Counts an arrival. False: the message is none.
    bool count(const pm::Message& message) noexcept { return message.bytes().empty() && ++arrivals_ != 0; }
    void keep(pm::Message& message) {
        if (!count(message)) early_.push_back(message.keep());
    }

    pm::Channel& channel_;
    pm::Node node_;
    int taken_ = 0;
    int wanted_ = 0;
    int arrivals_ = 0;
    int barriers_ = 0;
    std::deque<pm::KeptMessage> early_; // messages that came before take() wanted them
};

inline double seconds_since(Instant start) { return std::chrono::duration<double>(now() - start).count(); }

/// Seconds of one way of a ping-pong, from private memory to private memory. Over shared memory a long message goes in
/// pieces, so that the copy of the sender and the copy of the receiver overlap.
inline double pingpong_seconds(Partner& partner, std::size_t bytes, int count) {
    std::vector<std::byte> out(bytes);
    std::vector<std::byte> in(bytes);
    const std::size_t piece_bytes = partner.channel().traits().polls_memory ? pm::piece_bytes : bytes;
    const int pieces = static_cast<int>((bytes + piece_bytes - 1) / piece_bytes);
    std::size_t taken = 0;
    const auto copy_out = [&](Bytes message) {
        std::memcpy(in.data() + taken, message.data(), message.size());
        taken += message.size();
    };
    const auto send = [&](int number) {
        renew(out.data(), bytes, number);
        for (std::size_t at = 0; at < bytes; at += piece_bytes)
            partner.send(Bytes(out).subspan(at, std::min(piece_bytes, bytes - at)));
    };
    partner.barrier();
    const Instant start = now();
    for (int i = 0; i < count; ++i) {
        if (partner.is_first()) send(i);
        taken = 0;
        partner.take(pieces, copy_out);
        if (!partner.is_first()) send(i);
    }
    return seconds_since(start) / count / 2;
}

/// Seconds of one of `count` messages from the first node, from private memory to private memory, until the other node
/// has taken all.
inline double stream_seconds(Partner& partner, std::size_t bytes, int count) {
    const std::vector<std::byte> out(bytes);
    std::vector<std::byte> in(bytes);
    const auto copy_out = [&](Bytes message) { std::memcpy(in.data(), message.data(), message.size()); };
    partner.barrier();
    const Instant start = now();
    if (partner.is_first())
        for (int i = 0; i < count; ++i) partner.send(out);
    else partner.take(count, copy_out);
    partner.barrier();
    return seconds_since(start) / count;
}

} // namespace kumi::bench
