#pragma once

// What a function takes and answers as text, which programs of different builds must agree on: "f8([f8] s)" takes a
// vector of doubles and a string and answers a double. Like an archive, it does not tell containers apart that look the
// same there.

#include "kumi/engine/call/archive.hpp"
#include "kumi/engine/call/parameters.hpp"

#include <concepts>
#include <string>
#include <string_view>

namespace kumi::engine {

/// Two numbers and nothing else, by their names: std::complex, of which an archive makes the same as of a pair. By its
/// shape, because <complex> brings streams with it.
template <class T>
concept ComplexNumber = std::is_trivially_copyable_v<T> && requires(const T& number) {
    requires sizeof(T) == 2 * sizeof(typename T::value_type);
    { number.real() } -> std::same_as<typename T::value_type>;
    { number.imag() } -> std::same_as<typename T::value_type>;
};

/// Three texts as one.
std::string joined(std::string_view before, std::string_view text, std::string_view after = "");

/// One type. Classes that the standard library does not have: "?24" if they travel as memory of that size, otherwise
/// "?".
template <class T>
struct type_text {
    static std::string get() {
        if constexpr (std::is_void_v<T>) return "v";
        else if constexpr (ComplexNumber<T>) {
            const std::string each = kind_and_size<typename T::value_type>();
            return joined("(", each, joined(" ", each, ")"));
        }
        else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) return kind_and_size<T>();
        else if constexpr (archive::Plain<T>) return joined("?", std::to_string(sizeof(T)));
        else return "?";
    }
};

/// "T U V", with something else between them if need be.
template <class... Types>
std::string types_text([[maybe_unused]] std::string_view between = " ") {
    std::string text;
    ((text += text.empty() ? "" : between, text += type_text<Types>::get()), ...);
    return text;
}

template <class Char, class Traits, class Allocator>
struct type_text<std::basic_string<Char, Traits, Allocator>> {
    static std::string get() { return joined("s", sizeof(Char) == 1 ? "" : std::to_string(sizeof(Char))); }
};

template <class T>
struct sequence_text {
    static std::string get() { return joined("[", types_text<T>(), "]"); }
};
template <class T, class Allocator>
struct type_text<std::vector<T, Allocator>> : sequence_text<T> {};
template <class T, class Allocator>
struct type_text<std::list<T, Allocator>> : sequence_text<T> {};
template <class T, class Allocator>
struct type_text<std::deque<T, Allocator>> : sequence_text<T> {};
template <class T, std::size_t count>
struct type_text<std::array<T, count>> {
    static std::string get() { return joined("[", types_text<T>(), joined(" ", std::to_string(count), "]")); }
};

template <class... Types>
struct set_text {
    static std::string get() { return joined("{", types_text<Types...>(), "}"); }
};
template <class Key, class... More>
struct type_text<std::set<Key, More...>> : set_text<Key> {};
template <class Key, class... More>
struct type_text<std::multiset<Key, More...>> : set_text<Key> {};
template <class Key, class... More>
struct type_text<std::unordered_set<Key, More...>> : set_text<Key> {};
template <class Key, class... More>
struct type_text<std::unordered_multiset<Key, More...>> : set_text<Key> {};
template <class Key, class T, class... More>
struct type_text<std::map<Key, T, More...>> : set_text<Key, T> {};
template <class Key, class T, class... More>
struct type_text<std::multimap<Key, T, More...>> : set_text<Key, T> {};
template <class Key, class T, class... More>
struct type_text<std::unordered_map<Key, T, More...>> : set_text<Key, T> {};
template <class Key, class T, class... More>
struct type_text<std::unordered_multimap<Key, T, More...>> : set_text<Key, T> {};

template <class... Types>
struct type_text<std::tuple<Types...>> {
    static std::string get() { return joined("(", types_text<Types...>(), ")"); }
};
template <class First, class Second>
struct type_text<std::pair<First, Second>> : type_text<std::tuple<First, Second>> {};

template <class... Types>
struct type_text<std::variant<Types...>> {
    static std::string get() { return joined("<", types_text<Types...>("|"), ">"); }
};
template <class T>
struct type_text<std::optional<T>> {
    static std::string get() { return joined("<", types_text<T>(), ">"); }
};

template <class Answer, class... Types>
std::string function_text() {
    return joined(types_text<Answer>(), joined("(", types_text<Types...>(), ")"));
}

} // namespace kumi::engine
