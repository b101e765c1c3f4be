// Node 0 sends node 1 large messages as fast as they go, until it is interrupted: bulk BYTES MEGABITS. Node 1 tells
// when more comes in a second than that, or no more; in the end whether all was right, and the most of a second. Node 0
// tells how many messages went in pieces.

#include "kumi/kumi.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

volatile std::sig_atomic_t interrupted = 0;

struct Head {
    std::uint64_t number;
    std::uint64_t is_last;
};

int send(kumi::PmJob& job, std::size_t bytes) {
    std::vector<std::byte> message(std::max(bytes, sizeof(Head)));
    for (Head head{0, 0}; head.is_last == 0; ++head.number) {
        head.is_last = interrupted != 0 ? 1 : 0;
        std::memset(message.data(), static_cast<int>(head.number), message.size());
        std::memcpy(message.data(), &head, sizeof head);
        if (auto sent = job.send(1, message); !sent) return kumi::fail(sent.error());
    }
    for (const auto& counter : job.channel().counters())
        if (counter.name == std::string_view("striped"))
            std::printf("%llu in pieces\n", static_cast<unsigned long long>(counter.value));
    return 0;
}

int receive(kumi::PmJob& job, double megabits) {
    std::uint64_t next = 0, wrong = 0, bytes = 0;
    bool is_over = false;
    job.on_message([&](kumi::Message& message) {
        Head head{};
        const bool is_whole = kumi::read_value(message.bytes(), head) && head.number == next;
        const kumi::Bytes rest = message.bytes().subspan(std::min(sizeof head, message.bytes().size()));
        // Enough to see a piece in the wrong place, and cheap.
        const std::size_t step = rest.size() / 61 + 1;
        bool is_right = is_whole;
        for (std::size_t i = 0; i < rest.size(); i += step) is_right = is_right && rest[i] == std::byte(head.number);
        if (!is_right) ++wrong;
        ++next;
        bytes += message.bytes().size();
        is_over = head.is_last != 0;
    });
    bool is_fast = false;
    double most = 0;
    while (!is_over && !job.channel().lost(0)) {
        const auto began = kumi::now();
        bytes = 0;
        job.wait_until([&] { return is_over; }, began + 1s);
        const double rate = static_cast<double>(bytes) * 8 / 1e6 / Seconds(kumi::now() - began).count();
        if (!is_over) most = std::max(most, rate);
        if (is_over || is_fast == (rate > megabits)) continue;
        is_fast = !is_fast;
        std::printf("%s: %.0f Mbit/s\n", is_fast ? "above" : "below", rate);
        std::fflush(stdout);
    }
    std::printf("%llu messages, %llu wrong%s\nmost: %.0f Mbit/s\n", static_cast<unsigned long long>(next),
                static_cast<unsigned long long>(wrong), is_over ? "" : ", and no end", most);
    return wrong == 0 && is_over ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    std::signal(SIGINT, [](int) { interrupted = 1; });
    if (argc != 3) return 2;
    auto job = kumi::PmJob::join();
    if (!job) return kumi::fail(job.error());
    return job->node() == 0 ? send(*job, std::strtoul(argv[1], nullptr, 10)) : receive(*job, std::atof(argv[2]));
}
