#include "kumi/group/mail/receive.hpp"

namespace kumi::group {

void Receive::make_room(std::uint64_t size) {
    if (may_fit && size == bytes) content = nullptr;
    if (content == nullptr) return;
    content->resize(size);
    bytes = size;
}

void Receive::take(Bytes data) {
    const bool is_last = arrived + data.size() == bytes;
    if (content != nullptr) copy_bytes(content->data() + arrived, data);
    if (combine == nullptr) {
        if (content == nullptr) copy_bytes(target + arrived, data);
    } else if (content == nullptr) {
        if (!data.empty()) (*combine)(target + arrived, mine + arrived, data.data(), data.size(), is_first);
    } else if (is_last && !content->empty()) {
        (*combine)(target, mine, content->data(), content->size(), is_first);
    }
    arrived += data.size();
    is_done = is_last;
}

} // namespace kumi::group
