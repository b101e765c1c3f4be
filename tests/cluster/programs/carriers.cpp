// Everybody talks to everybody; then each node says by what: "3: shmem lan - myrinet".

#include "kumi/kumi.hpp"

#include <cstdio>
#include <string>

int main() {
    auto job = kumi::PmJob::join();
    if (!job) return kumi::fail(job.error());
    kumi::Node heard = 0;
    job->on_message([&](kumi::Message&) { ++heard; });
    std::string line = std::to_string(job->node()) + ":";
    for (kumi::Node to = 0; to < job->nodes(); ++to) {
        if (auto sent = job->send(to, kumi::bytes_of(to)); !sent) return kumi::fail(sent.error());
        line += ' ';
        line += to == job->node() ? "-" : job->channel().carrier(to);
    }
    const bool all = job->wait_until([&] { return heard == job->nodes(); }, kumi::now() + std::chrono::seconds(30));
    std::printf("%s%s\n", line.c_str(), all ? "" : " (not all were heard)");
    return all ? 0 : 1;
}
