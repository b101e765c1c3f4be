#include "udp/bursts.hpp"

#include "contestant/measure.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <vector>

namespace kumi::bench {
namespace {

/// A sender has no more bytes under way, as a protocol that repairs losses would. What is sent without that is faster,
/// but mostly does not arrive.
constexpr std::int64_t under_way_max = 2 << 20;
/// So often the receiver tells how much has arrived.
constexpr std::uint64_t told_each = under_way_max / 8;
/// If nothing is told for so long, what is under way is lost.
constexpr std::chrono::milliseconds lost_after{20};

} // namespace

void send_bursts(int socket, const Burst& burst) {
    if (burst.bytes > burst.datagram_bytes)
        ::setsockopt(socket, SOL_UDP, UDP_SEGMENT, &burst.datagram_bytes, sizeof(int));
    const std::vector<std::byte> from(static_cast<std::size_t>(burst.bytes));
    std::int64_t sent = 0, arrived = 0, lost = 0;
    auto told = MeasuringClock::now();
    while (true) {
        const bool is_news = ::recv(socket, &arrived, sizeof arrived, MSG_DONTWAIT) == sizeof arrived;
        if (is_news) told = MeasuringClock::now();
        if (sent - arrived - lost + burst.bytes <= under_way_max) {
            if (::send(socket, from.data(), from.size(), 0) > 0) sent += burst.bytes; // a refused one is sent again
        } else if (!is_news && MeasuringClock::now() - told > lost_after) {
            lost = sent - arrived;
        }
    }
}

void tell_sender(int socket, std::uint64_t arrived, std::uint64_t& told) {
    if (arrived - told < told_each) return;
    told = arrived;
    (void)::send(socket, &told, sizeof told, MSG_DONTWAIT);
}

} // namespace kumi::bench
