#include "kumi/engine/future/progress_link.hpp"

#include "kumi/engine/future.hpp"
#include "kumi/engine/progress/progress.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <thread>

namespace kumi::engine::progress_link_test {
namespace {

/// Counts what is called after its end.
class ShortProgress final : public Progress {
public:
    ~ShortProgress() {
        end();
        is_gone_ = true;
    }
    bool wait_until(base::FunctionRef<bool()> done, Instant deadline, const char* = "") override {
        while (!done() && now() < deadline) std::this_thread::yield();
        return done();
    }
    void wake() noexcept override { EXPECT_FALSE(is_gone_); }
    bool in_handler() const noexcept override {
        EXPECT_FALSE(is_gone_);
        return false;
    }
    bool forget(std::uint64_t) override {
        EXPECT_FALSE(is_gone_);
        return true;
    }

private:
    bool is_gone_ = false; // not atomic: the link orders it after all uses
};

TEST(ProgressLinks, no_future_uses_an_engine_that_has_ended) {
    for (int round = 0; round < 300; ++round) {
        auto progress = std::make_unique<ShortProgress>();
        Promise<int> promise(progress.get()), other(progress.get()), third(progress.get());
        Future<int> future = promise.future(), unwanted = other.future(), waited = third.future();
        other.set_asked(1);
        std::thread completer([&] { promise.complete(round); });
        std::thread canceller([&] { unwanted.cancel(); });
        std::thread waiter([&] { EXPECT_EQ(waited.get().error().code(), ErrorCode::ended); });
        progress.reset();
        completer.join(), canceller.join(), waiter.join();
        EXPECT_EQ(*future.get(), round);
    }
}

} // namespace
} // namespace kumi::engine::progress_link_test
