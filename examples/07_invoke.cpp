// Functions called on other nodes; what they answer, or throw, comes back.      kumi run -n 4 ./07_invoke
#include <fmt/format.h>
#include <kumi/functions.hpp>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

int main() {
    // Arguments and answers are values of almost any type.
    kumi::Handlers handlers;
    const auto count_words = handlers.function("count words", [](const std::vector<std::string>& lines) {
        std::map<std::string, int> counts;
        for (const std::string& line : lines) {
            std::istringstream words(line);
            for (std::string word; words >> word;) ++counts[word];
        }
        return counts;
    });
    const auto divide = handlers.function("divide", [](double a, double b) {
        if (b == 0) throw std::domain_error(fmt::format("{} by nothing", a));
        return a / b;
    });

    auto job = kumi::must(kumi::Job::join(std::move(handlers)));
    if (job.node() == 0) {
        const kumi::Node other = job.nodes() - 1;
        auto counts = job.invoke(other, count_words, std::vector<std::string>{"the cat and the dog", "and the mouse"});
        for (const auto& [word, count] : kumi::must(counts.get())) fmt::print("{} {}\n", count, word); // get() waits

        const auto text = [](kumi::Result<double> got) { return fmt::format("an eighth is {}", kumi::must(got)); };
        fmt::print("{}\n", kumi::must(job.invoke(other, divide, 1.0, 8.0).then(text).get()));

        for (auto& answer : job.invoke_all(divide, 1.0, 0.0)) // on all nodes at once
            if (const auto got = answer.get(); !got) fmt::print("{}\n", got.error().text());
    }
    kumi::must(job.barrier()); // all nodes answer until node 0 is done
}
