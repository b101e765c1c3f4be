#include "kumi/engine/memory/atomic_word.hpp"

#include "kumi/engine/memory/atomics.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <thread>

namespace kumi::engine::atomic_word_test {
namespace {

/// A word between two others, which stay as they are.
template <class T>
class Word {
public:
    explicit Word(T value) : words_{T(77), value, T(77)} {}

    /// Carries out the operation; what was there before, as T has it.
    T apply(Atomic::Kind kind, T operand, T expected = {}) {
        auto* const where = reinterpret_cast<std::byte*>(&words_[1]);
        const Atomic what{kind, sizeof(T), to_word(operand), to_word(expected)};
        EXPECT_TRUE(is_sound(what, where));
        const T before = from_word<T>(apply_atomic(what, where));
        EXPECT_EQ(words_[0], T(77));
        EXPECT_EQ(words_[2], T(77));
        return before;
    }
    T value() const { return words_[1]; }

private:
    alignas(8) std::array<T, 3> words_;
};

template <class T>
class AtomicIntegers : public testing::Test {};
using Integers = testing::Types<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(AtomicIntegers, Integers);

TYPED_TEST(AtomicIntegers, do_what_they_are_called_and_answer_what_was_there) {
    Word<TypeParam> word(12);
    EXPECT_EQ(word.apply(Atomic::add, 5), TypeParam(12));
    EXPECT_EQ(word.apply(Atomic::add, static_cast<TypeParam>(-10)), TypeParam(17));
    EXPECT_EQ(word.apply(Atomic::swap, 12), TypeParam(7));
    EXPECT_EQ(word.apply(Atomic::bit_and, 10), TypeParam(12));
    EXPECT_EQ(word.apply(Atomic::bit_or, 5), TypeParam(8));
    EXPECT_EQ(word.apply(Atomic::bit_xor, 6), TypeParam(13));
    EXPECT_EQ(word.apply(Atomic::compare_exchange, 3, 12), TypeParam(11));
    EXPECT_EQ(word.apply(Atomic::compare_exchange, 3, 11), TypeParam(11));
    EXPECT_EQ(word.value(), TypeParam(3));
}

TYPED_TEST(AtomicIntegers, keep_the_smaller_and_the_larger_as_their_type_compares) {
    constexpr bool is_signed = std::is_signed_v<TypeParam>;
    constexpr auto smaller = is_signed ? Atomic::min_signed : Atomic::min_unsigned,
                   larger = is_signed ? Atomic::max_signed : Atomic::max_unsigned;
    const auto lowest = std::numeric_limits<TypeParam>::lowest(), highest = std::numeric_limits<TypeParam>::max();
    const auto high_bit = static_cast<TypeParam>(TypeParam(1) << (8 * sizeof(TypeParam) - 1)); // negative, if signed
    Word<TypeParam> word(5);
    EXPECT_EQ(word.apply(smaller, 6), TypeParam(5));
    EXPECT_EQ(word.value(), TypeParam(5));
    EXPECT_EQ(word.apply(smaller, 4), TypeParam(5));
    EXPECT_EQ(word.apply(larger, 3), TypeParam(4));
    EXPECT_EQ(word.value(), TypeParam(4));
    EXPECT_EQ(word.apply(larger, 9), TypeParam(4));
    EXPECT_EQ(word.value(), TypeParam(9));
    word.apply(larger, high_bit);
    EXPECT_EQ(word.value(), is_signed ? TypeParam(9) : high_bit);
    word.apply(smaller, high_bit);
    EXPECT_EQ(word.value(), high_bit);
    word.apply(larger, highest);
    EXPECT_EQ(word.value(), highest);
    word.apply(smaller, lowest);
    EXPECT_EQ(word.value(), lowest);
}

template <class T>
class AtomicFloats : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(AtomicFloats, Floats);

TYPED_TEST(AtomicFloats, add_and_exchange) {
    Word<TypeParam> word(TypeParam(1.5));
    EXPECT_EQ(word.apply(Atomic::add_float, TypeParam(-4)), TypeParam(1.5));
    EXPECT_EQ(word.apply(Atomic::swap, TypeParam(0.25)), TypeParam(-2.5));
    EXPECT_EQ(word.apply(Atomic::compare_exchange, TypeParam(8), TypeParam(0.5)), TypeParam(0.25));
    EXPECT_EQ(word.value(), TypeParam(0.25)) << "it was not what was expected";
    EXPECT_EQ(word.apply(Atomic::compare_exchange, TypeParam(8), TypeParam(0.25)), TypeParam(0.25));
    EXPECT_EQ(word.value(), TypeParam(8));
}

TYPED_TEST(AtomicFloats, are_exchanged_if_their_bits_are_the_same) {
    Word<TypeParam> word(TypeParam(0.0));
    word.apply(Atomic::compare_exchange, TypeParam(1), TypeParam(-0.0));
    EXPECT_EQ(word.value(), TypeParam(0)) << "minus zero is another one";
    const TypeParam no_number = std::numeric_limits<TypeParam>::quiet_NaN();
    word.apply(Atomic::swap, no_number);
    word.apply(Atomic::compare_exchange, TypeParam(1), no_number);
    EXPECT_EQ(word.value(), TypeParam(1));
}

TYPED_TEST(AtomicFloats, keep_the_smaller_and_the_larger_and_no_nan) {
    const TypeParam no_number = std::numeric_limits<TypeParam>::quiet_NaN();
    Word<TypeParam> word(TypeParam(-1.5));
    EXPECT_EQ(word.apply(Atomic::min_float, TypeParam(-1)), TypeParam(-1.5));
    EXPECT_EQ(word.apply(Atomic::min_float, TypeParam(-2)), TypeParam(-1.5));
    EXPECT_EQ(word.apply(Atomic::max_float, TypeParam(-3)), TypeParam(-2));
    EXPECT_EQ(word.apply(Atomic::max_float, TypeParam(3.5)), TypeParam(-2));
    EXPECT_EQ(word.value(), TypeParam(3.5));
    word.apply(Atomic::min_float, no_number);
    word.apply(Atomic::max_float, no_number);
    EXPECT_EQ(word.value(), TypeParam(3.5));
    word.apply(Atomic::swap, no_number);
    word.apply(Atomic::min_float, TypeParam(1));
    word.apply(Atomic::max_float, TypeParam(1));
    EXPECT_TRUE(std::isnan(word.value()));
}

TEST(AtomicWords, of_four_bytes_leave_the_other_half_alone) {
    alignas(8) std::array<std::uint32_t, 2> halves{};
    for (const auto kind : {Atomic::add, Atomic::bit_or, Atomic::max_unsigned, Atomic::swap, Atomic::bit_xor}) {
        halves = {0x0F0F0F0F, 0x11111111};
        apply_atomic({kind, 4, 0xFFFFFFFFFFFFFFFF, 0}, reinterpret_cast<std::byte*>(halves.data()));
        EXPECT_NE(halves[0], 0x0F0F0F0Fu) << kind;
        EXPECT_EQ(halves[1], 0x11111111u) << kind;
    }
}

TEST(AtomicWords, that_are_unaligned_of_another_size_or_of_no_kind_are_not_sound) {
    alignas(8) std::array<std::byte, 32> memory{};
    const auto sound = [&](std::uint32_t kind, std::uint32_t bytes, std::size_t at) {
        return is_sound({static_cast<Atomic::Kind>(kind), bytes, 0, 0}, memory.data() + at);
    };
    for (std::uint32_t kind = 0; kind <= 12; ++kind) {
        EXPECT_TRUE(sound(kind, 4, 4)) << kind;
        EXPECT_TRUE(sound(kind, 8, 8)) << kind;
        EXPECT_FALSE(sound(kind, 8, 4)) << kind;
        EXPECT_FALSE(sound(kind, 4, 2)) << kind;
        for (const std::uint32_t bytes : {0u, 1u, 2u, 3u, 16u, ~0u}) EXPECT_FALSE(sound(kind, bytes, 0)) << bytes;
    }
    for (const std::uint32_t kind : {13u, 14u, 255u, ~0u}) EXPECT_FALSE(sound(kind, 8, 8)) << kind;
}

TEST(AtomicWords, changed_by_several_threads_lose_nothing) {
    constexpr int rounds = 20'000;
    alignas(8) double total = 0;
    alignas(8) std::int64_t smallest = 0, largest = 0;
    const auto work = [&](int thread) {
        for (int i = 1; i <= rounds; ++i) {
            apply_atomic({Atomic::add_float, 8, to_word(1.0), 0}, reinterpret_cast<std::byte*>(&total));
            const std::int64_t value = i * 2 + thread;
            apply_atomic({Atomic::max_signed, 8, to_word(value), 0}, reinterpret_cast<std::byte*>(&largest));
            apply_atomic({Atomic::min_signed, 8, to_word(-value), 0}, reinterpret_cast<std::byte*>(&smallest));
        }
    };
    std::thread one([&] { work(0); }), other([&] { work(1); });
    one.join(), other.join();
    EXPECT_EQ(total, 2.0 * rounds);
    EXPECT_EQ(largest, 2 * rounds + 1);
    EXPECT_EQ(smallest, -(2 * rounds + 1));
}

} // namespace
} // namespace kumi::engine::atomic_word_test
