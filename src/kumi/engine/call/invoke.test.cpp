#include "kumi/engine/call/invoke.hpp"

#include <gtest/gtest.h>

namespace kumi::engine {
namespace {

struct Stubborn {
    template <class Archive>
    void save(Archive&) const {
        throw std::runtime_error("not me");
    }
    template <class Archive>
    void load(Archive&) {}
};

TEST(Invoke, each_argument_is_written_as_its_parameters_type) {
    EXPECT_EQ(*write_arguments<std::string>("text"), write_archive(std::string("text")));
    EXPECT_EQ((*write_arguments<double, std::int64_t>(1, 'a')), write_archive(1.0, std::int64_t{'a'}));
    EXPECT_TRUE(write_arguments<>()->empty());
}

TEST(Invoke, arguments_that_refuse_to_be_written_are_an_error) {
    EXPECT_EQ(write_arguments<Stubborn>(Stubborn{}).error().text(), "not me");
}

TEST(Invoke, what_came_back_is_an_answer_or_an_error_that_names_function_and_node) {
    EXPECT_EQ(*read_answer<int>(write_archive(5), "sum", 3), 5);
    EXPECT_TRUE(read_answer<void>({}, "sum", 3));
    EXPECT_EQ(read_answer<void>(write_archive('x'), "sum", 3).error().text(),
              "function sum on node 3: 1 bytes came back that are not its answer: there are more bytes than values");
    EXPECT_EQ(read_answer<int>({}, "sum", 3).error().text(),
              "function sum on node 3: 0 bytes came back that are not its answer: the bytes end too early");
}

} // namespace
} // namespace kumi::engine
