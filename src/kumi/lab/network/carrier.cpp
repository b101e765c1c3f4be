#include "kumi/lab/network/carrier.hpp"

#include "kumi/base/system/descriptor.hpp"

#include <cerrno>
#include <cstring>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <thread>

namespace kumi::lab {

Result<void> wait_for_carrier(const std::string& interface, Instant deadline) {
    const base::Descriptor asker(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq question{};
    std::strncpy(question.ifr_name, interface.c_str(), sizeof question.ifr_name - 1);
    while (true) {
        if (::ioctl(asker.get(), SIOCGIFFLAGS, &question) != 0)
            return system_error(errno, fmt::format("looking at the cable of {}", interface));
        if ((question.ifr_flags & IFF_RUNNING) != 0) return {};
        if (now() > deadline) return error("the cable of {} did not come up in time", interface);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

} // namespace kumi::lab
