#pragma once

// An endpoint as a channel that can be closed while other nodes go on. What cannot end before they leave too is left to
// MPI_Finalize, by an attribute of MPI_COMM_SELF: MPI_Finalize deletes these first.

#include "kumi/base/result.hpp"
#include "kumi/device/mpi/endpoint.hpp"
#include "kumi/pm/channel.hpp"

#include <memory>

namespace kumi::device::mpi {

class MpiChannel final : public pm::Channel {
public:
    /// `own` must not be used by anything else.
    MpiChannel(MPI_Comm own, const Options& options);
    ~MpiChannel() override;

    Node self() const noexcept override { return endpoint_->self(); }
    Node nodes() const noexcept override { return endpoint_->nodes(); }
    const pm::Traits& traits() const noexcept override { return endpoint_->traits(); }
    pm::SendSlot try_reserve(Node to, std::size_t bytes) noexcept override { return endpoint_->try_reserve(to, bytes); }
    void commit(const pm::SendSlot& slot) noexcept override { endpoint_->commit(slot); }
    void cancel(const pm::SendSlot& slot) noexcept override { endpoint_->cancel(slot); }
    std::size_t poll(pm::Handler handler, std::size_t messages_max) noexcept override {
        return endpoint_->poll(handler, messages_max);
    }
    bool arm() noexcept override { return endpoint_->arm(); }
    void sleep(Instant deadline) noexcept override { endpoint_->sleep(deadline); }
    void wake() noexcept override { endpoint_->wake(); }
    bool lost(Node node) const noexcept override { return endpoint_->lost(node); }
    pm::Traffic sent(Node to) const noexcept override { return endpoint_->sent(to); }
    std::vector<pm::Counter> counters() const override { return endpoint_->counters(); }

private:
    /// The value of the attribute, which MPI_Finalize deletes.
    struct Attachment {
        bool is_open = true;
        std::unique_ptr<Endpoint> left_behind;
    };
    static int on_deleted(MPI_Comm, int, void* attachment, void*) noexcept;

    std::unique_ptr<Endpoint> endpoint_;
    int key_ = MPI_KEYVAL_INVALID;
    Attachment* attachment_; // owned by the attribute
};

} // namespace kumi::device::mpi
