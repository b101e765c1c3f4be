#include "kumi/device/mpi/channel.hpp"

#include "kumi/base/log.hpp"

#include <fmt/ranges.h>

namespace kumi::device::mpi {

using namespace std::chrono_literals;

namespace {

constexpr Duration others_wait_max = 2s;  // for the other nodes to leave
constexpr Duration sending_wait_max = 8s; // in addition, until everything was sent
constexpr Duration finalize_silence_max = 10s; // then the node reports for which nodes it waits

} // namespace

MpiChannel::MpiChannel(MPI_Comm own, const Options& options)
    : endpoint_(std::make_unique<Endpoint>(own, options)), attachment_(new Attachment) {
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_deleted, &key_, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, key_, attachment_);
}

MpiChannel::~MpiChannel() {
    attachment_->is_open = false;
    if (endpoint_->close(now() + others_wait_max) ||
        (endpoint_->is_sending() && endpoint_->close(now() + sending_wait_max)))
        MPI_Comm_delete_attr(MPI_COMM_SELF, key_);
    else
        attachment_->left_behind = std::move(endpoint_);
    MPI_Comm_free_keyval(&key_);
}

int MpiChannel::on_deleted(MPI_Comm, int, void* value, void*) noexcept {
    const std::unique_ptr<Attachment> attachment(static_cast<Attachment*>(value));
    if (attachment->is_open)
        MPI_Abort(
            MPI_COMM_WORLD,
            fail(error("MPI_Finalize was called by a node that had not left its job: let kumi::Job end before that")));
    Endpoint* const endpoint = attachment->left_behind.get();
    if (endpoint == nullptr || endpoint->close(now() + finalize_silence_max)) return MPI_SUCCESS;
    // MPI_Finalize would not end either before the others call it, and a node that calls it without having left ends
    // the program.
    const auto staying = endpoint->staying();
    base::log_warning("node {} waits in MPI_Finalize for others to leave the job{}{}", endpoint->self(),
                      staying.empty() ? "" : ": nodes ", fmt::join(staying, ", "));
    endpoint->close(never);
    return MPI_SUCCESS;
}

} // namespace kumi::device::mpi
