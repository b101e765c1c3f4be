// How long does a message take between every two nodes, and over what?      kumi run -n 4 ./matrix
//
// Two at a time throw a ball; node 0 says who is next, and prints what they found.
#include <cctype>
#include <cstring>
#include <fmt/format.h>
#include <kumi/kumi.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace {

enum class Kind : std::uint32_t { go, ball, result };

struct Note {
    Kind kind;
    kumi::Node other; // go: whom to play with
    double one_way_us;
    char carrier[24];
};

constexpr int throws = 100;

} // namespace

int main() {
    auto job = kumi::PmJob::join();
    if (!job) return kumi::fail(job.error());
    const kumi::Node nodes = job->nodes();

    int balls = 0;
    std::optional<kumi::Node> told;
    std::optional<Note> result;
    bool throws_back = true;
    job->on_message([&](kumi::Message& message) {
        Note note{};
        if (!kumi::read_value(message.bytes(), note)) return;
        if (note.kind == Kind::go) told = note.other;
        if (note.kind == Kind::result) result = note;
        if (note.kind != Kind::ball) return;
        ++balls;
        if (throws_back) job->channel().try_send(message.source(), message.bytes());
    });

    // Plays with `other`, who throws back.
    const auto play = [&](kumi::Node other) {
        Note note{.kind = Kind::ball};
        throws_back = false;
        const auto start = kumi::now();
        for (int i = 0; i < throws; ++i) {
            balls = 0;
            (void)job->send(other, kumi::bytes_of(note));
            job->wait_until([&] { return balls == 1; });
        }
        throws_back = true;
        note.kind = Kind::result;
        note.one_way_us = std::chrono::duration<double, std::micro>(kumi::now() - start).count() / (2 * throws);
        job->channel().carrier(other).copy(note.carrier, sizeof note.carrier - 1);
        return note;
    };

    if (job->node() != 0) { // until told to play with oneself
        while (true) {
            job->wait_until([&] { return told.has_value(); });
            const kumi::Node other = *std::exchange(told, std::nullopt);
            if (other == job->node()) return 0;
            if (auto sent = job->send(0, kumi::bytes_of(play(other))); !sent) return kumi::fail(sent.error());
        }
    }
    std::map<std::string, char> letters; // of carriers
    const auto letter = [&](const std::string& carrier) {
        const auto known = letters.find(carrier);
        if (known != letters.end()) return known->second;
        const char first = static_cast<char>(std::toupper(static_cast<unsigned char>(carrier[0])));
        return letters[carrier] = std::isalpha(static_cast<unsigned char>(first)) != 0
                                      ? first
                                      : static_cast<char>('A' + letters.size());
    };
    fmt::print("one way, us");
    for (kumi::Node to = 0; to < nodes; ++to) fmt::print(" {:>7}", to);
    for (kumi::Node from = 0; from < nodes; ++from) {
        fmt::print("\n{:>11}", from);
        for (kumi::Node to = 0; to < nodes; ++to) {
            if (from == to) {
                fmt::print(" {:>7}", '-');
                continue;
            }
            result.reset();
            if (from == 0) result = play(to);
            else if (auto sent = job->send(from, kumi::bytes_of(Note{.kind = Kind::go, .other = to})); !sent)
                return kumi::fail(sent.error());
            job->wait_until([&] { return result.has_value(); });
            fmt::print(" {:>5.{}f} {}", result->one_way_us, result->one_way_us < 10 ? 2 : 0, letter(result->carrier));
            std::fflush(stdout);
        }
    }
    fmt::print("\n");
    for (const auto& [carrier, sign] : letters) fmt::print("  {} = {}\n", sign, carrier);
    for (kumi::Node node = 1; node < nodes; ++node)
        if (auto sent = job->send(node, kumi::bytes_of(Note{.kind = Kind::go, .other = node})); !sent)
            return kumi::fail(sent.error());
    return 0;
}
