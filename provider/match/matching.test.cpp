#include "provider/match/matching.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

namespace kumi::provider {
namespace {

using Number = Matching::Number;

/// The same by lists that are looked through.
class Model {
public:
    std::optional<Number> arrive(const Envelope& envelope, Number message) {
        const auto found =
            std::ranges::find_if(receives_, [&](const auto& one) { return one.wanted.matches(envelope); });
        if (found == receives_.end()) return messages_.push_back({envelope, message}), std::nullopt;
        const Number receive = found->number;
        if (!found->stays) receives_.erase(found);
        return receive;
    }
    std::optional<Number> post(const Wanted& wanted, Number receive, bool stays) {
        if (const auto message = find(wanted, true)) return message;
        receives_.push_back({wanted, receive, stays});
        return std::nullopt;
    }
    std::optional<Number> find(const Wanted& wanted, bool takes) {
        const auto found =
            std::ranges::find_if(messages_, [&](const auto& one) { return wanted.matches(one.envelope); });
        if (found == messages_.end()) return std::nullopt;
        const Number message = found->number;
        if (takes) messages_.erase(found);
        return message;
    }
    bool cancel(Number receive) {
        return std::erase_if(receives_, [&](const auto& one) { return one.number == receive; }) != 0;
    }
    std::size_t receives() const { return receives_.size(); }
    std::size_t messages() const { return messages_.size(); }

private:
    struct Receive {
        Wanted wanted;
        Number number;
        bool stays;
    };
    struct Message {
        Envelope envelope;
        Number number;
    };
    std::vector<Receive> receives_;
    std::vector<Message> messages_;
};

TEST(Matching, agrees_with_a_list_whatever_happens) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const auto below = [&](unsigned bound) { return static_cast<std::uint32_t>(random() % bound); };
        Matching matching;
        Model model;
        const unsigned masks = 1 + below(40); // more than there are shapes, at times
        const unsigned tags = 1 + below(6), sources = 1 + below(4);
        std::vector<Number> free_receives, free_messages;
        for (Number number = 200; number-- > 0;) free_receives.push_back(number), free_messages.push_back(number);
        const auto use = [](std::vector<Number>& numbers) {
            const Number number = numbers.back();
            numbers.pop_back();
            return number;
        };
        std::vector<char> stays(200);
        const auto any_wanted = [&] {
            const std::uint64_t ignore = below(3) == 0 ? below(masks) : below(2) == 0 ? 0 : ~std::uint64_t{0};
            return Wanted{below(3) == 0 ? any_source : below(sources), below(tags), ignore};
        };
        for (int step = 0; step < 400; ++step) {
            switch (below(8)) {
            case 0:
            case 1:
            case 2: {
                if (free_messages.empty()) break;
                const Envelope envelope{below(sources), below(tags)};
                const Number message = use(free_messages);
                const auto receive = matching.arrive(envelope, message);
                ASSERT_EQ(receive, model.arrive(envelope, message));
                if (!receive) break;
                free_messages.push_back(message);
                if (!stays[*receive]) free_receives.push_back(*receive);
                break;
            }
            case 3:
            case 4:
            case 5: {
                if (free_receives.empty()) break;
                const Wanted wanted = any_wanted();
                const Number receive = use(free_receives);
                stays[receive] = below(8) == 0;
                const auto message = matching.post(wanted, receive, stays[receive] != 0);
                ASSERT_EQ(message, model.post(wanted, receive, stays[receive] != 0));
                if (message) free_messages.push_back(*message), free_receives.push_back(receive);
                break;
            }
            case 6: {
                const Wanted wanted = any_wanted();
                ASSERT_EQ(matching.peek(wanted), model.find(wanted, false));
                if (below(2) == 0) break;
                const auto message = matching.take(wanted);
                ASSERT_EQ(message, model.find(wanted, true));
                if (message) free_messages.push_back(*message);
                break;
            }
            default: {
                const Number receive = below(200);
                const bool was_there = model.cancel(receive);
                ASSERT_EQ(matching.cancel(receive), was_there);
                if (was_there) free_receives.push_back(receive);
            }
            }
            ASSERT_EQ(matching.receives(), model.receives());
            ASSERT_EQ(matching.messages(), model.messages());
        }
    }
}

TEST(Matching, the_cost_does_not_grow_with_what_waits) {
    // A hundred thousand of one key, and as many keys: were any of them looked through, this would take minutes.
    Matching matching;
    constexpr Number count = 100'000;
    for (Number i = 0; i < count; ++i) ASSERT_FALSE(matching.post({1, i % 2 == 0 ? 7 : i}, i));
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 300'000; ++i) {
        ASSERT_EQ(matching.arrive({1, 99'999}, 0), count - 1);
        ASSERT_FALSE(matching.post({1, 99'999}, count - 1));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

} // namespace
} // namespace kumi::provider
