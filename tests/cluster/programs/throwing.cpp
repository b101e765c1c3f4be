// Functions for messages that replace themselves, throw what is no std::exception, and keep what they got: "pm" without
// the engine, "job" with it. A job of one node, which sends to itself. Prints what was heard.

#include "kumi/kumi.hpp"

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace {

template <class AnyJob>
int run(AnyJob job) {
    std::vector<int> heard;
    kumi::KeptMessage kept;
    const auto number_of = [](kumi::Message& message) {
        std::uint32_t number = 0;
        return kumi::read_value(message.bytes(), number) ? static_cast<int>(number) : -1;
    };
    job.on_message([&](kumi::Message& message) {
        heard.push_back(number_of(message));
        if (heard.size() == 1) throw std::runtime_error("the first");
        kept = message.keep();
        job.on_message([&](kumi::Message& next) { heard.push_back(100 + number_of(next)); });
        throw 5;
    });
    for (std::uint32_t number = 0; number < 4; ++number) kumi::must(job.send(0, kumi::bytes_of(number)));
    const bool all = job.wait_until([&] { return heard.size() == 4; }, kumi::now() + std::chrono::seconds(20));
    std::uint32_t number = 0;
    const bool is_kept = kumi::read_value(kept.bytes(), number) && number == 1;
    for (const int one : heard) std::printf("%d ", one);
    std::printf("%s %s\n", all ? "all" : "not all", is_kept ? "kept" : "not kept");
    kept = {};
    return all ? 0 : 1;
}

} // namespace

int main(int count, char** words) {
    if (count > 1 && std::string_view(words[1]) == "pm") return run(kumi::must(kumi::PmJob::join()));
    return run(kumi::must(kumi::Job::join()));
}
