// A composite of channels that do what a test says.
#include "kumi/device/composite/channel.hpp"

#include <algorithm>
#include <deque>
#include <gtest/gtest.h>

namespace kumi::device::composite {
namespace {

/// Brings what a test puts into it, and notes whom it was to send to.
class ShelfChannel final : public pm::Channel {
public:
    ShelfChannel(Node nodes, const pm::Traits& traits) : nodes_(nodes), traits_(traits) {}

    std::deque<Node> inbox; // sources
    std::vector<Node> outbox; // destinations
    bool has_room = true;
    std::optional<Node> gone;

    Node self() const noexcept override { return 0; }
    Node nodes() const noexcept override { return nodes_; }
    const pm::Traits& traits() const noexcept override { return traits_; }
    pm::SendSlot try_reserve(Node to, std::size_t bytes) noexcept override {
        if (!has_room) return {};
        room_.resize(bytes + 1); // or an empty message would have no place
        return {to, MutableBytes(room_).first(bytes)};
    }
    void commit(const pm::SendSlot& slot) noexcept override { outbox.push_back(slot.to()); }
    void cancel(const pm::SendSlot&) noexcept override {}
    std::size_t poll(pm::Handler handler, std::size_t messages_max) noexcept override {
        std::size_t handled = 0;
        for (; handled < messages_max && !inbox.empty(); ++handled) {
            pm::Message message(inbox.front(), {});
            inbox.pop_front();
            handler(message);
        }
        return handled;
    }
    bool arm() noexcept override { return inbox.empty(); }
    void sleep(Instant) noexcept override {}
    void wake() noexcept override {}
    bool lost(Node node) const noexcept override { return gone == node; }
    pm::Traffic sent(Node to) const noexcept override {
        return {static_cast<std::uint64_t>(std::count(outbox.begin(), outbox.end(), to)), 0};
    }

private:
    Node nodes_;
    pm::Traits traits_;
    std::vector<std::byte> room_;
};

/// Node 0 of four: nodes 0 and 2 are on the left channel, 3, 0 and 1 on the right one.
struct Halves {
    Halves() {
        const pm::Traits left_traits{.device = "left",
                                     .message_bytes_max = 500,
                                     .bytes_per_peer_max = 1000,
                                     .latency_class_ns = 30,
                                     .bandwidth_class_mb = 4,
                                     .polls_memory = true};
        const pm::Traits right_traits{.device = "right",
                                      .message_bytes_max = 300,
                                      .bytes_per_peer_max = 2000,
                                      .latency_class_ns = 40,
                                      .bandwidth_class_mb = 5,
                                      .polls_memory = true};
        auto left_channel = std::make_unique<ShelfChannel>(2, left_traits);
        auto right_channel = std::make_unique<ShelfChannel>(3, right_traits);
        left = left_channel.get();
        right = right_channel.get();
        std::vector<Part> parts;
        parts.push_back({nullptr, std::move(left_channel), {0, 2}, "", 0});
        parts.push_back({nullptr, std::move(right_channel), {3, 0, 1}, "named", 1});
        auto sleep = SleepSet::open();
        EXPECT_TRUE(sleep);
        using Ways = std::vector<ChosenWay>;
        channel = std::make_unique<CompositeChannel>(
            0, std::move(parts), std::vector<Ways>{{{.part = 0}}, {{.part = 1}}, {{.part = 0}}, {{.part = 1}}},
            *std::move(sleep), CompositeChannel::Options{});
    }
    std::vector<Node> poll(std::size_t most) {
        std::vector<Node> sources;
        const std::size_t handled =
            channel->poll([&](pm::Message& message) { sources.push_back(message.source()); }, most);
        EXPECT_EQ(handled, sources.size());
        return sources;
    }

