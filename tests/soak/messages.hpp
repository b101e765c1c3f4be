#pragma once

// Messages to handlers and plain messages: all arrive, once and in order for each thread that sends; and tokens, which
// handlers pass on and which return.

#include "soak/world.hpp"

#include <atomic>
#include <cstdint>
#include <vector>

namespace kumi::soak {

class Messages {
public:
    Messages(Handlers& handlers, World& world);
    /// Called once, right after join().
    void start();

    void act(Actor& actor);
    /// Every message of every survivor has arrived. All survivors have synced.
    void check();
    /// Tokens that no lost node may have kept have returned.
    void wait_for_tokens();

private:
    using Counts = std::vector<std::uint64_t>;
    enum Kind { handled, plain, kinds };

    void send_handled(Actor& actor);
    void send_plain(Actor& actor);
    void send_token(Actor& actor);
    void take(Kind kind, Node source, std::uint32_t thread, std::uint64_t number, Bytes payload);
    std::size_t index(Kind kind, Node node, unsigned thread) const noexcept;

    World& world_;
    Handler<std::uint32_t, std::uint64_t, Bytes> take_;
    Handler<std::uint64_t, std::uint32_t> pass_;
    Function<Counts(std::uint32_t)> received_by_;
    Counts sent_;                                      // by kind, node and thread: each thread has its own
    std::vector<std::atomic<std::uint64_t>> received_; // the same
    std::atomic<std::uint64_t> tokens_sent_ = 0, tokens_back_ = 0; // without those that may be lost
};

} // namespace kumi::soak
