#include "kumi/pm/message.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>

namespace kumi::pm {

KeptMessage::KeptMessage(Node source, Bytes bytes)
    : source_(source), copy_(std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(bytes.size(), 1))) {
    std::copy(bytes.begin(), bytes.end(), copy_.get());
    bytes_ = Bytes(copy_.get(), bytes.size());
}

KeptMessage Message::keep() {
    KUMI_ASSERT(!kept_);
    kept_ = true;
    if (owner_ == nullptr) return KeptMessage(source_, bytes_);
    return KeptMessage(source_, bytes_, *owner_, token_);
}

} // namespace kumi::pm
