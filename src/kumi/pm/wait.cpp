#include "kumi/pm/wait.hpp"

namespace kumi::pm {

Patience patience_for(unsigned nodes_on_host, unsigned cores) noexcept {
    // About ten times what falling asleep and being woken costs: a wait that turns out longer pays a tenth more.
    constexpr Duration spin = std::chrono::microseconds(50);
    return {nodes_on_host <= cores ? spin : Duration{0}};
}

} // namespace kumi::pm
