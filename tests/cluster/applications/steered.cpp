// A simulation that is steered while it runs: heat spreads along a ring, and its rate changes when somebody asks.
//
//     kumi run -n 3 ./steered [CELLS]
//
// Requests go to node 0 as active messages, at any time. Before each step node 0 broadcasts the rate of this step, so
// all nodes change it at the same step. Node 0 writes down the rates, and repeats the run alone: all cells must have
// the same bits.
#include "applications.hpp"

#include <atomic>
#include <fmt/format.h>
#include <span>
#include <thread>
#include <vector>

namespace {

/// What node 0 says before each step.
struct Order {
    double rate;
    std::uint64_t is_last;
};

constexpr double rates_asked[] = {0.3, 0.05, 0.2}; // one after the other
constexpr std::size_t steps_min = 200;

/// One step. The first and the last of `cells` are copies of the cells next to the others.
void advance(std::vector<double>& cells, double rate) {
    double before = cells[0];
    for (std::size_t i = 1; i + 1 < cells.size(); ++i) {
        const double here = cells[i];
        cells[i] = here + rate * (before - 2 * here + cells[i + 1]);
        before = here;
    }
}

/// Cells of `part`, with room for a copy at each end.
std::vector<double> initial(Part part) {
    std::vector<double> cells(part.size() + 2);
    for (std::size_t i = 0; i < part.size(); ++i) cells[i + 1] = static_cast<double>(random_at(part.first + i) % 1000);
    return cells;
}

} // namespace

int main(int count, char** words) {
    const std::size_t size = number_in(count, words, 1, 1003);
    std::atomic<double> rate_wanted = 0.1;
    std::atomic<std::size_t> requests = 0;
    kumi::Handlers handlers;
    const auto steer = handlers.add("steer", [&](kumi::Call&, double rate) { rate_wanted = rate, ++requests; });
    auto job = kumi::must(kumi::Job::join(std::move(handlers)));
    auto world = job.world();
    const kumi::Node self = job.node(), nodes = job.nodes();
    const kumi::Node next = (self + 1) % nodes, previous = (self + nodes - 1) % nodes;
    if (size < nodes) return kumi::fail(kumi::error("{} cells are not one for each of {} nodes", size, nodes));

    // A person who watches the last node from its first step on, and asks for another rate now and then.
    std::jthread person;
    const auto watch = [&] {
        for (const double rate : rates_asked) {
            std::this_thread::sleep_for(std::chrono::milliseconds(3));
            kumi::must(job.send(0, steer, rate));
        }
    };

    std::vector<double> cells = initial(part_of(size, self, nodes)), rates;
    for (Order order{}; order.is_last == 0;) {
        if (self == 0) {
            order.is_last = requests == std::size(rates_asked) && rates.size() >= steps_min; // before the rate is read
            order.rate = rate_wanted;
        }
        kumi::must(world.broadcast(0, std::span(&order, 1)));
        rates.push_back(order.rate);
        const auto ends = std::span(cells);
        const auto inner = ends.subspan(1, ends.size() - 2);
        kumi::must(world.sendrecv(next, inner.last(1), previous, ends.first(1)));
        kumi::must(world.sendrecv(previous, inner.first(1), next, ends.last(1)));
        advance(cells, order.rate);
        if (self == nodes - 1 && rates.size() == 1) person = std::jthread(watch);
    }
    const auto inner = std::span(cells).subspan(1, cells.size() - 2);
    const std::vector<double> all = joined(kumi::must(world.gatherv(0, inner)));
    if (self != 0) return 0;

    std::vector<double> serial = initial({0, size});
    std::size_t changes = 0;
    for (std::size_t step = 0; step < rates.size(); ++step) {
        if (step > 0 && rates[step] != rates[step - 1]) ++changes;
        serial.front() = serial[size], serial.back() = serial[1];
        advance(serial, rates[step]);
    }
    serial.erase(serial.begin()), serial.pop_back();
    if (auto equal = check_equal(all, serial); !equal) return kumi::fail(equal.error());
    if (changes == 0 || rates.back() != rates_asked[std::size(rates_asked) - 1])
        return kumi::fail(kumi::error("{} changes of the rate, and {} at the end", changes, rates.back()));
    fmt::print("steered simulation on {} nodes: {} cells, {} steps, {} changes, as the serial program\n", nodes, size,
               rates.size(), changes);
}