    ShelfChannel* left = nullptr;
    ShelfChannel* right = nullptr;
    std::unique_ptr<CompositeChannel> channel;
};

using Sources = std::vector<Node>;

TEST(CompositeParts, nodes_go_by_the_composites_numbers_above_and_by_the_parts_below) {
    Halves halves;
    halves.left->inbox = {1};
    halves.right->inbox = {0, 2};
    EXPECT_EQ(halves.poll(9), (Sources{2, 3, 1}));
    for (const Node to : {3u, 2u, 1u, 0u}) EXPECT_TRUE(halves.channel->try_send(to, {}));
    EXPECT_EQ(halves.right->outbox, (Sources{0, 2}));
    EXPECT_EQ(halves.left->outbox, (Sources{1, 0}));
    EXPECT_EQ(halves.channel->sent(3).messages, 1u);
    halves.right->gone = 2;
    EXPECT_TRUE(halves.channel->lost(1));
    EXPECT_FALSE(halves.channel->lost(2));
    EXPECT_FALSE(halves.channel->lost(3));
    EXPECT_EQ(halves.channel->carrier(2), "left");
    EXPECT_EQ(halves.channel->carrier(3), "named");
}

TEST(CompositeParts, polls_hand_out_no_more_than_they_are_asked_for_and_parts_take_turns) {
    Halves halves;
    halves.left->inbox = {1, 1, 1, 1};
    halves.right->inbox = {0, 0, 0, 0};
    EXPECT_EQ(halves.poll(0), Sources{});
    EXPECT_EQ(halves.poll(1).size(), 1u);
    const Sources second = halves.poll(1), third = halves.poll(1);
    EXPECT_NE(second, third) << "each part gets its turn";
    EXPECT_EQ(halves.poll(3).size(), 3u);
    EXPECT_EQ(halves.poll(9).size(), 2u);
    EXPECT_EQ(halves.poll(9).size(), 0u);
}

TEST(CompositeParts, a_composite_takes_what_every_part_can_take_and_is_as_good_as_the_best) {
    const Halves halves;
    const pm::Traits& traits = halves.channel->traits();
    EXPECT_EQ(traits.message_bytes_max, 300u);
    EXPECT_EQ(traits.bytes_per_peer_max, 2000u);
    EXPECT_EQ(traits.latency_class_ns, 30u);
    EXPECT_EQ(traits.bandwidth_class_mb, 5u);
    EXPECT_TRUE(traits.polls_memory);
    EXPECT_EQ(halves.channel->nodes(), 4u);
}

TEST(CompositeParts, a_slot_that_is_out_refuses_others_to_the_same_node_until_it_ends) {
    Halves halves;
    halves.left->has_room = false;
    EXPECT_FALSE(halves.channel->try_reserve(2, 8));
    halves.left->has_room = true;
    const pm::SendSlot slot = halves.channel->try_reserve(2, 8);
    ASSERT_TRUE(slot) << "one that was refused is not out";
    EXPECT_EQ(slot.to(), 2u);
    EXPECT_FALSE(halves.channel->try_reserve(2, 8));
    EXPECT_FALSE(halves.channel->try_send(2, {}));
    EXPECT_TRUE(halves.channel->try_send(3, {}));
    halves.channel->cancel(slot);
    EXPECT_TRUE(halves.left->outbox.empty());
    const pm::SendSlot again = halves.channel->try_reserve(2, 8);
    ASSERT_TRUE(again);
    halves.channel->commit(again);
    EXPECT_EQ(halves.left->outbox, Sources{1});
    EXPECT_TRUE(halves.channel->try_send(2, {}));
}

TEST(CompositeParts, who_has_a_message_on_any_part_does_not_fall_asleep) {
    Halves halves;
    EXPECT_TRUE(halves.channel->arm());
    halves.channel->sleep(now());
    for (ShelfChannel* const part : {halves.left, halves.right}) {
        part->inbox = {0};
        EXPECT_FALSE(halves.channel->arm());
        EXPECT_EQ(halves.poll(9).size(), 1u);
        EXPECT_TRUE(halves.channel->arm());
        halves.channel->sleep(now());
    }
}

} // namespace
} // namespace kumi::device::composite
