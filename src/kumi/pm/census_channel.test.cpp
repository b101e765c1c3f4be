#include "kumi/pm/census_channel.hpp"

#include "loopback/scripted_channel.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace kumi::pm {
namespace {

using loopback::ScriptedChannel;

TEST(CensusChannel, counts_messages_by_size_and_carrier_and_passes_all_on) {
    auto made = std::make_unique<ScriptedChannel>(3);
    ScriptedChannel& inner = *made;
    CensusChannel channel(std::move(made));
    EXPECT_EQ(channel.nodes(), 3u);
    EXPECT_TRUE(channel.census().empty());
    const std::vector<std::byte> bytes(std::size_t{2} << 19);
    const auto send = [&](std::size_t size) { return channel.try_send(1, Bytes(bytes).first(size)); };
    for (const std::size_t size : {std::size_t{0}, std::size_t{16}, std::size_t{17}, std::size_t{64}})
        EXPECT_TRUE(send(size));
    EXPECT_TRUE(channel.try_send(2, Bytes(bytes).first(8), Bytes(bytes).first(60))); // 68
    const SendSlot slot = channel.try_reserve(2, 1 << 20);
    ASSERT_TRUE(slot);
    channel.commit(slot);
    inner.refuse(1);
    EXPECT_FALSE(send(5)) << "what is refused is not counted";
    EXPECT_EQ(inner.take_sent().size(), 6u);

    ASSERT_EQ(channel.census().size(), 1u);
    const CensusChannel::Carrier& carrier = channel.census()[0];
    EXPECT_EQ(carrier.name, "scripted");
    const std::vector<std::uint64_t> expected{2, 2, 1, 0, 0, 0, 0, 0, 1, 0};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(carrier.classes[i].messages, expected[i]) << i;
        EXPECT_EQ(carrier.classes[i].taken > Duration{0}, expected[i] != 0) << i;
    }

    inner.lose(1);
    EXPECT_TRUE(channel.lost(1));
    inner.deliver(2, Bytes(bytes).first(3));
    std::size_t got = 0;
    EXPECT_EQ(channel.poll([&](Message& message) { got = message.bytes().size(); }, all_messages), 1u);
    EXPECT_EQ(got, 3u);
}

TEST(CensusChannel, what_is_larger_than_all_classes_is_in_the_last) {
    auto made = std::make_unique<ScriptedChannel>(2, 0, std::size_t{4} << 20);
    CensusChannel channel(std::move(made));
    EXPECT_TRUE(channel.try_send(1, std::vector<std::byte>((1 << 20) + 1)));
    EXPECT_EQ(channel.census()[0].classes.back().messages, 1u);
}

} // namespace
} // namespace kumi::pm
