#pragma once

#include "kumi/base/bytes.hpp"
#include "kumi/group/wire/multicast.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace kumi::group {

/// Answers about multicasts in blocks by nodes of which this node does not know yet that they answer to it: this node
/// has not heard of the multicast, or of a loss by which it is the parent now. Bounded: an answer for which there is no
/// room is dropped, and this node asks for it later.
class EarlyAnswers {
public:
    explicit EarlyAnswers(std::size_t bytes_max) noexcept : bytes_max_(bytes_max) {}

    /// Keeps the first answer of each node about each multicast.
    void add(const Name& name, Node node, Bytes answer) {
        if (bytes_ + answer.size() > bytes_max_) return;
        if (answers_[name].try_emplace(node, answer.begin(), answer.end()).second) bytes_ += answer.size();
    }

    /// Takes out an answer about that multicast by a node for which `is_wanted(node)` holds.
    template <class IsWanted>
    std::optional<std::pair<Node, std::vector<std::byte>>> take(const Name& name, IsWanted&& is_wanted) {
        const auto found = answers_.find(name);
        if (found == answers_.end()) return {};
        for (auto answer = found->second.begin(); answer != found->second.end(); ++answer) {
            if (!is_wanted(answer->first)) continue;
            bytes_ -= answer->second.size();
            std::pair<Node, std::vector<std::byte>> taken(answer->first, std::move(answer->second));
            found->second.erase(answer);
            return taken;
        }
        return {};
    }

    /// Nobody will want the answers about that multicast.
    void drop(const Name& name) {
        const auto found = answers_.find(name);
        if (found == answers_.end()) return;
        for (const auto& [node, answer] : found->second) bytes_ -= answer.size();
        answers_.erase(found);
    }

    /// Multicasts with answers, of one master or of all.
    std::vector<Name> names_of(Node master) const {
        std::vector<Name> names;
        for (auto at = answers_.lower_bound({master, 0}); at != answers_.end() && at->first.master == master; ++at)
            names.push_back(at->first);
        return names;
    }
    template <class Visit>
    void each_name(Visit&& visit) const {
        for (const auto& [name, answers] : answers_) visit(name);
    }
    std::size_t size() const noexcept { return answers_.size(); }

private:
    std::size_t bytes_max_;
    std::size_t bytes_ = 0;
    std::map<Name, std::map<Node, std::vector<std::byte>>> answers_; // by multicast and node
};

} // namespace kumi::group
