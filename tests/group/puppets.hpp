#pragma once

// A job in which node 0 has groups, and the test plays all other nodes: it writes by hand what they say, and looks at
// what they hear. All in one thread and without chance, so a test is a plain sequence of steps.

#include "engine/one_thread.hpp"
#include "group/node.hpp"

#include "kumi/engine/call/invoke.hpp"
#include "kumi/group/mail/mailbox.hpp"
#include "kumi/group/wire/multicast.hpp"
#include "kumi/group/wire/source.hpp"

#include <deque>
#include <functional>
#include <map>
#include <utility>

namespace kumi::group_test {

// ---- messages by hand

inline std::vector<std::byte> joined(std::initializer_list<Bytes> parts) {
    std::vector<std::byte> all;
    for (const Bytes part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

/// The argument of a function that takes a number. A function writes the number that it answers alike.
inline std::vector<std::byte> argument_of(std::uint64_t number) {
    return good(engine::write_arguments<std::uint64_t>(number));
}

/// A sequence, and the members that must have had it before.
using BeforeList = std::vector<std::pair<std::uint64_t, Set>>;

inline std::vector<std::byte> lead_of(const Set& set, const BeforeList& before = {},
                                      const std::optional<Set>& all = {}) {
    std::vector<std::byte> lead;
    const auto add = [&](const auto& value) {
        const Bytes bytes = bytes_of(value);
        lead.insert(lead.end(), bytes.begin(), bytes.end());
    };
    set.encode(lead);
    add(static_cast<std::uint32_t>(before.size()));
    for (const auto& [sequence, members] : before) {
        add(sequence);
        members.encode(lead);
    }
    all.value_or(set).encode(lead);
    lead.resize((lead.size() + 7) / 8 * 8);
    return lead;
}

inline std::vector<std::byte> cast_of(const group::Name& name, const group::Purpose& purpose, const Set& set,
                                      Bytes content, const BeforeList& before = {}, group::RelayId relay = {0, 1},
                                      double gap = 1) {
    const auto lead = lead_of(set, before);
    return joined(
        {bytes_of(group::Cast{group::Kind::cast, static_cast<std::uint32_t>(lead.size()), name, purpose, relay, gap}),
         lead, content});
}

/// A cast without a lead, which is for its receiver alone.
inline std::vector<std::byte> lone_cast_of(const group::Name& name, const group::Purpose& purpose, Bytes content,
                                           group::RelayId relay = {0, 1}) {
    return joined({bytes_of(group::Cast{group::Kind::cast, 0, name, purpose, relay, 1}), content});
}

/// A block with a lead. Members are more than one; the content has `bytes`.
struct BlockOf {
    group::Name name;
    group::Purpose purpose;
    Set set;
    Node root = 1;
    std::uint64_t bytes = 0;
    std::uint32_t block_bytes = 1024;
    std::uint32_t index = 0;
    group::Way way = group::Way::circulant;
    std::uint32_t wants_answer = 0;
    BeforeList before = {};
    double gap = 1;

    std::vector<std::byte> with(Bytes data) const { return with(lead_of(set, before), data); }
    std::vector<std::byte> with(const std::vector<std::byte>& lead, Bytes data) const {
        return joined({bytes_of(group::Block{group::Kind::block, static_cast<std::uint32_t>(lead.size()), name, purpose,
                                             bytes, block_bytes, index, root, way, wants_answer, 0, gap}),
                       lead, data});
    }
};

inline std::vector<std::byte> answer_of(const group::Name& name, group::RelayId relay, const Set& missing = {},
                                        std::string_view text = {}, std::optional<Bytes> values = {}) {
    std::vector<std::byte> set;
    missing.encode(set);
    const auto brings = values ? group::Brings::values : group::Brings::nothing;
    const group::Answer head{group::Kind::answer,
                             static_cast<std::uint32_t>(set.size()),
                             name,
                             relay,
                             static_cast<std::uint32_t>(text.size()),
                             brings,
                             static_cast<std::uint16_t>(ErrorCode::refused)};
    return joined({bytes_of(head), set, bytes_of(text), values.value_or(Bytes{})});
}

// ---- what is heard

/// A Cast, read back.
struct HeardCast {
    Node by = 0;
    group::Cast head{};
    Set set;
    BeforeList before;
    Set all;
    std::vector<std::byte> content;
};
/// An Answer, read back.
struct HeardAnswer {
    Node by = 0;
    group::Answer head{};
    Set missing;
    std::string text;
    std::vector<std::byte> values;
};

/// A service of a puppet, in the place of one of groups.
class StandIn final : public engine::Service {
public:
    StandIn(engine::Dispatcher& dispatcher, std::function<void(Bytes)> heard)
        : port_(dispatcher.add_service(*this)), heard_(std::move(heard)) {}

    void say(Node to, std::uint16_t kind, Bytes head, Bytes rest) {
        std::vector<std::byte> message(engine::header_room);
        message.insert(message.end(), head.begin(), head.end());
        (void)port_.send(to, kind, message, rest);
    }

private:
    engine::Handled on_message(const engine::Turn&, Node, std::uint16_t, Bytes body) override {
        return heard_(body), engine::Handled::yes;
    }

    engine::Port port_;
    std::function<void(Bytes)> heard_;
};

class Stage {
public:
    struct Heard {
        Node by;
        std::vector<std::byte> bytes;
        group::Kind kind() const {
            group::Kind kind{};
            EXPECT_TRUE(read_value(Bytes(bytes), kind));
            return kind;
        }
    };
    struct Posted {
        Node by;
        group::CollectiveHeader head;
        std::vector<std::byte> data;
    };
    struct Options {
        Node nodes = 2;
        bool is_one_host = false;
        Topology topology = {};
        std::optional<group::Way> way = {};
        bool measures = false;                       // what messages take, instead of knowing it
        bool looks_after = false;                    // by the network's clock, instead of never
        std::function<void(Stage&)> afterwards = {}; // when all nodes have ended
    };

    // Node 0
    Member member;
    std::vector<std::uint64_t> handled; // by its handler `note`
    Handler<std::uint64_t> note =
        member.handlers.add("note", [this](Call&, std::uint64_t number) { handled.push_back(number); });
    /// Answers the number times 10 and this node.
    Function<std::uint64_t(std::uint64_t)> tenfold =
        member.handlers.function("tenfold", [](std::uint64_t number) { return number * 10; });
    Function<std::uint64_t(std::uint64_t, std::uint64_t)> minus =
        member.handlers.function("minus", [](std::uint64_t a, std::uint64_t b) { return a - b; });
    /// Throws a text of so many characters.
    Function<std::uint64_t(std::uint64_t)> complain = member.handlers.function(
        "complain", [](std::uint64_t bytes) -> std::uint64_t { throw std::runtime_error(std::string(bytes, 'x')); });
    /// Answers how often it has run.
    std::uint64_t runs = 0;
    Function<std::uint64_t(std::uint64_t)> count =
        member.handlers.function("count", [this](std::uint64_t) { return ++runs; });
    /// Does what the test wants to be done in a handler.
    std::function<void()> meanwhile;
    Handler<> call_meanwhile = member.handlers.add("meanwhile", [this](Call&) { std::exchange(meanwhile, {})(); });
    // Numbers on the wire: in the order above, for nothing was agreed on.
    static constexpr std::uint32_t note_number = 0, meanwhile_number = 1, handlers_count = 2;
    static constexpr std::uint32_t tenfold_number = 0, minus_number = 1, complain_number = 2, count_number = 3,
                                   functions_count = 4;

    /// The tag of a gather() whose answers come at once.
    static constexpr std::uint64_t any_size = ~std::uint64_t{0};

    // The others
    std::vector<Heard> heard;   // of multicasts, by anybody, in the order of arrival
    std::vector<Posted> posted; // of collectives
    std::vector<Heard> told;    // of multicasts from memory that they have asked for
    /// Called for each that comes, instead of keeping it.
    std::function<bool(const Posted&)> on_post;

    void say(Node puppet, Bytes message, std::uint16_t kind = group::only_kind) {
        sayings_[puppet].push_back({{message.begin(), message.end()}, {}, kind});
    }
    /// About multicasts from memory.
    void ask(Node puppet, Bytes message, std::uint16_t kind = group::source_ask_kind) {
        sayings_[puppet].push_back({{message.begin(), message.end()}, {}, kind, true});
    }
    void post(Node puppet, const group::CollectiveHeader& head, Bytes data = {},
              std::uint16_t kind = group::only_kind) {
        sayings_[puppet].push_back({{data.begin(), data.end()}, head, kind});
    }

    /// Until all that was said has come, and what follows from it.
    void settle() {
        int quiet = 0;
        member.engine->wait_until([&] {
            quiet = is_quiet() ? quiet + 1 : 0;
            return quiet > 200;
        });
    }
    /// The puppet is gone, and node 0 knows it.
    void lose(Node puppet) {
        world_.lose(puppet);
        member.engine->wait_until([&] { return channel_->lost(puppet); });
        settle();
    }
    /// Until node 0 has looked after those it waits for so often.
    void look(int times) {
        const Instant end =
            world_.network().time() + times * world_.setup().keepalive_every + std::chrono::microseconds(100);
        member.engine->wait_until([&] { return world_.network().time() > end; });
        settle();
    }
    Channel& channel() { return *channel_; }

    /// What was heard since the last time.
    std::vector<Heard> take_heard() { return std::exchange(heard, {}); }
    std::vector<Posted> take_posted() { return std::exchange(posted, {}); }
    /// The same, if it is nothing but casts, or nothing but answers.
    std::vector<HeardCast> take_casts();
    std::vector<HeardAnswer> take_answers();

private:
    friend void play(const Options& options, const std::function<void(Stage&)>& steps);
    struct Saying {
        std::vector<std::byte> bytes;
        std::optional<group::CollectiveHeader> head; // then it is a post
        std::uint16_t kind;                          // for the engine
        bool is_for_source = false;                  // it asks for a multicast from memory
    };

    Stage(engine_test::OneThread& world, Node nodes) : world_(world), nodes_(nodes) {}
    bool is_quiet() {
        for (const auto& [node, queue] : sayings_)
            if (!queue.empty() && !world_.is_lost(node)) return false;
        return world_.network().in_flight() == 0;
    }
    void be_puppet(Channel& channel) {
        const Node self = channel.self();
        Handlers handlers;
        handlers.add("note", [](Call&, std::uint64_t) {});
        auto dispatcher = good(engine::Dispatcher::open(channel, std::move(handlers),
                                            Setup{.in_background = false, .spin_max = Duration{0}}.options()));
        StandIn multicasts(*dispatcher, [this, self](Bytes bytes) {
            heard.push_back({self, {bytes.begin(), bytes.end()}});
        });
        StandIn collectives(*dispatcher, [this, self](Bytes bytes) {
            Posted one{self, {}, {}};
            EXPECT_TRUE(read_value(bytes, one.head));
            one.data.assign(bytes.begin() + sizeof one.head, bytes.end());
            if (!on_post || !on_post(one)) posted.push_back(std::move(one));
        });
        StandIn sources(*dispatcher, [this, self](Bytes bytes) {
            told.push_back({self, {bytes.begin(), bytes.end()}});
        });
        engine::Engine engine(std::move(dispatcher));
        while (!(is_over_ && world_.network().in_flight() == 0) && !world_.is_lost(self)) {
            auto& queue = sayings_[self];
            if (queue.empty()) {
                engine.poll();
                continue;
            }
            const Saying next = std::move(queue.front());
            if (next.head) collectives.say(0, next.kind, bytes_of(*next.head), next.bytes);
            else (next.is_for_source ? sources : multicasts).say(0, next.kind, {}, next.bytes);
            queue.pop_front(); // not before: it is quiet when all has been sent
        }
    }

    engine_test::OneThread& world_;
    Node nodes_;
    Channel* channel_ = nullptr;
    std::map<Node, std::deque<Saying>> sayings_; // by puppet
    bool is_over_ = false;
};

inline std::vector<HeardCast> Stage::take_casts() {
    std::vector<HeardCast> casts;
    for (const Heard& one : take_heard()) {
        HeardCast cast{.by = one.by};
        EXPECT_TRUE(one.kind() == group::Kind::cast || one.kind() == group::Kind::placed);
        if (!read_value(Bytes(one.bytes), cast.head)) continue;
        Bytes lead = Bytes(one.bytes).subspan(sizeof cast.head, cast.head.lead_bytes);
        const auto take_set = [&] {
            const auto set = Set::decode(lead, nodes_);
            EXPECT_TRUE(set);
            return set.value_or(Set{});
        };
        const auto take_number = [&](auto number) {
            EXPECT_TRUE(read_value(lead, number));
            lead = lead.subspan(sizeof number);
            return number;
        };
        if (lead.empty()) cast.set = {one.by};
        else {
            cast.set = take_set();
            for (auto count = take_number(std::uint32_t{}); count > 0; --count) {
                const auto sequence = take_number(std::uint64_t{});
                cast.before.emplace_back(sequence, take_set());
            }
            cast.all = take_set();
        }
        const Bytes content = Bytes(one.bytes).subspan(sizeof cast.head + cast.head.lead_bytes);
        cast.content.assign(content.begin(), content.end());
        casts.push_back(std::move(cast));
    }
    return casts;
}

inline std::vector<HeardAnswer> Stage::take_answers() {
    std::vector<HeardAnswer> answers;
    for (const Heard& one : take_heard()) {
        HeardAnswer answer{.by = one.by};
        EXPECT_EQ(one.kind(), group::Kind::answer);
        if (!read_value(Bytes(one.bytes), answer.head)) continue;
        Bytes set = Bytes(one.bytes).subspan(sizeof answer.head, answer.head.set_bytes);
        answer.missing = Set::decode(set, nodes_).value_or(Set{});
        const Bytes rest = Bytes(one.bytes).subspan(sizeof answer.head + answer.head.set_bytes);
        answer.text = text_of(rest.first(answer.head.text_bytes));
        answer.values.assign(rest.begin() + answer.head.text_bytes, rest.end());
        answers.push_back(std::move(answer));
    }
    return answers;
}

/// What the multicasts of tests are for.
inline constexpr group::Purpose to_note{group::Use::handler, Stage::note_number, 0};
inline constexpr group::Purpose to_be_taken{group::Use::take, 0, 7};

/// A test that plays.
class PuppetTest : public testing::Test {
protected:
    void SetUp() override {
#if defined(KUMI_THREAD_SANITIZER)
        KUMI_SKIP(skips::one_thread);
#endif
    }
};

/// Node 0 goes through the steps. If it has not ended by then, all others are lost, so that nothing is waited for, and
/// it ends.
inline void play(const Stage::Options& options, const std::function<void(Stage&)>& steps) {
    engine_test::OneThread world({.nodes = options.nodes,
                                  .seed = 1,
                                  .delay_min = Duration{200},
                                  .delay_max = Duration{2000},
                                  .refusal_chance = 0,
                                  .in_flight_max = 1 << 12,
                                  .loss_detection = Duration{2000}});
    if (options.is_one_host) world.share_memory();
    Stage stage(world, options.nodes);
    world.run([&](Channel& channel) {
        if (channel.self() != 0) return stage.be_puppet(channel);
        stage.channel_ = &channel;
        auto setup = world.setup();
        if (!options.looks_after) setup.clock = [] { return Instant{}; };
        const auto costs = options.measures ? std::nullopt : std::optional(group::Costs{});
        stage.member.open(channel, setup, options.topology, costs, options.way);
        try {
            steps(stage);
        } catch (const engine_test::Stop&) {
        }
        if (stage.member.engine)
            for (Node puppet = 1; puppet < options.nodes; ++puppet) stage.lose(puppet);
        stage.is_over_ = true;
        stage.member.engine.reset();
        // Puppets go on until nothing is in flight, also to a node that has left.
        while (world.network().in_flight() != 0) channel.poll([](pm::Message&) {}, pm::all_messages);
    });
    if (options.afterwards) options.afterwards(stage);
}

} // namespace kumi::group_test
