// What group/objects.hpp promises: each test is one promise, in every world, and one with peers that send what is no
// object.

#include "group/node.hpp"
#include "group/puppets.hpp"

#include "kumi/base/text/fnv.hpp"
#include "kumi/group/objects.hpp"

#include <map>
#include <stdexcept>
#include <string>

namespace kumi::group_test {
namespace {

using group::Collective;
using group::CollectiveHeader;
using group::Group;
using group::MessageKind;

class ObjectPromises : public GroupTest {};
class HostileObjects : public PuppetTest {};

/// A class of the program, with a text that may be long.
struct Note {
    std::string text;
    std::map<std::string, std::vector<std::uint32_t>> table;
    friend bool operator==(const Note&, const Note&) = default;
    template <class Archive>
    void serialize(Archive& archive) {
        archive(text, table);
    }
};

/// Cannot be written.
struct Mute {
    int value = 0;
    template <class Archive>
    void save(Archive&) const {
        throw std::runtime_error("it says nothing");
    }
    template <class Archive>
    void load(Archive&) {}
};

/// Throws what is no std::exception.
struct Grumbler {
    int value = 0;
    template <class Archive>
    void save(Archive&) const {
        throw 5;
    }
    template <class Archive>
    void load(Archive&) {}
};

/// Throws when it is read, what is no std::exception.
struct Riddle {
    int value = 0;
    template <class Archive>
    void save(Archive& archive) const {
        archive(value);
    }
    template <class Archive>
    void load(Archive& archive) {
        archive(value);
        if (value == 1) throw 5;
    }
};

Note note_of(Node rank, std::size_t bytes) {
    return {std::string(bytes, static_cast<char>('a' + rank)), {{"rank", {rank}}, {"sizes", {rank, 7}}}};
}

/// Joins texts: the order matters.
constexpr auto chained = [](const Note& a, const Note& b) {
    Note both{a.text + b.text, a.table};
    for (const auto& [name, numbers] : b.table)
        both.table[name].insert(both.table[name].end(), numbers.begin(), numbers.end());
    return both;
};

Note chain_of(Node size, std::size_t bytes) {
    Note all = note_of(0, bytes);
    for (Node rank = 1; rank < size; ++rank) all = chained(all, note_of(rank, bytes * (rank % 3)));
    return all;
}

template <class T>
void expect_refusal(const Result<T>& result, std::initializer_list<std::string_view> words,
                    engine_test::Place where = engine_test::Place::here()) {
    expect_error(result, words, where);
    if (!result && result.error().code() != ErrorCode::refused)
        ADD_FAILURE_AT(where.file, where.line) << name_of(result.error().code()) << ": " << result.error().text();
}

TEST_P(ObjectPromises, of_any_size_are_moved_and_combined_in_the_order_of_ranks) {
    constexpr Node size = 5;
    run(size, [](Channel& channel) {
        Member member;
        member.open(channel);
        Group group = good(member.groups->group(Set::range(0, size)));
        auto objects = group.objects();
        const Node rank = group.rank();
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{10}, std::size_t{200'000}}) {
            const Node root = static_cast<Node>(bytes % size);
            const auto of = [&](Node other) { return note_of(other, other == 0 ? bytes : bytes * (other % 3)); };
            std::vector<Note> all, for_me, sent;
            for (Node other = 0; other < size; ++other) {
                all.push_back(of(other));
                sent.push_back({fmt::format("{} to {}", rank, other), {}});
                for_me.push_back({fmt::format("{} to {}", other, rank), {}});
            }
            Note one = rank == root ? of(root) : Note{"another", {}};
            good(objects.broadcast(root, one, deadline()));
            EXPECT_EQ(one, of(root));
            EXPECT_EQ(good(objects.gather(root, of(rank), deadline())), rank == root ? all : std::vector<Note>{});
            EXPECT_EQ(good(objects.allgather(of(rank), deadline())), all);
            EXPECT_EQ(good(objects.scatter(root, rank == root ? all : std::vector<Note>{}, deadline())), of(rank));
            EXPECT_EQ(good(objects.alltoall(sent, deadline())), for_me);
            EXPECT_EQ(good(objects.reduce(root, of(rank), chained, deadline())),
                      rank == root ? chain_of(size, bytes) : Note{});
            EXPECT_EQ(good(objects.allreduce(of(rank), chained, deadline())), chain_of(size, bytes));
        }
        settle(*member.engine);
    });
}

TEST_P(ObjectPromises, are_started_and_nothing_of_them_has_to_stay) {
    run_group(3, [](Member&, Group& group) {
        auto start = group.start().objects();
        const auto text = [&] { return std::string(20'000, static_cast<char>('a' + group.rank())); };
        const std::string a(20'000, 'a'), b(20'000, 'b'), c(20'000, 'c');
        auto first = start.broadcast(1, text());
        auto gathered = start.gather(2, text());
        auto all = start.allgather(text());
        auto mine = start.scatter(0, std::vector<std::string>{a, b, c});
        auto exchanged = start.alltoall(std::vector<std::string>(3, text()));
        auto reduced = start.reduce(1, text(), std::plus<std::string>());
        auto sum = start.allreduce(text(), std::plus<std::string>());
        EXPECT_EQ(good(sum.get(deadline())), a + b + c);
        EXPECT_EQ(good(first.get()), b);
        EXPECT_EQ(good(gathered.get()),
                  group.rank() == 2 ? (std::vector<std::string>{a, b, c}) : std::vector<std::string>{});
        EXPECT_EQ(good(all.get()), (std::vector<std::string>{a, b, c}));
        EXPECT_EQ(good(mine.get()), text());
        EXPECT_EQ(good(exchanged.get()), (std::vector<std::string>{a, b, c}));
        EXPECT_EQ(good(reduced.get()), group.rank() == 1 ? a + b + c : std::string());
    });
}

TEST_P(ObjectPromises, of_different_types_and_that_cannot_be_written_are_errors_and_the_next_call_works) {
    run_group(2, [](Member&, Group& group) {
        auto objects = group.objects();
        // Node 0 takes node 1's text for numbers; its length fits no number of them.
        if (group.rank() == 0) {
            expect_refusal(objects.allgather(std::vector<std::uint32_t>{1}, deadline()),
                           {"objects among 0-1: node 1 has sent what is no object of this type"});
        } else {
            (void)objects.allgather(std::string("abcde"), deadline());
        }
        if (group.rank() == 0) {
            const auto add = [](const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>&) { return a; };
            expect_refusal(objects.allreduce(std::vector<std::uint32_t>{1}, add, deadline()),
                           {"allreduce of objects among 0-1: node 1 has sent what is no object of this type"});
        } else {
            expect_refusal(objects.allreduce(std::string("abcde"), std::plus<std::string>(), deadline()),
                           {"allreduce of objects among 0-1: node 1 has sent what is no object of this type"});
        }
        // What cannot be written is told to the members that need it.
        const auto gathered = objects.gather(0, Mute{}, deadline());
        expect_error(gathered, {"gather of objects among 0-1", "its object cannot be sent: it says nothing"});
        expect_error(objects.gather(0, Grumbler{}, deadline()), {"gather of objects", "its object cannot be sent"});
        expect_error(objects.allgather(Grumbler{}, deadline()), {"allgather of objects", "its object cannot be sent"});
        const auto keep_one = [](const Grumbler& a, const Grumbler&) { return a; };
        expect_refusal(objects.allreduce(Grumbler{}, keep_one, deadline()),
                       {"allreduce of objects among 0-1: node 1", "its object cannot be sent: what was thrown is no"});
        // Nor is what cannot be read laid at the door of the program.
        const Riddle riddle{static_cast<int>(group.rank())};
        const auto keep_riddle = [](const Riddle& a, const Riddle&) { return a; };
        expect_refusal(objects.allgather(riddle, deadline()),
                       {"objects among 0-1: node 1 has sent what is no object of this type: what was thrown is no"});
        expect_refusal(objects.broadcast(1, const_cast<Riddle&>(riddle), deadline()), {"objects among 0-1: node 1"});
        expect_refusal(objects.allreduce(riddle, keep_riddle, deadline()),
                       {"allreduce of objects among 0-1: node 1 has sent what is no object of this type: what was"});
        const auto keep = [](const Mute& a, const Mute&) { return a; };
        expect_refusal(objects.allreduce(Mute{}, keep, deadline()),
                       {"allreduce of objects among 0-1: node 1", "its object cannot be sent: it says nothing"});
        const auto throwing = [](const std::string&, const std::string&) -> std::string { throw 7; };
        expect_refusal(objects.allreduce(std::string(), throwing, deadline()),
                       {"the operation threw on node 0", "no std::exception"});
        const auto erring = [](const std::string&, const std::string&) -> std::string {
            throw Error(ErrorCode::too_large, "my own");
        };
        expect_code(objects.allreduce(std::string(), erring, deadline()), ErrorCode::too_large,
                    {"the operation threw on node 0", "my own"});
        expect_error(objects.scatter(0, std::vector<std::string>(3), deadline()),
                     {"scatter of objects among 0-1", "3 parts, for 2 members"});
        if (group.rank() == 0) EXPECT_EQ(good(objects.gather(0, std::string("a"), deadline())).size(), 2u);
        else (void)objects.gather(0, std::string("b"), deadline());
    });
}

TEST_P(ObjectPromises, of_a_handler_are_refused_if_they_wait) {
    run(1, [](Channel& channel) {
        Member member;
        std::optional<Group> group;
        std::atomic<bool> is_over = false;
        Future<std::vector<std::string>> later;
        const auto go = member.handlers.add("go", [&](Call&) {
            const auto refused = group->objects().allgather(std::string("a"));
            expect_error(refused, {"allgather of objects among 0: a handler must not wait"});
            if (!refused) {
                EXPECT_EQ(refused.error().code(), ErrorCode::misuse);
            }
            later = group->start().objects().allgather(std::string("b"));
            is_over = true;
        });
        member.open(channel);
        group = good(member.groups->group({0}));
        good(member.engine->send(0, go));
        EXPECT_TRUE(member.engine->wait_until([&] { return is_over.load(); }, deadline()));
        EXPECT_EQ(good(later.get(deadline())), std::vector<std::string>{"b"});
    });
}

KUMI_ENGINE_WORLDS(ObjectPromises);

TEST_F(HostileObjects, bytes_that_are_no_object_are_an_error_and_harm_nobody) {
    play({}, [](Stage& stage) {
        Group group = good(stage.member.groups->group({0, 1}));
        std::vector<std::byte> encoded;
        Set{0, 1}.encode(encoded);
        const auto post = [&](Collective collective, std::uint32_t serial, Bytes bytes) {
            stage.post(1,
                       {.key = base::fnv1a(text_of(encoded)),
                        .serial = serial,
                        .bytes = bytes.size(),
                        .root = static_cast<std::uint32_t>(collective == Collective::broadcast_object ? 1 : 0),
                        .collective = static_cast<std::uint8_t>(collective),
                        .kind = MessageKind::first},
                       bytes);
            stage.settle();
        };
        std::uint32_t serial = 0;
        const std::vector<std::byte> many = engine::write_archive(std::uint64_t{1} << 60);
        for (const std::vector<std::byte>& bytes : {std::vector<std::byte>{}, pattern(7, 1), many, pattern(40, 3)}) {
            Note note;
            post(Collective::broadcast_object, ++serial, bytes);
            expect_refusal(group.objects().broadcast(1, note), {"node 1 has sent what is no object of this type"});
            post(Collective::gather_objects, ++serial, bytes);
            expect_refusal(group.objects().gather(0, note), {"node 1 has sent what is no object of this type"});
            post(Collective::reduce_objects, ++serial, bytes);
            expect_refusal(group.objects().reduce(0, note, chained),
                           {"node 1 has sent what is no object of this type"});
        }
        const Note sound = note_of(1, 5);
        post(Collective::gather_objects, ++serial, engine::write_archive(sound));
        EXPECT_EQ(good(group.objects().gather(0, note_of(0, 1))).at(1), sound);
    });
}

} // namespace
} // namespace kumi::group_test
