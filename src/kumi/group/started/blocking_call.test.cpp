#include "kumi/group/started/blocking_call.hpp"

#include "kumi/group/started/started_calls.hpp"
#include "loopback/victim.hpp"

#include <gtest/gtest.h>

namespace kumi::group::blocking_call_test {
namespace {

constexpr CallShape a_barrier{.collective = Collective::barrier};

/// A call that waits for node 1 and that nothing completes.
class Waits final : public Started {
public:
    explicit Waits(std::shared_ptr<Membership> seat) : Started(std::move(seat), a_barrier, never, false) {}
    void complete(const Result<void>&) override { is_complete_ = true; }
    bool is_complete() const noexcept override { return is_complete_; }

private:
    static Steps wait_for_one(CollectiveCall& call) {
        call.receive(1, 0, {});
        co_await call.wait();
    }
    Steps steps(CollectiveCall& call) override { return wait_for_one(call); }

    bool is_complete_ = false;
};

class BlockingCallTest : public testing::Test {
protected:
    std::shared_ptr<Mailbox> mailbox;
    loopback::Victim victim;
    std::shared_ptr<Membership> seat = std::make_shared<Membership>(
        *(mailbox = std::make_shared<Mailbox>(*victim.dispatcher)), Set{0, 1, 2}, std::uint64_t{77});
};

TEST_F(BlockingCallTest, one_at_a_time_is_made_on_a_set) {
    {
        BlockingCall first(*seat, a_barrier, never);
        ASSERT_NE(first.call(), nullptr);
        EXPECT_EQ(seat->box.call, first.call());
        EXPECT_FALSE(first.is_behind());
        BlockingCall second(*seat, a_barrier, never);
        EXPECT_EQ(second.call(), nullptr);
        EXPECT_FALSE(second.is_behind());
        EXPECT_EQ(second.outcome().error().code(), ErrorCode::misuse);
        EXPECT_EQ(seat->box.call, first.call());
    }
    EXPECT_EQ(seat->box.call, nullptr);
    EXPECT_NE(BlockingCall(*seat, a_barrier, never).call(), nullptr);
}

TEST_F(BlockingCallTest, one_with_a_root_that_is_no_member_is_not_made) {
    BlockingCall call(*seat, {.collective = Collective::broadcast, .root = 3}, never);
    EXPECT_EQ(call.call(), nullptr);
    EXPECT_EQ(call.outcome().error().code(), ErrorCode::not_found);
}

TEST_F(BlockingCallTest, one_behind_a_call_that_was_started_is_not_refused_and_does_not_begin) {
    const auto started = std::make_shared<Waits>(seat);
    ASSERT_TRUE(mailbox->started().add(started));
    BlockingCall call(*seat, a_barrier, never);
    EXPECT_TRUE(call.is_behind());
    EXPECT_EQ(call.call(), nullptr);
    victim.channel.lose(1);
    const auto is_over = [&] { return started->is_complete(); };
    EXPECT_TRUE(victim.dispatcher->progress().wait_until(is_over, now() + loopback::far_away));
    EXPECT_FALSE(BlockingCall(*seat, a_barrier, never).is_behind());
}

TEST_F(BlockingCallTest, none_is_made_after_the_end_of_the_job) {
    for (const Node node : {1u, 2u}) victim.channel.lose(node);
    victim.engine.reset();
    BlockingCall call(*seat, a_barrier, never);
    EXPECT_EQ(call.call(), nullptr);
    EXPECT_EQ(call.outcome().error().code(), ErrorCode::ended);
}

} // namespace
} // namespace kumi::group::blocking_call_test
