#include "kumi/engine/call/function.hpp"

#include "kumi/engine/handlers.hpp"
#include "kumi/engine/call/invoke.hpp"

#include <array>
#include <complex>
#include <gtest/gtest.h>
#include <list>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace kumi::engine::function_test {
namespace {

struct Place {
    double x = 0, y = 0, z = 0;
};

struct Named {
    std::string name;
    template <class Archive>
    void serialize(Archive& archive) {
        archive(name);
    }
};

double sum(const std::vector<double>& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }

/// What an entry answers to these bytes.
std::vector<std::byte> run_with_bytes(const FunctionEntry& entry, const std::vector<std::byte>& bytes) {
    std::optional<std::vector<std::byte>> answer;
    entry.run(bytes, [&](const Result<std::vector<std::byte>>& given) {
        EXPECT_FALSE(answer) << "it answers once";
        answer = *given;
    });
    EXPECT_TRUE(answer);
    return answer.value_or(std::vector<std::byte>());
}

/// Runs an entry with these arguments.
template <class Answer, class... Arguments>
Answer run(const FunctionEntry& entry, const Arguments&... arguments) {
    Answer answer{};
    read_archive(run_with_bytes(entry, write_archive(arguments...)), answer);
    return answer;
}

TEST(Functions, a_callable_is_named_by_index_name_and_signature) {
    Handlers handlers;
    const Function<double(std::vector<double>)> first = handlers.function("sum", sum);
    const Function<void(int, std::string)> second = handlers.function("note", [](const int&, std::string) {});
    EXPECT_EQ(first.index(), 0u);
    EXPECT_EQ(second.index(), 1u);
    EXPECT_EQ(second.name(), "note");
    ASSERT_EQ(handlers.functions().size(), 2u);
    EXPECT_EQ(handlers.functions()[0].name, "sum");
    EXPECT_EQ(handlers.functions()[0].signature, "f8([f8])");
    EXPECT_TRUE(handlers.entries().empty());
}

TEST(Functions, arguments_and_answers_are_values_of_many_types) {
    Handlers handlers;
    handlers.function("sum", sum);
    handlers.function("words", [](const std::string& text, std::size_t count) {
        return std::map<std::string, std::vector<Named>>{{text, std::vector<Named>(count, Named{text})}};
    });
    const auto& entries = handlers.functions();
    EXPECT_EQ(run<double>(entries[0], std::vector<double>{1, 2, 3.5}), 6.5);
    auto words = run<std::map<std::string, std::vector<Named>>>(entries[1], std::string("a"), std::size_t{2});
    ASSERT_EQ(words["a"].size(), 2u);
    EXPECT_EQ(words["a"][1].name, "a");
}

TEST(Functions, an_argument_is_given_as_it_is_asked_for) {
    Handlers handlers;
    const std::string* by_reference = nullptr;
    std::string moved;
    handlers.function("mix", [&](std::string& changed, const std::string& seen, std::string own, std::string&& taken) {
        changed += "!";
        by_reference = &seen;
        moved = std::move(own) + std::move(taken);
        return changed;
    });
    const std::string text = "x";
    EXPECT_EQ(run<std::string>(handlers.functions()[0], text, text, text, text), "x!");
    EXPECT_NE(by_reference, nullptr);
    EXPECT_EQ(moved, "xx");
}

TEST(Functions, one_may_keep_a_state_and_answer_nothing) {
    Handlers handlers;
    handlers.function("count", [calls = 0]() mutable { return ++calls; });
    handlers.function("quiet", [] {});
    EXPECT_EQ(run<int>(handlers.functions()[0]), 1);
    EXPECT_EQ(run<int>(handlers.functions()[0]), 2);
    EXPECT_TRUE(run_with_bytes(handlers.functions()[1], {}).empty());
}

TEST(Functions, bytes_that_are_not_its_arguments_do_not_reach_it) {
    Handlers handlers;
    bool called = false;
    handlers.function("take", [&](std::vector<double>) { called = true; });
    const auto& entry = handlers.functions()[0];
    EXPECT_THROW((void)run_with_bytes(entry, {}), BadBytes);
    EXPECT_THROW((void)run_with_bytes(entry, write_archive(std::uint64_t{1} << 60)), BadBytes);
    EXPECT_THROW((void)run_with_bytes(entry, write_archive(std::vector<double>{1}, 'x')), BadBytes);
    EXPECT_FALSE(called);
}

TEST(Functions, what_one_throws_is_not_touched) {
    Handlers handlers;
    handlers.function("fail", []() -> int { throw std::out_of_range("far away"); });
    EXPECT_THROW((void)run_with_bytes(handlers.functions()[0], {}), std::out_of_range);
}

TEST(Signature, tells_what_two_programs_must_agree_on) {
    EXPECT_EQ((function_text<void>()), "v()");
    EXPECT_EQ((function_text<bool, int, unsigned char, float, std::string>()), "b1(i4 u1 f4 s)");
    EXPECT_EQ((types_text<std::vector<std::vector<double>>, std::list<int>, std::array<int, 3>>()),
              "[[f8]] [i4] [i4 3]");
    EXPECT_EQ((types_text<std::map<std::string, int>, std::unordered_map<int, bool>, std::set<int>>()),
              "{s i4} {i4 b1} {i4}");
    EXPECT_EQ((types_text<std::pair<int, char>, std::tuple<>, std::complex<float>>()), "(i4 c1) () (f4 f4)");
    EXPECT_EQ((types_text<std::optional<int>, std::variant<int, std::string>, std::u32string>()), "<i4> <i4|s> s4");
    EXPECT_EQ((types_text<char, signed char, unsigned char, wchar_t, char8_t, char16_t, char32_t>()),
              "c1 i1 u1 c4 c1 c2 c4");
    EXPECT_EQ((types_text<Place, Named, std::vector<Place>, std::byte>()), "?24 ? [?24] e1");
}

TEST(Signature, of_a_long_double_tells_its_format) {
    const std::string expected = "f16." + std::to_string(std::numeric_limits<long double>::digits);
    EXPECT_EQ(types_text<long double>(), expected);
    EXPECT_EQ(signature_of<long double>(), expected);
}

} // namespace
} // namespace kumi::engine::function_test
