#pragma once

#include "kumi/base/bytes.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace kumi::group {

/// Recent answers, for nodes that ask again. The oldest answer is dropped when there are too many answers, or too many
/// bytes.
template <class Key>
class RecentAnswers {
public:
    RecentAnswers(std::size_t count_max, std::size_t bytes_max) noexcept
        : count_max_(count_max), bytes_max_(bytes_max) {}

    /// Keeps the first answer for each key.
    void put(const Key& key, std::vector<std::byte> answer) {
        const std::size_t bytes = answer.size();
        if (!answers_.try_emplace(key, std::move(answer)).second) return;
        in_order_.push_back(key);
        bytes_ += bytes;
        while (in_order_.size() > count_max_ || bytes_ > bytes_max_) {
            const auto oldest = answers_.find(in_order_.front());
            bytes_ -= oldest->second.size();
            answers_.erase(oldest);
            in_order_.pop_front();
        }
    }
    std::vector<std::byte>* find(const Key& key) {
        const auto found = answers_.find(key);
        return found == answers_.end() ? nullptr : &found->second;
    }

private:
    std::size_t count_max_;
    std::size_t bytes_max_;
    std::map<Key, std::vector<std::byte>> answers_;
    std::deque<Key> in_order_;
    std::size_t bytes_ = 0;
};

} // namespace kumi::group
