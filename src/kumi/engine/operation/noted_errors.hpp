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
        bool has_ended_wait = false; // a wait for a flag has returned it: any other error of the thread replaces it
        bool has_asked = false;      // sync() has returned another error to the thread, which so has asked
    };

    /// Keeps one error of each thread and flag. Returns false if there is one already: nobody will be told of `error`.
    bool note(Noted error) {
        const auto same = std::ranges::find_if(errors_, [&](const Noted& other) {
            return other.thread == error.thread && other.flag == error.flag;
        });
        if (same == errors_.end()) {
            if (errors_.size() >= errors_max && !forget_one()) return false;
            errors_.push_back(std::move(error));
            return true;
        }
        // One that has ended a wait ends no other: what comes after it must be able to.
        if (!same->has_ended_wait) {
            if (error.is_about_loss) return true; // it says nothing new
            if (!same->is_about_loss) return false;
        }
        *same = std::move(error);
        return true;
    }
    /// Takes the first error of a thread, or of unknown threads.
    std::optional<Error> take_of_thread(std::uint32_t thread) {
        std::optional<Error> first = take(std::ranges::find_if(
            errors_, [&](const Noted& noted) { return noted.thread == thread || noted.thread == 0; }));
        if (first)
            for (Noted& noted : errors_) noted.has_asked |= noted.thread == thread;
        return first;
    }
    /// The first error that ends the wait of a thread for a flag. That of the flag is taken. One of the thread that
    /// belongs to no flag stays for take_of_thread(), and ends no other wait.
    std::optional<Error> end_wait(std::uint32_t thread, const Flag& flag) {
        const auto found = std::ranges::find_if(errors_, [&](const Noted& noted) {
            return noted.flag == &flag || (noted.flag == nullptr && !noted.has_ended_wait &&
                                           (noted.thread == thread || noted.thread == 0));
        });
        if (found == errors_.end()) return {};
        if (found->flag != nullptr) return take(found);
        found->has_ended_wait = true;
        return found->why;
    }
    bool empty() const noexcept { return errors_.empty(); }
    const std::vector<Noted>& all() const noexcept { return errors_; }

private:
    /// Makes room: an error that has ended a wait is known to its thread. False: there is none.
    bool forget_one() {
        const auto known = std::ranges::find(errors_, true, &Noted::has_ended_wait);
        if (known == errors_.end()) return false;
        errors_.erase(known);
        return true;
    }
    std::optional<Error> take(std::vector<Noted>::iterator found) {
        if (found == errors_.end()) return {};
        std::optional<Error> why = std::move(found->why);
        errors_.erase(found);
        return why;
    }

    static constexpr std::size_t errors_max = 600; // more than there may be workers; threads that never ask keep theirs
    std::vector<Noted> errors_; // oldest first
};

} // namespace kumi::engine
