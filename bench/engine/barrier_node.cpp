#include "engine/node.hpp"

#include "contestant/measure.hpp"
#include "contestant/together.hpp"
#include "contestant/work.hpp"
#include "engine/compute.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/kumi.hpp"

#include <algorithm>
#include <sys/prctl.h>
#include <thread>
#include <vector>

namespace kumi::bench {
namespace {

double seconds_of(auto&& work) {
    const auto start = MeasuringClock::now();
    work();
    return Seconds(MeasuringClock::now() - start).count();
}

/// Seconds of a look at the clock, undisturbed.
double clock_seconds() {
    constexpr int batches = 20, looks = 100;
    double least = 1;
    for (int batch = 0; batch < batches; ++batch)
        least = std::min(least, seconds_of([] {
                                    for (int i = 1; i < looks; ++i) (void)MeasuringClock::now();
                                }) / looks);
    return least;
}

/// A barrier that is hidden behind computation. Both numbers are relative to the time of a plain barrier.
struct Hidden {
    double visible; // time in calls, of a node that arrives, computes and waits
    double cost;    // by how much the computation takes longer, with what others do on the same cores
};

/// Measures this at one node, in short blocks. The median of the blocks counts, because others use this machine, too.
class Hiding {
public:
    Hiding(Job& job, Together& together, double barrier_seconds)
        : job_(job), together_(together), barrier_seconds_(barrier_seconds), busy_seconds_(3 * barrier_seconds),
          rounds_(static_cast<std::uint64_t>(busy_seconds_ * compute_rounds_per_second()) + 1),
          clock_seconds_(clock_seconds()),
          count_(together.as_first_says(count_in(block_seconds, barrier_seconds + busy_seconds_))) {}

    Hidden measure() {
        const auto compute_all = [this] { compute(rounds_); };
        const auto sleep = [this] { std::this_thread::sleep_for(Seconds(busy_seconds_)); };
        // With more nodes than cores, a node that computes keeps others from arriving. There the visible time is
        // measured with nodes that sleep instead, as if they computed on cores of their own.
        const double nodes_per_core = std::max(1.0, static_cast<double>(job_.nodes()) / base::cores_allowed());
        const bool has_cores = nodes_per_core == 1;
        const double round_seconds = 3 * nodes_per_core * std::max(block_seconds, barrier_seconds_ + busy_seconds_);
        const std::int64_t blocks =
            std::clamp<std::int64_t>(together_.as_first_says(count_in(1, round_seconds)), 5, 201);
        ::prctl(PR_SET_TIMERSLACK, 1);
        std::vector<double> visible, cost;
        for (std::int64_t block = 0; block < blocks; ++block) {
            must(job_.barrier());
            const double alone = each(seconds_of([&] {
                for (std::int64_t i = 0; i < count_; ++i) compute_all();
            }));
            const Block computed = behind_barriers(compute_all);
            cost.push_back((computed.whole - alone) / barrier_seconds_);
            visible.push_back((has_cores ? computed : behind_barriers(sleep)).in_calls / barrier_seconds_);
        }
        return {together_.mean(median_of(std::move(visible))), together_.mean(median_of(std::move(cost)))};
    }

private:
    static constexpr double block_seconds = 0.0005; // more if one barrier takes longer

    struct Block {
        double whole;
        double in_calls;
    };

    Block behind_barriers(auto&& work) {
        must(job_.barrier());
        Seconds in_calls{};
        const double whole = seconds_of([&] {
            for (std::int64_t i = 0; i < count_; ++i) {
                const auto start = MeasuringClock::now();
                const BarrierToken token = job_.arrive();
                const auto arrived = MeasuringClock::now();
                work();
                const auto waits = MeasuringClock::now();
                must(job_.wait(token));
                in_calls += (MeasuringClock::now() - waits) + (arrived - start);
            }
        });
        return {each(whole) - 4 * clock_seconds_, each(in_calls.count()) - 2 * clock_seconds_};
    }
    double each(double seconds) const { return seconds / static_cast<double>(count_); }

    Job& job_;
    Together& together_;
    double barrier_seconds_;
    double busy_seconds_;
    std::uint64_t rounds_;
    double clock_seconds_;
    std::int64_t count_;
};

} // namespace

int barrier_node(const std::string& place, bool is_hidden) {
    Job job = must(Job::join());
    Together together(job);
    double seconds = barrier_seconds(job, together);
    if (!is_hidden) {
        if (job.node() == 0) report(("engine.barrier." + place).c_str(), seconds * 1e6);
        return 0;
    }
    seconds = static_cast<double>(together.as_first_says(static_cast<std::int64_t>(seconds * 1e12))) * 1e-12;
    const Hidden hidden = Hiding(job, together, seconds).measure();
    if (job.node() != 0) return 0;
    report(("engine.barrier_hidden." + place).c_str(), 100 * std::max(hidden.visible, 0.0));
    report(("engine.barrier_cost." + place).c_str(), 100 * std::max(hidden.cost, 0.0));
    return 0;
}

} // namespace kumi::bench
