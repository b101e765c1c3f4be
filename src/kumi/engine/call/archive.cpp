#include "kumi/engine/call/archive.hpp"

namespace kumi::engine::archive {

void Writer::append(const void* data, std::size_t count) {
    const auto* const from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + count);
}

} // namespace kumi::engine::archive
