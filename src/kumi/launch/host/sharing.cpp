#include "kumi/launch/host/sharing.hpp"

#include <algorithm>

namespace kumi::launch::host {

std::vector<Sharing::Answer> Sharing::on_share(std::uint32_t slot, base::Descriptor descriptor) {
    waiting_.set(slot);
    if (slot == 0) given_.push_back(std::make_shared<base::Descriptor>(std::move(descriptor)));
    std::vector<Answer> answers;
    for (std::size_t i = waiting_.next_set(0); i < nodes_; i = waiting_.next_set(i + 1)) {
        const auto to = static_cast<std::uint32_t>(i);
        if (asked_[to] == forgotten_ + given_.size()) continue; // slot 0 has not come that far
        waiting_.clear(to);
        answers.push_back({to, to == 0 ? nullptr : given_[asked_[to] - forgotten_]});
        ++asked_[to];
    }
    for (const std::uint64_t all_have = *std::min_element(asked_.begin(), asked_.end()); forgotten_ < all_have;
         ++forgotten_)
        given_.pop_front();
    return answers;
}

} // namespace kumi::launch::host
