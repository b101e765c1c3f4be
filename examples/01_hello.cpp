// Every node greets node 0.      kumi run -n 4 ./01_hello
#include <fmt/format.h>
#include <kumi/kumi.hpp>
#include <string>

int main() {
    auto job = kumi::Job::join();
    if (!job) return kumi::fail(job.error());

    kumi::Node greetings = 0;
    job->on_message([&](kumi::Message& message) {
        fmt::print("{}\n", kumi::text_of(message.bytes()));
        ++greetings;
    });

    const std::string greeting = fmt::format("hello from node {} of {} on {}", job->node(), job->nodes(), job->host());
    if (auto sent = job->send(0, kumi::bytes_of(greeting)); !sent) return kumi::fail(sent.error());
    if (job->node() == 0) job->wait_until([&] { return greetings == job->nodes(); });
}
