#include "kumi/base/system/descriptor.hpp"

#include <cstring>
#include <unistd.h>

namespace kumi::base {

void Descriptor::reset(int number) noexcept {
    if (number_ >= 0) ::close(number_);
    number_ = number;
}

std::vector<Descriptor> descriptors_in(msghdr& message) {
    std::vector<Descriptor> found;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        for (std::size_t at = 0; at + CMSG_LEN(sizeof(int)) <= part->cmsg_len; at += sizeof(int)) {
            int number = -1;
            std::memcpy(&number, CMSG_DATA(part) + at, sizeof number);
            found.emplace_back(number);
        }
    }
    return found;
}

} // namespace kumi::base
