#include "kumi/base/owned_function.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

namespace kumi::base {
namespace {

using Text = OwnedFunction<std::string(std::string)>;

/// Counts how many there are.
struct Counted {
    explicit Counted(int& count) : count_(&count) { ++*count_; }
    Counted(Counted&& other) noexcept : count_(other.count_) { ++*count_; }
    ~Counted() { --*count_; }
    int* count_;
};

/// A callable of any size; it says what it was given, and what it has.
template <std::size_t bytes>
auto saying(int& count, std::unique_ptr<std::string> own) {
    return [counted = Counted(count), own = std::move(own), ballast = std::array<char, bytes>{}](std::string given) {
        return given + *own + std::to_string(ballast.size());
    };
}

TEST(OwnedFunction, calls_what_it_has_and_destroys_it_once_whether_it_is_small_or_large) {
    const auto check = [](auto make, const char* said) {
        int count = 0;
        {
            Text first = make(count);
            EXPECT_EQ(count, 1);
            EXPECT_EQ(first("a"), said);
            Text second = std::move(first);
            EXPECT_FALSE(first);
            EXPECT_EQ(count, 1);
            EXPECT_EQ(second("a"), said);
            Text third = make(count);
            EXPECT_EQ(count, 2);
            third = std::move(second);
            EXPECT_EQ(count, 1) << "what it had before is destroyed";
            EXPECT_EQ(third("a"), said);
            Text& same = third;
            third = std::move(same);
            EXPECT_EQ(third("a"), said);
        }
        EXPECT_EQ(count, 0);
        Text last = make(count);
        last = nullptr;
        EXPECT_EQ(count, 0);
        EXPECT_FALSE(last);
    };
    check([](int& count) { return saying<8>(count, std::make_unique<std::string>("b")); }, "ab8");
    check([](int& count) { return saying<80>(count, std::make_unique<std::string>("b")); }, "ab80");
}

TEST(OwnedFunction, may_be_replaced_by_what_its_destructor_does) {
    struct Last {
        OwnedFunction<int()>* other;
        bool* was_free;
        Last(OwnedFunction<int()>* which, bool* free) : other(which), was_free(free) {}
        Last(Last&& from) noexcept : other(std::exchange(from.other, nullptr)), was_free(from.was_free) {}
        ~Last() {
            if (other != nullptr) *was_free = (*other)() == 2;
        }
        int operator()() { return 1; }
    };
    bool was_new = false;
    OwnedFunction<int()> function = nullptr;
    function = Last(&function, &was_new);
    function = [] { return 2; };
    EXPECT_TRUE(was_new) << "the old callable is destroyed when the new one is there";
}

TEST(OwnedFunction, of_nothing_is_false) {
    EXPECT_FALSE(Text());
    EXPECT_FALSE(Text(nullptr));
    EXPECT_TRUE(Text([](std::string text) { return text; }));
}

} // namespace
} // namespace kumi::base
