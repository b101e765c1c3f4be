#include "kumi/job/pm_job.hpp"

#include "kumi/base/log.hpp"
#include "kumi/base/system/machine.hpp"
#include "kumi/job/membership.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace kumi {

struct PmJob::State {
    explicit State(job::Membership&& its) noexcept : membership(std::move(its)) {}

    job::Membership membership; // before the messages that its channel holds
    std::function<void(Message&)> on_message;
    std::optional<std::function<void(Message&)>> next_on_message; // set while the other one runs
    std::vector<KeptMessage> early; // arrived before there was a handler
    bool in_handler = false;

    /// No exception may leave this: the channel calls it.
    void operator()(Message& message) noexcept {
        if (!on_message) return early.push_back(message.keep());
        in_handler = true;
        try {
            on_message(message);
        } catch (...) {
            base::log_warning("on_message threw at a message of node {}: {}", message.source(),
                              error_of_thrown(ErrorCode::refused).text());
        }
        in_handler = false;
        if (next_on_message) on_message = *std::exchange(next_on_message, std::nullopt);
    }
};

PmJob::PmJob(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
PmJob::PmJob(PmJob&&) noexcept = default;
PmJob::~PmJob() = default;

Result<PmJob> PmJob::join() {
    auto membership = job::Membership::join();
    if (!membership) return membership.error();
    membership->explain_signals();
    return PmJob(std::make_unique<State>(*std::move(membership)));
}

Node PmJob::node() const noexcept { return state_->membership.standing().node; }
Node PmJob::nodes() const noexcept { return state_->membership.standing().nodes; }
const std::string& PmJob::host() const noexcept { return state_->membership.standing().host; }
pm::Channel& PmJob::channel() noexcept { return state_->membership.channel(); }
pm::Handler PmJob::handler() noexcept { return *state_; }
pm::Patience PmJob::patience() const noexcept { return state_->membership.patience(); }

void PmJob::on_message(std::function<void(Message&)> handler) {
    if (state_->in_handler) { // it must outlive its own call
        state_->next_on_message = std::move(handler);
        return;
    }
    state_->on_message = std::move(handler);
    for (KeptMessage& kept : std::exchange(state_->early, {})) {
        Message message(kept.source(), kept.bytes());
        (*state_)(message);
    }
}

void PmJob::flush() noexcept { channel().flush(); }

std::size_t PmJob::poll() { return channel().poll(handler(), pm::all_messages); }

Result<void> PmJob::check(Node to, std::size_t bytes) const {
    KUMI_ASSERT(!state_->in_handler); // inside a handler: channel().try_send()
    if (to >= nodes())
        return error(ErrorCode::not_found, "sending to node {}: this job has nodes 0 to {}", to, nodes() - 1);
    const std::size_t bytes_max = state_->membership.channel().traits().message_bytes_max;
    if (bytes > bytes_max)
        return error(ErrorCode::too_large, "sending {} to node {}: the largest message here is {}; send it in parts{}",
                     base::readable_bytes_beside(bytes, bytes_max), to, base::readable_bytes(bytes_max),
                     state_->membership.channel().traits().device == "shmem" ? ", or raise KUMI_SHMEM_MEMORY" : "");
    return {};
}

Result<void> PmJob::wait_for_room(Node to) {
    if (channel().lost(to)) return error(ErrorCode::node_lost, "sending to node {}: it has left, or is lost", to);
    if (poll() != 0) return {};
    // Full, and nothing comes: let the receiver run.
    if (patience().spin_max > Duration{0}) pm::relax();
    else if (channel().arm()) channel().sleep(never);
    return {};
}

} // namespace kumi
