// Finds out what a network carries. Not a Kumi program.
//
//   probe echo PORT                     sends every datagram back; says "ready" first
//   probe ask ADDRESS PORT COUNT BYTES WAIT
//                                       sends COUNT datagrams, one after the other, and waits so many milliseconds for
//                                       each to come back; prints how many did, and the fastest one's microseconds
#include <algorithm>
#include <arpa/inet.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

int echo(int socket, sockaddr_in address) {
    address.sin_addr.s_addr = INADDR_ANY;
    if (bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return perror("bind"), 1;
    std::puts("ready");
    std::fflush(stdout);
    std::vector<char> buffer(65536);
    while (true) {
        sockaddr_in from{};
        socklen_t size = sizeof from;
        const ssize_t got =
            recvfrom(socket, buffer.data(), buffer.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
        if (got > 0)
            sendto(socket, buffer.data(), static_cast<size_t>(got), 0, reinterpret_cast<sockaddr*>(&from), size);
    }
}

/// Microseconds until the datagram with that number was back; -1 when it was not.
long round_trip(int socket, const sockaddr_in& address, std::vector<char>& datagram, int number, long wait_ms) {
    std::memcpy(datagram.data(), &number, sizeof number);
    const auto start = Clock::now();
    sendto(socket, datagram.data(), datagram.size(), 0, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    std::vector<char> back(datagram.size());
    while (true) {
        const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
        pollfd readable{socket, POLLIN, 0};
        if (poll(&readable, 1, static_cast<int>(std::max<long>(wait_ms - passed, 0))) <= 0) return -1;
        int found = -1;
        if (recv(socket, back.data(), back.size(), 0) > 0) std::memcpy(&found, back.data(), sizeof found);
        if (found == number) return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
    }
}

} // namespace

int main(int argc, char** argv) {
    const int socket_number = socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    if (argc == 3 && std::strcmp(argv[1], "echo") == 0) {
        address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[2])));
        return echo(socket_number, address);
    }
    if (argc != 7 || inet_pton(AF_INET, argv[2], &address.sin_addr) != 1) return 2;
    address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[3])));
    std::vector<char> datagram(std::max<size_t>(sizeof(int), static_cast<size_t>(std::atoi(argv[5]))));
    long answers = 0, fastest = -1;
    for (int i = 0; i < std::atoi(argv[4]); ++i) {
        const long took = round_trip(socket_number, address, datagram, i, std::atol(argv[6]));
        if (took < 0) continue;
        ++answers;
        if (fastest < 0 || took < fastest) fastest = took;
    }
    std::printf("%ld %ld\n", answers, fastest);
}
