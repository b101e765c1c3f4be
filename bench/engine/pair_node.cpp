#include "engine/node.hpp"

#include "contestant/core.hpp"
#include "engine/onesided.hpp"

#include "kumi/kumi.hpp"

#include <thread>

namespace kumi::bench {
namespace {

constexpr Node target = 1;

/// The memory of node 1, as node 0 uses it.
class RemoteWords {
public:
    explicit RemoteWords(Job& job)
        : job_(job), words_(must(job.memory().segment<std::uint64_t>(large_words))),
          sum_(must(job.memory().segment<std::uint64_t>(1))) {}

    void put(const std::uint64_t* from, std::size_t bytes) {
        must(job_.memory().put(words_.at(target), std::span(from, bytes / sizeof *from)));
    }
    void get(std::uint64_t* to, std::size_t bytes) {
        must(job_.memory().get(words_.at(target), std::span(to, bytes / sizeof *to)));
    }
    void flush() { must(job_.sync()); }
    std::uint64_t fetch_add() { return must(job_.memory().fetch_add(sum_.at(target), 1)); }

    /// Seconds of the call alone, of a put that is not waited for.
    double issue_seconds() {
        constexpr std::uint64_t puts = 64; // then the node waits until they are done, and that time is not counted
        Seconds issuing{};
        std::uint64_t issued = 0;
        const auto end = MeasuringClock::now() + engine_window;
        for (auto start = MeasuringClock::now(); start < end; start = MeasuringClock::now()) {
            for (std::uint64_t i = 0; i < puts; ++i) must(job_.memory().write(words_.at(target, i), i));
            issuing += MeasuringClock::now() - start;
            issued += puts;
            flush();
        }
        return issuing.count() / static_cast<double>(issued);
    }
    /// The same for each of two threads that do so at once, on a core each.
    double issue_seconds_of_two() {
        double seconds[2] = {};
        const auto issue = [&](unsigned thread) {
            unbind();
            bind_to_core(thread);
            seconds[thread] = issue_seconds();
        };
        std::thread first(issue, 0), second(issue, 1);
        first.join();
        second.join();
        return (seconds[0] + seconds[1]) / 2;
    }

private:
    Job& job_;
    Segment<std::uint64_t> words_;
    Segment<std::uint64_t> sum_;
};

/// A word goes to and fro with the flag that signals it, in one cache line.
class Notes {
public:
    explicit Notes(Job& job) : job_(job), words_(must(job.memory().segment<std::uint64_t>(2))) {}

    /// Seconds of one way.
    double seconds(std::uint64_t count) {
        must(job_.barrier());
        const auto start = MeasuringClock::now();
        for (const std::uint64_t last = number_ + count; number_ < last;) {
            ++number_;
            if (job_.node() == 0) send();
            must(job_.memory().wait(words_[1], number_));
            if (words_[0] != number_) must(Result<void>(error("a flag came before what it tells of")));
            if (job_.node() == 1) send();
        }
        return Seconds(MeasuringClock::now() - start).count() / static_cast<double>(count) / 2;
    }

private:
    void send() {
        const Node other = 1 - job_.node();
        must(job_.memory().write(words_.at(other), number_, Notice::set(words_.at(other, 1), number_)));
    }

    Job& job_;
    Segment<std::uint64_t> words_; // the word, and its flag
    std::uint64_t number_ = 0;
};

} // namespace

int pair_node(const std::string& place) {
    std::uint64_t answered = 0;
    Handlers handlers;
    const auto pong = handlers.add("bench.pong", [&](Call&, std::uint64_t number) { answered = number; });
    const auto ping =
        handlers.add("bench.ping", [pong](Call& call, std::uint64_t number) { call.reply(pong, number); });
    Job job = must(Job::join(std::move(handlers)));
    const bool in_lab = place != "shmem";
    if (in_lab) bind_to_core(job.node()); // hosts of a lab, which share a machine, do not know of each other
    const auto row = [&](const char* what) { return "engine." + std::string(what) + "." + place; };

    Notes notes(job);
    const std::uint64_t count = in_lab ? 2'000 : 20'000;
    notes.seconds(count / 10);
    const double one_way = notes.seconds(count);
    RemoteWords words(job);
    int code = 0;
    if (job.node() == 0) {
        report(row("put_notify.8").c_str(), one_way * 1e9);
        std::uint64_t asked = 0;
        const double there_and_back = seconds_per_call(
            [&] {
                must(job.send(target, ping, ++asked));
                job.wait_until([&] { return answered == asked; });
            },
            engine_window);
        report(row("am").c_str(), there_and_back / 2 * 1e9);
        report(row("issue.8").c_str(), words.issue_seconds() * 1e9);
        code = measure_onesided(words, place);
        // Last: from now on two threads of the program use the engine, and all calls take a little longer.
        report(row("issue_of_two.8").c_str(), words.issue_seconds_of_two() * 1e9);
    }
    must(job.barrier());
    return code;
}

} // namespace kumi::bench
