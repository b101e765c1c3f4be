#pragma once

// Operations that combine values in collectives, and the types that values and operations may have.

#include <concepts>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>

namespace kumi::group {

struct Sum {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return static_cast<T>(a + b);
    }
};
struct Product {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return static_cast<T>(a * b);
    }
};
struct Min {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return b < a ? b : a;
    }
};
struct Max {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return a < b ? b : a;
    }
};
struct BitAnd {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return static_cast<T>(a & b);
    }
};
struct BitOr {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return static_cast<T>(a | b);
    }
};
struct BitXor {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return static_cast<T>(a ^ b);
    }
};
inline constexpr Sum sum;
inline constexpr Product product;
inline constexpr Min min;
inline constexpr Max max;
inline constexpr BitAnd bit_and;
inline constexpr BitOr bit_or;
inline constexpr BitXor bit_xor;

/// Values that are contiguous in memory: a span, a vector, an array.
template <class Range>
concept ManyValues = requires(Range& range) {
    requires std::is_trivially_copyable_v<typename decltype(std::span(range))::value_type>;
};
/// One value that is nothing but its memory: a number, a plain struct.
template <class T>
concept OneValue = std::is_trivially_copyable_v<std::remove_reference_t<T>> && !std::is_pointer_v<std::decay_t<T>> &&
                   !requires(T & value) {
    std::span(value);
};
template <class T>
concept Values = ManyValues<T> || OneValue<T>;

template <ManyValues Range>
auto span_of(Range& values) noexcept {
    return std::span(values);
}
template <OneValue T>
std::span<T, 1> span_of(T& value) noexcept {
    return std::span<T, 1>(&value, 1);
}
template <Values Range>
using SpanOf = decltype(span_of(std::declval<std::remove_reference_t<Range>&>()));
template <Values Range>
using ValueOf = typename SpanOf<Range>::value_type;
/// Room for values of that type. One value is room if it is a variable: a temporary would be gone.
template <class Range, class T>
concept RoomFor =
    Values<Range> && std::same_as<ValueOf<Range>, T> && !std::is_const_v<typename SpanOf<Range>::element_type> &&
    (ManyValues<Range> || std::is_lvalue_reference_v<Range>);
/// The ranges in a range of ranges.
template <class List>
using PartOf = std::remove_cvref_t<decltype(*std::begin(std::declval<const List&>()))>;
template <class Function, class T>
concept OperationOn = std::is_invocable_r_v<T, const Function&, const T&, const T&>;

} // namespace kumi::group
