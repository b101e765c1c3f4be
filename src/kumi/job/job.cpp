#include "kumi/job/job.hpp"

#include "kumi/boot/session.hpp"
#include "kumi/engine/core.hpp"
#include "kumi/engine/meet.hpp"
#include "kumi/base/machine.hpp"
#include "kumi/base/number_text.hpp"
#include "kumi/job/opening.hpp"

#include <cstdlib>
#include <string_view>

namespace kumi {
namespace {

/// KUMI_PROGRESS: on, off, or the core that the background thread is bound to.
Result<engine::DriveOptions> progress_from_environment() {
    const char* const text = std::getenv("KUMI_PROGRESS");
    const std::string_view wanted = text != nullptr ? text : "on";
    if (wanted == "on") return engine::DriveOptions{};
    if (wanted == "off") return engine::DriveOptions{.in_background = false};
    const auto core = base::number_in<unsigned>(wanted);
    if (!core) return error("KUMI_PROGRESS={}: say on, off, or the number of a core for the background thread", wanted);
    return engine::DriveOptions{.core = *core};
}

} // namespace

Job::Job(std::unique_ptr<PmJob> membership, std::unique_ptr<engine::Core> core) noexcept
    : Engine(std::move(core)), membership_(std::move(membership)) {}
Job::Job(Job&&) noexcept = default;

Job::~Job() {
    if (membership_) close(); // before the channel
}

Result<Job> Job::join(Handlers&& handlers) {
    const auto progress = progress_from_environment();
    if (!progress) return progress.error();
    auto joined = PmJob::join(true);
    if (!joined) return joined.error();
    auto membership = std::make_unique<PmJob>(*std::move(joined));
    boot::Session& session = membership->session();
    const auto give_up = [&](const Error& why) { return session.report_failure(why) ? why.as_told() : why; };
    auto core = engine::Core::open(membership->channel(), std::move(handlers), {membership->patience(), *progress});
    if (!core) return give_up(core.error());
    job::SessionMeeting meeting(session);
    if (auto met = engine::meet(**core, meeting, session.standing().host); !met) return give_up(met.error());
    (*core)->start();
    return Job(std::move(membership), *std::move(core));
}

const std::string& Job::host() const noexcept { return membership_->host(); }

void Job::on_message(std::function<void(Message&)> handler) { core().on_message(std::move(handler)); }

Result<void> Job::send_pieces(Node to, std::span<const Bytes> pieces) { return core().send_message(to, pieces); }

} // namespace kumi
