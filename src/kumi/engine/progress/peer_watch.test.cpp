#include "kumi/engine/progress/peer_watch.hpp"

#include "loopback/victim.hpp"

#include <gtest/gtest.h>
#include <optional>

namespace kumi::engine::peer_watch_test {
namespace {

using loopback::Victim;

/// Looks by hand; the engine, which has a watch of its own, only gives the turn.
struct Watcher {
    bool look() {
        const auto turn = victim.dispatcher->take_turn();
        return watch.look(turn, [this](Node node) { told.push_back(node); });
    }

    explicit Watcher(Node nodes = 5) : victim({}, {.nodes = nodes}) {}

    Victim victim;
    PeerWatch watch{victim.channel, std::chrono::seconds(1), [this] { return Instant(Duration(victim.time)); }};
    std::vector<Node> told;
};

TEST(PeerWatch, a_lost_node_is_told_of_once_and_one_look_later_than_it_was_reported) {
    Watcher watcher;
    EXPECT_FALSE(watcher.look());
    watcher.victim.channel.lose(3);
    EXPECT_TRUE(watcher.look()) << "what it sent before is to be handled";
    EXPECT_EQ(watcher.told, std::vector<Node>{});
    EXPECT_FALSE(watcher.watch.is_gone(3));
    watcher.victim.channel.lose(1);
    EXPECT_TRUE(watcher.look());
    EXPECT_EQ(watcher.told, std::vector<Node>{3});
    EXPECT_TRUE(watcher.watch.is_gone(3));
    EXPECT_FALSE(watcher.watch.is_gone(1));
    for (int again = 0; again < 3; ++again) EXPECT_FALSE(watcher.look());
    EXPECT_EQ(watcher.told, (std::vector<Node>{3, 1}));
    const auto turn = watcher.victim.dispatcher->take_turn();
    EXPECT_TRUE(watcher.watch.has_losses(turn));
    EXPECT_EQ(watcher.watch.gone(turn), (std::vector<Node>{3, 1})) << "in the order in which they went";
}

TEST(PeerWatch, in_a_large_job_looks_are_made_some_times_a_second_and_sleeps_end_in_time_for_the_next) {
    Watcher watcher(200);
    using namespace std::chrono_literals;
    watcher.victim.time += Duration(1s).count();
    EXPECT_FALSE(watcher.look());
    EXPECT_EQ(watcher.watch.sleep_max(), 1s) << "this look was made";
    watcher.victim.channel.lose(150);
    watcher.victim.time += Duration(10ms).count();
    EXPECT_FALSE(watcher.look()) << "passed over";
    EXPECT_EQ(watcher.watch.sleep_max(), 40ms);
    watcher.victim.time += Duration(40ms).count();
    EXPECT_TRUE(watcher.look());
    EXPECT_FALSE(watcher.look()) << "the look after a loss is not passed over";
    EXPECT_EQ(watcher.told, std::vector<Node>{150});
    EXPECT_EQ(watcher.watch.sleep_max(), 1s);
}

TEST(PeerWatch, nobody_is_missed_while_nobody_is_lost) {
    Watcher watcher;
    EXPECT_FALSE(watcher.look());
    const auto turn = watcher.victim.dispatcher->take_turn();
    EXPECT_FALSE(watcher.watch.has_losses(turn));
    EXPECT_TRUE(watcher.watch.gone(turn).empty());
}

/// A service that counts what it is told.
class CountsLosses final : public Service {
public:
    explicit CountsLosses(Dispatcher& dispatcher) : port_(dispatcher.add_service(*this)) {}
    Handled on_message(const Turn&, Node, std::uint16_t, Bytes) override { return Handled::no; }
    void on_lost(const Turn&, Node) noexcept override { ++losses; }

    int losses = 0;

private:
    Port port_;
};

TEST(DispatcherLosses, nodes_that_are_gone_are_looked_at_again_when_something_was_begun_with_them) {
    std::optional<CountsLosses> made; // the engine ends before it
    Victim victim;
    CountsLosses& service = made.emplace(*victim.dispatcher);
    const auto look = [&] {
        for (int i = 0; i < 2 * 256; ++i) victim.dispatcher->progress().poll();
    };
    const auto id = victim.dispatcher->segments().add(100'000)->id;
    victim.channel.lose(1);
    look();
    EXPECT_EQ(service.losses, 1);
    for (int again = 0; again < 5; ++again) look();
    EXPECT_EQ(service.losses, 1) << "nothing has changed";
    std::vector<std::byte> target(100'000);
    Flag got = 0;
    ASSERT_TRUE(victim.dispatcher->memory().start_get({2, id, 0}, target, &got));
    look();
    EXPECT_EQ(service.losses, 1) << "that is another node";
    ASSERT_TRUE(victim.dispatcher->memory().start_get({1, id, 0}, target, &got));
    look();
    EXPECT_EQ(service.losses, 2);
    look();
    EXPECT_EQ(service.losses, 2);
    victim.time = loopback::far_away.count();
    look();
    EXPECT_EQ(service.losses, 3) << "and once in each interval of keep-alives";
}

} // namespace
} // namespace kumi::engine::peer_watch_test
