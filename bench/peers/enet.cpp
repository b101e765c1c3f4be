// udp.rate with ENet: reliable packets, of which ENet puts several into a datagram.

#include "peers/stream.hpp"

#include <cstdint>
#include <enet/enet.h>

namespace {

using namespace kumi::bench;

// ENet queues without a bound. So the receiver reports its progress, and the sender stays at most this far ahead.
constexpr std::uint32_t ahead_max = 16'384;
constexpr std::uint32_t acknowledged_each = 2'048;

ENetAddress address_of(const char* host) {
    ENetAddress address{};
    enet_address_set_host_ip(&address, host);
    address.port = stream_port;
    return address;
}

int take(const char* host_name, const char* row) {
    const ENetAddress address = address_of(host_name);
    ENetHost* host = enet_host_create(&address, 1, 1, 0, 0);
    if (host == nullptr) return std::fprintf(stderr, "enet_host_create failed\n"), 1;
    std::uint64_t count = 0;
    const auto take_until = [&](auto deadline) {
        ENetEvent event;
        while (MeasuringClock::now() < deadline) {
            for (int i = 0; i < 64 && enet_host_service(host, &event, 0) > 0; ++i) {
                if (event.type != ENET_EVENT_TYPE_RECEIVE) continue;
                enet_packet_destroy(event.packet);
                if (++count % acknowledged_each == 0)
                    enet_peer_send(event.peer, 0, enet_packet_create(&count, sizeof count, ENET_PACKET_FLAG_RELIABLE));
            }
        }
    };
    report(row, per_second(count, take_until) * 1e-6);
    return 0;
}

int give(const char* host_name) {
    ENetHost* host = enet_host_create(nullptr, 1, 1, 0, 0);
    const ENetAddress address = address_of(host_name);
    ENetPeer* peer = host == nullptr ? nullptr : enet_host_connect(host, &address, 1, 0);
    if (peer == nullptr) return std::fprintf(stderr, "enet_host_connect failed\n"), 1;
    const char message[small_message_bytes] = {};
    std::uint64_t sent = 0, taken = 0;
    bool connected = false;
    while (true) {
        ENetEvent event;
        while (enet_host_service(host, &event, 0) > 0) {
            if (event.type == ENET_EVENT_TYPE_CONNECT) connected = true;
            if (event.type == ENET_EVENT_TYPE_DISCONNECT) return 0;
            if (event.type != ENET_EVENT_TYPE_RECEIVE) continue;
            taken += acknowledged_each;
            enet_packet_destroy(event.packet);
        }
        for (int i = 0; connected && i < 256 && sent - taken < ahead_max; ++i, ++sent)
            enet_peer_send(peer, 0, enet_packet_create(message, sizeof message, ENET_PACKET_FLAG_RELIABLE));
    }
}

} // namespace

int main(int argc, char** argv) {
    if (enet_initialize() != 0) return 1;
    return stream_main(argc, argv, take, give);
}
