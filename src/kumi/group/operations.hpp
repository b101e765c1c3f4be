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
concept Values = requires(Range& range) {
    requires std::is_trivially_copyable_v<typename decltype(std::span(range))::value_type>;
};
template <class Range>
using SpanOf = decltype(std::span(std::declval<Range&>()));
template <Values Range>
using ValueOf = typename SpanOf<Range>::value_type;
/// Room for values of that type.
template <class Range, class T>
concept RoomFor = Values<Range> && std::same_as<ValueOf<Range>, T> &&
    !std::is_const_v<typename SpanOf<Range>::element_type>;
/// The ranges in a range of ranges.
template <class List>
using PartOf = std::remove_cvref_t<decltype(*std::begin(std::declval<const List&>()))>;
template <class Function, class T>
concept OperationOn = std::is_invocable_r_v<T, const Function&, const T&, const T&>;

} // namespace kumi::group
