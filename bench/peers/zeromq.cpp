// udp.rate with ZeroMQ: PUSH and PULL over TCP. A thread of ZeroMQ puts messages together.

#include "contestant/core.hpp"
#include "peers/stream.hpp"

#include <cstdint>
#include <string>
#include <zmq.h>

namespace {

using namespace kumi::bench;

constexpr int queue_messages_max = 100'000;

std::string endpoint(const char* host) { return "tcp://" + std::string(host) + ":" + std::to_string(stream_port); }

int failed(const char* call) { return std::fprintf(stderr, "%s: %s\n", call, zmq_strerror(zmq_errno())), 1; }

int take(const char* host, const char* row) {
    void* socket = zmq_socket(zmq_ctx_new(), ZMQ_PULL);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &queue_messages_max, sizeof queue_messages_max);
    const int wait_ms = 10;
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    if (zmq_bind(socket, endpoint(host).c_str()) != 0) return failed("zmq_bind");
    std::uint64_t count = 0;
    const auto take_until = [&](auto deadline) {
        char message[small_message_bytes];
        while (MeasuringClock::now() < deadline)
            for (int i = 0; i < 64 && zmq_recv(socket, message, sizeof message, 0) > 0; ++i) ++count;
    };
    report(row, per_second(count, take_until) * 1e-6);
    std::fflush(stdout);
    std::_Exit(0); // does not wait for queued messages
}

int give(const char* host) {
    void* socket = zmq_socket(zmq_ctx_new(), ZMQ_PUSH);
    zmq_setsockopt(socket, ZMQ_SNDHWM, &queue_messages_max, sizeof queue_messages_max);
    const int soon_ms = 10;
    zmq_setsockopt(socket, ZMQ_RECONNECT_IVL, &soon_ms, sizeof soon_ms);
    if (zmq_connect(socket, endpoint(host).c_str()) != 0) return failed("zmq_connect");
    const char message[small_message_bytes] = {};
    while (zmq_send(socket, message, sizeof message, 0) >= 0) {
    }
    return failed("zmq_send");
}

} // namespace

int main(int argc, char** argv) {
    unbind(); // the threads of ZeroMQ would hinder each other on one core
    return stream_main(argc, argv, take, give);
}
