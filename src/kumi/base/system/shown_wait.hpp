#pragma once

// What the threads of this process wait for, as text for people. A thread that has waited for long shows what it waits
// for; a signal handler prints it, also while the thread that waits, or any other, is stuck with a lock.

#include "kumi/base/clock.hpp"

#include <cstddef>
#include <string_view>

namespace kumi::base {

class ShownWait {
public:
    /// Longer texts are cut.
    static constexpr std::size_t text_max = 480;
    /// So many threads can show something at once; what further ones wait for is not shown.
    static constexpr std::size_t shown_max = 64;

    ShownWait() noexcept = default;
    ShownWait(const ShownWait&) = delete;
    ShownWait& operator=(const ShownWait&) = delete;
    ~ShownWait() {
        if (slot_ != nullptr) hide();
    }

    /// Shows `text`, instead of an earlier one.
    void show(Instant since, std::string_view text) noexcept;
    void hide() noexcept;

private:
    class Slot;
    friend std::size_t write_shown_waits(int descriptor, std::string_view start) noexcept;
    static Slot slots[shown_max];

    Slot* slot_ = nullptr;
};

/// Writes a line "START TEXT, for 12.3 s" for each thread that shows what it waits for. Answers how many. May be called
/// by a signal handler.
std::size_t write_shown_waits(int descriptor, std::string_view start) noexcept;

} // namespace kumi::base
