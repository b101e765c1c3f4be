#pragma once

// What an engine does while it makes progress: handles what has arrived, sends what waits, notices nodes that are lost,
// sends keep-alives to nodes that are silent, and runs functions of the program. The progress loop decides when and by
// which thread.

#include "kumi/base/function_ref.hpp"
#include "kumi/engine/progress/progress.hpp"
#include "kumi/engine/progress/progress_loop.hpp"
#include "kumi/pm/node.hpp"

#include <cstdint>

namespace kumi::engine {

class Dispatcher;
using pm::Node;

class EngineProgress final : public Progress, public Work {
public:
    explicit EngineProgress(Dispatcher& dispatcher) noexcept : dispatcher_(dispatcher) {}

    /// Handles what has arrived. Returns how many messages.
    std::size_t poll();
    /// The same for a thread that waits by looking again and again: the background leaves the work to it. Runs no
    /// functions.
    void look(const Turn& turn) noexcept;
    /// Handles what has arrived, unless this is inside a handler.
    void make_progress(const Turn& turn) noexcept;
    /// Sends what the channel holds back so that small messages share a packet.
    void flush();

    // Progress, for futures
    bool wait_until(base::FunctionRef<bool()> done, Instant deadline, const char* what = "waiting") override;
    void wake() noexcept override;
    bool in_handler() const noexcept override;
    bool lend() noexcept override;
    void reclaim() noexcept override;
    bool forget(std::uint64_t asked) override;

private:
    // Work, for the loop
    Done work(const Turn& turn) noexcept override;
    std::size_t take_in(const Turn& turn) noexcept override;
    bool prepare_sleep(const Turn& turn, bool is_background) noexcept override;
    void end_sleep(const Turn& turn, bool is_background) noexcept override;
    Duration sleep_max() const noexcept override;
    bool run_tasks() noexcept override;
    std::string under_way(const Turn& turn) const override;

    Done work_or_watch(const Turn& turn) noexcept;
    bool go_on_services(const Turn& turn) noexcept;
    bool notice_losses(const Turn& turn);
    bool is_owing(const Turn& turn, Node node) const noexcept;
    void on_gone(const Turn& turn, Node node, bool is_new);
    void check_silent_peers(const Turn& turn);

    Dispatcher& dispatcher_;
    unsigned empty_polls_ = 0;
    bool background_watches_ = false; // the background sleeps and is woken when a flag changes
};

} // namespace kumi::engine
