#pragma once

// Errors that no call has returned yet: something that was begun has failed elsewhere. An error belongs to the thread
// that began it, where that is known, and to the flag that will not be set. One thread at a time uses it.

#include "kumi/base/result.hpp"
#include "kumi/engine/memory/words.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace kumi::engine {

class NotedErrors {
public:
    struct Noted {
        Error why;
        std::uint32_t thread = 0;    // 0: not known
        const Flag* flag = nullptr;  // null: none
        bool is_about_loss = false;  // it only says that a node is lost: any other error of the thread replaces it
    };

    /// Keeps one error of each thread and flag. Returns false if there is one already: nobody will be told of `error`.
    bool note(Noted error) {
        const auto same = std::ranges::find_if(errors_, [&](const Noted& other) {
            return other.thread == error.thread && other.flag == error.flag;
        });
        if (same == errors_.end()) {
            if (errors_.size() >= errors_max) return false;
            errors_.push_back(std::move(error));
            return true;
        }
        if (error.is_about_loss) return true; // it says nothing new
        if (!same->is_about_loss) return false;
        *same = std::move(error);
        return true;
    }
    /// Takes the first error of a thread, or of unknown threads.
    std::optional<Error> take_of_thread(std::uint32_t thread) {
        return take([&](const Noted& noted) { return noted.thread == thread || noted.thread == 0; });
    }
    /// The same, for a thread that waits for a flag.
    std::optional<Error> take_of_flag(std::uint32_t thread, const Flag& flag) {
        return take([&](const Noted& noted) {
            return noted.flag == &flag || (noted.flag == nullptr && (noted.thread == thread || noted.thread == 0));
        });
    }
    bool empty() const noexcept { return errors_.empty(); }
    const std::vector<Noted>& all() const noexcept { return errors_; }

private:
    template <class IsWanted>
    std::optional<Error> take(IsWanted&& is_wanted) {
        const auto found = std::ranges::find_if(errors_, is_wanted);
        if (found == errors_.end()) return {};
        std::optional<Error> why = std::move(found->why);
        errors_.erase(found);
        return why;
    }

    static constexpr std::size_t errors_max = 600; // more than there may be workers; threads that never ask keep theirs
    std::vector<Noted> errors_; // oldest first
};

} // namespace kumi::engine
