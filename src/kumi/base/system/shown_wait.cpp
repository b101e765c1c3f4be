#include "kumi/base/system/shown_wait.hpp"

#include "kumi/base/log.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace kumi::base {

/// A text that one thread writes and others read without a lock. A reader whose copy is torn takes another one.
class ShownWait::Slot {
public:
    struct Copy {
        Instant since;
        std::array<char, text_max> text;
        std::size_t length;
    };

    bool try_take() noexcept { return !is_taken_.exchange(true, std::memory_order_acq_rel); }
    // Release: partner of the exchange above; the next thread writes after this one.
    void give_back() noexcept { is_taken_.store(false, std::memory_order_release); }

    void write(Instant since, std::string_view text) noexcept {
        text = text.substr(0, text_max);
        const std::uint64_t version = version_.load(std::memory_order_relaxed); // only this thread writes it
        version_.store(version + 1, std::memory_order_relaxed);
        // Each word is released: a reader that sees a new word sees the odd version, too.
        since_.store(since.time_since_epoch().count(), std::memory_order_release);
        length_.store(text.size(), std::memory_order_release);
        for (std::size_t at = 0; at < text.size(); at += sizeof(std::uint64_t)) {
            std::uint64_t word = 0;
            std::memcpy(&word, text.data() + at, std::min(sizeof word, text.size() - at));
            words_[at / sizeof word].store(word, std::memory_order_release);
        }
        version_.store(version + 2, std::memory_order_release);
    }

    /// False: nothing is shown here.
    bool read(Copy& copy) const noexcept {
        constexpr int attempts_max = 100;
        for (int attempt = 0; attempt < attempts_max; ++attempt) {
            const std::uint64_t version =
                version_.load(std::memory_order_acquire); // partner: the last store of write()
            copy.since = Instant(Duration(since_.load(std::memory_order_acquire)));
            copy.length = std::min<std::size_t>(length_.load(std::memory_order_acquire), text_max);
            for (std::size_t i = 0; i < words_.size(); ++i) {
                const std::uint64_t word = words_[i].load(std::memory_order_acquire);
                std::memcpy(copy.text.data() + i * sizeof word, &word, sizeof word);
            }
            // Relaxed: ordered after the loads above, which acquire.
            if (version % 2 == 0 && version_.load(std::memory_order_relaxed) == version) return copy.length != 0;
        }
        return false;
    }

private:
    std::atomic<bool> is_taken_{false};
    std::atomic<std::uint64_t> version_{0};
    std::atomic<Duration::rep> since_{0};
    std::atomic<std::size_t> length_{0};
    std::array<std::atomic<std::uint64_t>, text_max / sizeof(std::uint64_t)> words_{};
};

constinit ShownWait::Slot ShownWait::slots[shown_max];

void ShownWait::show(Instant since, std::string_view text) noexcept {
    if (slot_ == nullptr) {
        Slot* const free = std::find_if(std::begin(slots), std::end(slots), [](Slot& slot) { return slot.try_take(); });
        if (free == std::end(slots)) return;
        slot_ = free;
    }
    slot_->write(since, text);
}

void ShownWait::hide() noexcept {
    if (slot_ == nullptr) return;
    slot_->write({}, "");
    slot_->give_back();
    slot_ = nullptr;
}

std::size_t write_shown_waits(int descriptor, std::string_view start) noexcept {
    std::size_t count = 0;
    const Instant time = now();
    for (const ShownWait::Slot& slot : ShownWait::slots) {
        ShownWait::Slot::Copy copy;
        if (!slot.read(copy)) continue;
        ++count;
        using namespace std::chrono;
        const auto tenths = std::max<std::int64_t>(duration_cast<milliseconds>(time - copy.since).count(), 0) / 100;
        write_line<ShownWait::text_max + 256>(descriptor, "{} {}, for {}.{} s", start.substr(0, 160),
                                              std::string_view(copy.text.data(), copy.length), tenths / 10,
                                              tenths % 10);
    }
    return count;
}

} // namespace kumi::base
