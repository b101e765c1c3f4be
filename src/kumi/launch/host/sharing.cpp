#include "kumi/launch/host/sharing.hpp"

namespace kumi::launch::host {

std::vector<Sharing::Answer> Sharing::on_share(std::uint32_t slot, base::Descriptor descriptor) {
    waiting_.set(slot);
    if (slot == 0) shared_ = std::make_shared<base::Descriptor>(std::move(descriptor));
    std::vector<Answer> answers;
    if (!shared_) return answers;
    for (std::size_t i = waiting_.next_set(0); i < nodes_; i = waiting_.next_set(i + 1)) {
        const auto to = static_cast<std::uint32_t>(i);
        waiting_.clear(to);
        answers.push_back({to, to == 0 ? nullptr : shared_});
    }
    return answers;
}

} // namespace kumi::launch::host
