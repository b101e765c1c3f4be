#pragma once

#include "kumi/base/bytes.hpp"
#include "kumi/group/set.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace kumi::bench {

/// What one contest delivers, and when. A contest counts only if every member got the whole content once and no other
/// node got anything. The ranks of a simulation are one process and share one of these.
class Arrivals {
public:
    Arrivals(std::size_t bytes, group::Set members) : content_(bytes), members_(std::move(members)) {
        // Each byte depends on all of its index: a part at the place of another part is found.
        for (std::size_t i = 0; i < bytes; ++i)
            content_[i] = static_cast<std::byte>((i + 1) * 0x9E3779B97F4A7C15u >> 56);
    }

    const group::Set& members() const noexcept { return members_; }
    /// What the first member sends.
    Bytes content() const noexcept { return content_; }

    /// The time counts from `now` on.
    void begin(double now) noexcept { begun_ = last_ = now; }
    void take(group::Node node, Bytes got, double now) {
        if (!members_.contains(node)) fail(node, "is no member and got something");
        else if (had_.contains(node)) fail(node, "got the content twice");
        else if (!std::ranges::equal(got, content_)) fail(node, "got something else than what was sent");
        had_.add(node);
        last_ = std::max(last_, now);
    }

    /// What went wrong, at the first node where something did. Nothing: all members have the content.
    std::optional<std::string> mistake() const {
        if (mistake_) return mistake_;
        const group::Set missing = members_ - had_;
        if (missing.empty()) return {};
        return "nothing came to " + missing.text();
    }
    /// Until the last member had the content.
    double seconds() const noexcept { return last_ - begun_; }

private:
    void fail(group::Node node, const char* what) {
        if (!mistake_) mistake_ = "node " + std::to_string(node) + " " + what;
    }

    std::vector<std::byte> content_;
    group::Set members_;
    group::Set had_;
    std::optional<std::string> mistake_;
    double begun_ = 0;
    double last_ = 0;
};

} // namespace kumi::bench
