#include "kumi/engine/future/progress_link.hpp"

#include "kumi/engine/progress/progress.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace kumi::engine {

Progress::Progress() : link_(std::make_shared<ProgressLink>(*this)) { ProgressLink::remember(link_); }
Progress::~Progress() {
    if (!link_->has_ended()) end();
}

void Progress::end() noexcept {
    ProgressLink::forget(*link_);
    link_->end();
}

namespace {

/// The jobs of this process, in the order in which they were joined. A promise that the program makes names no job, and
/// a process may join only one: so this is the only state that all jobs of a process share.
struct JoinedJobs {
    struct Joined {
        std::thread::id by;
        std::shared_ptr<ProgressLink> link;
    };
    std::mutex mutex;
    std::vector<Joined> all;
};

JoinedJobs& joined_jobs() {
    static JoinedJobs& jobs = *new JoinedJobs; // never destroyed: a job may be static, and end after it
    return jobs;
}

} // namespace

void ProgressLink::end() noexcept {
    constexpr std::chrono::microseconds between_looks{50};
    has_ended_.store(true); // partner: the constructor of Use
    while (uses_.load() != 0) {
        progress_.wake(); // threads in wait_until() look at has_ended()
        std::this_thread::sleep_for(between_looks);
    }
}

std::shared_ptr<ProgressLink> ProgressLink::current() {
    JoinedJobs& jobs = joined_jobs();
    const std::lock_guard lock(jobs.mutex);
    const auto own = std::find_if(jobs.all.rbegin(), jobs.all.rend(), [](const JoinedJobs::Joined& joined) {
        return joined.by == std::this_thread::get_id();
    });
    if (own != jobs.all.rend()) return own->link;
    return jobs.all.empty() ? nullptr : jobs.all.back().link;
}

void ProgressLink::remember(const std::shared_ptr<ProgressLink>& link) {
    JoinedJobs& jobs = joined_jobs();
    const std::lock_guard lock(jobs.mutex);
    jobs.all.push_back({std::this_thread::get_id(), link});
}

void ProgressLink::forget(const ProgressLink& link) noexcept {
    JoinedJobs& jobs = joined_jobs();
    const std::lock_guard lock(jobs.mutex);
    std::erase_if(jobs.all, [&](const JoinedJobs::Joined& joined) { return joined.link.get() == &link; });
}

} // namespace kumi::engine
