#pragma once

// What tests with threads ask: whether something becomes true, and which thread this is.

#include "kumi/base/clock.hpp"

#include <functional>
#include <pthread.h>
#include <string_view>
#include <thread>

namespace kumi::loopback {

/// Longer than anything takes: a thread that nobody wakes sleeps until then.
inline constexpr Duration far_away = std::chrono::seconds(10);

/// Waits until `what` is true; false if it is not true within `far_away`.
inline bool comes_true(const std::function<bool()>& what) {
    for (const Instant end = now() + far_away; !what();) {
        if (now() >= end) return false;
        std::this_thread::yield();
    }
    return true;
}

/// True in the background thread of an engine.
inline bool is_background() noexcept {
    char name[16] = {};
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    return std::string_view(name) == "kumi-progress";
}

} // namespace kumi::loopback
