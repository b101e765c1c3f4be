#include "kumi/engine/call/archive.hpp"

#include "simulation/seeds.hpp"

#include <array>
#include <cereal/types/memory.hpp>
#include <complex>
#include <cstdlib>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace kumi::engine {
namespace {

struct Point {
    double x = 0, y = 0, z = 0;
    bool operator==(const Point&) const = default;
};

enum class Colour : std::uint16_t { red, green };

struct Particle {
    std::string name;
    std::vector<Point> path;
    Colour colour = Colour::red;
    int charges[3] = {};
    bool operator==(const Particle&) const = default;

    template <class Archive>
    void serialize(Archive& archive) {
        archive(name, path, colour, charges);
    }
};

/// Copyable as bytes, and yet with an opinion of its own.
struct Halved {
    int value = 0;
    template <class Archive>
    int save_minimal(const Archive&) const {
        return value / 2;
    }
    template <class Archive>
    void load_minimal(const Archive&, const int& half) {
        value = half * 2;
    }
};

struct Tree {
    std::vector<Tree> branches;
    template <class Archive>
    void serialize(Archive& archive) {
        archive(branches);
    }
};

Tree chain(std::size_t depth) {
    Tree tree;
    for (std::size_t level = 0; level < depth; ++level) {
        Tree above;
        above.branches.push_back(std::move(tree));
        tree = std::move(above);
    }
    return tree;
}

template <class T>
T again(const T& value) {
    T copy{};
    read_archive(write_archive(value), copy);
    return copy;
}

template <class T>
void expect_same(const T& value) {
    EXPECT_EQ(again(value), value);
}

/// What is said of these bytes when they are read as Ts.
template <class... Types>
std::string refusal(Bytes bytes) {
    std::tuple<Types...> values;
    try {
        std::apply([&](Types&... value) { read_archive(bytes, value...); }, values);
    } catch (const BadBytes& refused) {
        return refused.what();
    }
    return "";
}

TEST(Archive, gives_back_what_it_was_given) {
    expect_same(true);
    expect_same('c');
    expect_same(-7l);
    expect_same(2.5L);
    expect_same(Colour::green);
    expect_same(Point{1, 2, 3});
    expect_same(std::string("text with \0 inside", 18));
    expect_same(std::u32string(U"wide"));
    expect_same(std::vector<double>{1, 2, 3});
    expect_same(std::vector<Point>{{1, 2, 3}, {4, 5, 6}});
    expect_same(std::vector<bool>{true, false, true});
    expect_same(std::vector<std::vector<std::string>>{{"a", ""}, {}, {"b"}});
    expect_same(std::array<Point, 2>{{{1, 2, 3}, {4, 5, 6}}});
    expect_same(std::array<bool, 3>{true, false, true});
    expect_same(std::map<std::string, std::vector<int>>{{"one", {1}}, {"none", {}}});
    expect_same(std::unordered_map<int, Point>{{1, {1, 2, 3}}});
    expect_same(std::set<std::string>{"a", "b"});
    expect_same(std::unordered_set<int>{3, 1});
    expect_same(std::list<int>{3, 1});
    expect_same(std::deque<std::string>{"x", "y"});
    expect_same(std::optional<std::string>{"there"});
    expect_same(std::optional<std::string>{});
    expect_same(std::pair<int, std::string>{1, "one"});
    expect_same(std::tuple<int, Point, std::string>{1, {1, 2, 3}, "one"});
    expect_same(std::variant<int, std::string>{"text"});
    expect_same(std::complex<double>{1, -1});
    expect_same(Particle{"muon", {{1, 2, 3}}, Colour::green, {1, 2, 3}});
    expect_same(std::vector<Particle>(3, Particle{"muon", {{1, 2, 3}}, Colour::green, {1, 2, 3}}));
}

TEST(Archive, a_type_that_the_user_includes_himself_works_too) {
    const auto copy = again(std::make_shared<Particle>(Particle{"pion", {}, Colour::red, {}}));
    ASSERT_TRUE(copy);
    EXPECT_EQ(copy->name, "pion");
    EXPECT_EQ(*again(std::make_unique<int>(5)), 5);
}

TEST(Archive, several_values_lie_one_after_the_other_without_gaps) {
    const auto bytes = write_archive('a', std::uint64_t{1}, std::string("bc"), std::vector<Point>(2));
    EXPECT_EQ(bytes.size(), 1 + 8 + (8 + 2) + (8 + 2 * sizeof(Point)));
    EXPECT_TRUE(write_archive().empty());
}

TEST(Archive, a_vector_of_bytes_is_its_size_and_then_the_bytes) {
    const std::vector<std::byte> content{std::byte{7}, std::byte{0}, std::byte{0xFF}};
    const auto bytes = write_archive(content);
    ASSERT_EQ(bytes.size(), 8u + 3u);
    EXPECT_TRUE(std::equal(content.begin(), content.end(), bytes.begin() + 8));
    EXPECT_EQ(bytes, write_archive(std::vector<std::uint8_t>{7, 0, 0xFF})) << "as numbers of one byte are";
    expect_same(content);
    expect_same(std::vector<std::vector<std::byte>>{content, {}, content});
    EXPECT_EQ((refusal<std::vector<std::byte>>(Bytes(bytes).first(10))),
              "a container has more elements than there are bytes");
}

TEST(Archive, a_type_with_functions_of_its_own_is_not_copied_as_memory) {
    EXPECT_EQ(again(Halved{5}).value, 4);
    EXPECT_EQ(again(std::vector<Halved>{{5}, {7}})[1].value, 6);
}

TEST(Archive, what_only_refers_to_memory_is_no_value) {
    static_assert(archive::Plain<Point> && archive::Plain<double>);
    static_assert(!archive::Plain<std::string_view> && !archive::Plain<Bytes> && !archive::Plain<int*>);
    static_assert(!archive::Plain<std::reference_wrapper<int>> && !archive::Plain<Halved>);
    static_assert(!cereal::traits::is_output_serializable<Bytes, archive::Writer>::value);
}

TEST(Archive, says_why_bytes_are_not_such_values) {
    const auto number = write_archive(std::uint64_t{1} << 60);
    EXPECT_EQ((refusal<int>({})), "the bytes end too early");
    EXPECT_EQ((refusal<std::uint32_t>(number)), "there are more bytes than values");
    EXPECT_EQ((refusal<>(number)), "there are more bytes than values");
    const auto many = "a container has more elements than there are bytes";
    EXPECT_EQ((refusal<std::vector<double>>(number)), many);
    EXPECT_EQ((refusal<std::vector<std::string>>(number)), many);
    EXPECT_EQ((refusal<std::vector<bool>>(number)), many);
    EXPECT_EQ((refusal<std::string>(number)), many);
    EXPECT_EQ((refusal<std::list<int>>(number)), many);
    EXPECT_EQ((refusal<std::map<int, int>>(number)), many);
    EXPECT_EQ((refusal<std::vector<double>>(write_archive(std::uint64_t{8}, 1.0))),
              "a vector is longer than its bytes");
    EXPECT_EQ((refusal<bool>(write_archive('\2'))), "neither true nor false");
    EXPECT_EQ((refusal<std::array<bool, 2>>(write_archive('\1', '\2'))), "neither true nor false");
    EXPECT_EQ((refusal<std::optional<char>>(write_archive('\2', 'x'))), "neither true nor false");
    EXPECT_FALSE((refusal<std::variant<int, char>>(write_archive(2, 'x'))).empty());
    EXPECT_FALSE((refusal<std::variant<int, char>>(write_archive(-1, 'x'))).empty());
    EXPECT_FALSE((refusal<std::shared_ptr<int>>(write_archive(77u))).empty());
}

/// Remembers the most that was asked for at once.
template <class T>
struct Watched : std::allocator<T> {
    static inline std::size_t bytes_max = 0;
    template <class U>
    struct rebind {
        using other = Watched<U>;
    };
    T* allocate(std::size_t count) {
        bytes_max = std::max(bytes_max, count * sizeof(T));
        return std::allocator<T>::allocate(count);
    }
};

struct Big {
    std::array<std::string, 100> texts;
    template <class Archive>
    void serialize(Archive& archive) {
        archive(texts[0]);
    }
};

TEST(Archive, a_vector_makes_no_more_room_than_the_bytes_would_fill) {
    std::vector<std::byte> bytes(100'000, std::byte{0xff});
    const std::uint64_t count = 90'000;
    std::memcpy(bytes.data(), &count, sizeof(count));
    EXPECT_FALSE((refusal<std::vector<Big, Watched<Big>>>(bytes)).empty());
    EXPECT_GT(Watched<Big>::bytes_max, 0u);
    EXPECT_LE(Watched<Big>::bytes_max, bytes.size());
}

TEST(Archive, nesting_has_a_bound_on_both_sides) {
    EXPECT_EQ(again(chain(500)).branches.size(), 1u);
    EXPECT_THROW((void)write_archive(chain(10'000)), std::length_error);
    std::vector<std::byte> bytes;
    for (int level = 0; level < 30'000; ++level)
        for (const std::byte byte : write_archive(std::uint64_t{1})) bytes.push_back(byte);
    EXPECT_EQ((refusal<Tree>(bytes)), "values are nested too deeply");
}

TEST(Archive, bytes_that_were_cut_or_changed_are_refused_or_are_other_values) {
    using Everything = std::tuple<std::vector<Particle>, std::map<std::string, std::vector<std::optional<int>>>,
                                  std::vector<bool>, Tree, std::variant<int, std::string, std::vector<Point>>,
                                  std::shared_ptr<std::list<std::string>>, std::deque<Point>>;
    const Everything everything{std::vector<Particle>(3, Particle{"muon", {{1, 2, 3}}, Colour::green, {1, 2, 3}}),
                                {{"a", {1, std::nullopt}}, {"b", {}}},
                                {true, false},
                                chain(3),
                                std::vector<Point>(2),
                                std::make_shared<std::list<std::string>>(2, "text"),
                                {{1, 2, 3}}};
    const auto whole = write_archive(everything);
    std::size_t refused = 0, read = 0;
    simulation::for_each_seed(5000, [&](std::uint64_t seed) {
        std::mt19937_64 random(seed);
        auto bytes = whole;
        if (random() % 4 == 0) bytes.resize(random() % bytes.size());
        for (auto changes = random() % 4; changes > 0 && !bytes.empty(); --changes)
            bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 2 == 0 ? random() % 4 : random());
        // An allocation of its own for each: a sanitizer sees what reads past its end.
        const std::vector<std::byte> exactly(bytes.begin(), bytes.end());
        Everything other;
        try {
            read_archive(exactly, other);
            EXPECT_LE(write_archive(other).size(), exactly.size()); // less where a key came twice
            ++read;
        } catch (const BadBytes&) {
            ++refused;
        }
    });
    if (simulation::wanted_seeds(5000).count == 5000) {
        EXPECT_GT(refused, 1000u);
        EXPECT_GT(read, 500u);
    }
}

} // namespace
} // namespace kumi::engine
