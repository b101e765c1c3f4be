#include "kumi/launch/host/letters.hpp"

namespace kumi::launch::host {

bool Letters::send(int socket) {
    while (!waiting_.empty()) {
        Letter& letter = waiting_.front();
        const std::ptrdiff_t sent = boot::send_some(socket, Bytes(*letter.frame).subspan(letter.sent_bytes),
                                                    letter.descriptor ? letter.descriptor->get() : -1);
        if (sent < 0) break; // on_child_end() of its owner will say why
        if (sent > 0) letter.descriptor.reset();
        letter.sent_bytes += static_cast<std::size_t>(sent);
        if (letter.sent_bytes < letter.frame->size()) return true;
        waiting_.pop_front();
    }
    waiting_.clear();
    return false;
}

} // namespace kumi::launch::host
