#include "kumi/engine/call/signature.hpp"

namespace kumi::engine {

std::string joined(std::string_view before, std::string_view text, std::string_view after) {
    std::string all(before);
    return all.append(text).append(after);
}

} // namespace kumi::engine
