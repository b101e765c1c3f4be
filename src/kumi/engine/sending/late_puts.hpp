#pragma once

// Puts of several threads to other hosts. A thread that finds the turn taken does not wait for it: the thread leaves a
// copy of a small put, which the thread with the turn sends (turn_lock.hpp). So threads that issue puts do not exclude
// each other, nor do they wait for a thread that makes progress.

#include "kumi/base/bytes.hpp"
#include "kumi/engine/service.hpp"
#include "kumi/engine/wire.hpp"

#include <atomic>
#include <cstddef>

namespace kumi::engine {

class LatePuts {
public:
    static constexpr std::size_t bytes_max = 256; // copying more takes about as long as sending it

    LatePuts(Dispatcher& dispatcher, Port& port) noexcept : dispatcher_(dispatcher), port_(port) {}

    /// False: nothing was done, and the thread is to send the put itself. A put that was left is sent before any
    /// request of this thread that follows. If its node is lost meanwhile, that is an error of this thread for sync().
    bool try_leave(Node to, const Put& head, Bytes data) noexcept;
    /// From now on puts are not left, so that put() itself says which node is lost.
    void on_lost(const Turn&) noexcept { has_losses_.store(true, std::memory_order_relaxed); }

private:
    class LatePut;

    Dispatcher& dispatcher_;
    Port& port_;
    std::atomic<bool> has_losses_{false}; // written with the turn
};

} // namespace kumi::engine
