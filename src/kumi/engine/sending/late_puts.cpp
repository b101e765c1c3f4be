#include "kumi/engine/sending/late_puts.hpp"

#include "kumi/base/sync/thread_number.hpp"
#include "kumi/engine/dispatcher.hpp"

#include <array>
#include <memory>
#include <new>

namespace kumi::engine {

class LatePuts::LatePut final : public Errand {
public:
    LatePut(LatePuts& puts, Node to, const Put& head, Bytes data) noexcept
        : puts_(puts), to_(to), thread_(base::thread_number()), head_(head), size_(data.size()) {
        kumi::copy_bytes(data_.data(), data);
    }

private:
    void run(const Turn& turn) noexcept override {
        Dispatcher& dispatcher = puts_.dispatcher_;
        const Bytes data(data_.data(), size_);
        if (!puts_.port_.queue_for(turn, thread_, to_, kind_in_service(Kind::put), head_, data))
            return dispatcher.operations().note_lost(turn, to_, thread_);
        // The target waits for the notice, and this node may send nothing else for long.
        if (head_.notice.kind != Notice::Kind::none) dispatcher.channel().flush();
    }

    LatePuts& puts_;
    Node to_;
    std::uint32_t thread_;
    Put head_;
    std::size_t size_;
    std::array<std::byte, bytes_max> data_;
};

bool LatePuts::try_leave(Node to, const Put& head, Bytes data) noexcept {
    TurnLock& lock = dispatcher_.loop().turn_lock();
    if (!lock.takes_errands() || data.size() > bytes_max || has_losses_.load(std::memory_order_relaxed)) return false;
    if (dispatcher_.seems_crowded(to)) return false; // the thread is to wait for room
    std::unique_ptr<Errand> put(new (std::nothrow) LatePut(*this, to, head, data));
    if (!put) return false;
    lock.leave_errand(std::move(put));
    return true;
}

} // namespace kumi::engine
