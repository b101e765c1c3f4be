#include "kumi/device/composite/opening/gauge.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>
#include <numeric>

namespace kumi::device::composite {

void Gauge::on_burst(Duration took) noexcept {
    KUMI_ASSERT(!is_done_);
    ++tries_;
    fastest_ = std::min(fastest_, std::max(took, Duration(1)));
    spent_ += took;
    const bool may_grow = fastest_ < long_enough && bytes_ < bytes_max;
    if (may_grow) {
        bytes_ *= 2;
        tries_ = 0;
        fastest_ = Duration::max();
        spent_ = Duration{0};
    } else {
        is_done_ = tries_ == tries_max || (tries_ > 1 && spent_ >= enough_of_it);
    }
}

double Gauge::bytes_per_second() const noexcept {
    return static_cast<double>(bytes_) / std::chrono::duration<double>(fastest_).count();
}

std::vector<std::size_t> best_first(const std::vector<double>& rates) {
    constexpr double about_the_same = 0.8;
    std::vector<std::size_t> left(rates.size());
    std::iota(left.begin(), left.end(), std::size_t{0});
    std::vector<std::size_t> order;
    while (!left.empty()) {
        double fastest = 0;
        for (const std::size_t one : left) fastest = std::max(fastest, rates[one]);
        const auto next = std::find_if(left.begin(), left.end(),
                                       [&](std::size_t one) { return rates[one] >= fastest * about_the_same; });
        order.push_back(*next);
        left.erase(next);
    }
    return order;
}

} // namespace kumi::device::composite
