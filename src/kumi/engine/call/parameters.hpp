#pragma once

// The arguments of a handler as bytes: one after the other without gaps, filled up to a multiple of 8; then, if the
// last parameter is Bytes, the payload. The same on every architecture that Kumi runs on.

#include "kumi/base/bytes.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace kumi::engine {

template <class... Types>
struct Parameters {};

/// The compiler can tell the parameters: of a function, and of a class with one operator() that is no template.
template <class Callable>
concept WithParameters = std::is_function_v<std::remove_pointer_t<Callable>> || requires {
    typename std::type_identity<decltype(&Callable::operator())>::type;
};

/// The parameters of a callable that is no template, as values.
template <class Callable>
struct parameters_of : parameters_of<decltype(&Callable::operator())> {};
template <class Answer, class... Types>
struct parameters_of<Answer (*)(Types...)> {
    using type = Parameters<std::remove_cvref_t<Types>...>;
    using as_written = Parameters<Types...>;
    using answer = Answer;
};
template <class Answer, class... Types>
struct parameters_of<Answer (*)(Types...) noexcept> : parameters_of<Answer (*)(Types...)> {};
template <class Answer, class Object, class... Types>
struct parameters_of<Answer (Object::*)(Types...)> : parameters_of<Answer (*)(Types...)> {};
template <class Answer, class Object, class... Types>
struct parameters_of<Answer (Object::*)(Types...) const> : parameters_of<Answer (*)(Types...)> {};
template <class Answer, class Object, class... Types>
struct parameters_of<Answer (Object::*)(Types...) noexcept> : parameters_of<Answer (*)(Types...)> {};
template <class Answer, class Object, class... Types>
struct parameters_of<Answer (Object::*)(Types...) const noexcept> : parameters_of<Answer (*)(Types...)> {};

template <class T>
inline constexpr bool is_payload = std::is_same_v<T, Bytes>;

/// Trivially copyable, and yet not the value itself.
template <class T>
inline constexpr bool only_refers = std::is_pointer_v<T>;
template <class T, std::size_t extent>
inline constexpr bool only_refers<std::span<T, extent>> = true;
template <class Char, class Traits>
inline constexpr bool only_refers<std::basic_string_view<Char, Traits>> = true;
template <class T>
inline constexpr bool only_refers<std::reference_wrapper<T>> = true;

/// A value that is nothing but its memory. (Pointers inside of a class are the program's mistake.)
template <class T>
concept TravelsAsBytes = std::is_trivially_copyable_v<T> &&(is_payload<T> || !only_refers<T>);

/// What the arguments take up, without the payload.
template <class... Types>
inline constexpr std::size_t packed_bytes = ((std::size_t{0} + ... + (is_payload<Types> ? 0 : sizeof(Types))) + 7) / 8 *
                                            8;

/// True if Bytes is the last of them, or none of them.
template <class... Types>
constexpr bool payload_is_last() {
    std::size_t index = 0, at = sizeof...(Types);
    ((is_payload<Types> && at == sizeof...(Types) ? at = index : at, ++index), ...);
    return at + 1 >= sizeof...(Types);
}

/// What is left free before the arguments, for the engine's header.
inline constexpr std::size_t header_room = 8;

/// Arguments on their way out. The payload is referred to, not copied.
template <class... Types>
class Packed {
    static_assert((TravelsAsBytes<Types> && ...)); // Handlers::add() says what to write
    static_assert(payload_is_last<Types...>());

public:
    explicit Packed(const std::type_identity_t<Types>&... arguments) noexcept {
        [[maybe_unused]] std::size_t at = header_room;
        (put(at, arguments), ...);
    }

    /// With room for the header.
    MutableBytes message() noexcept { return bytes_; }
    Bytes payload() const noexcept { return payload_; }

private:
    template <class T>
    void put(std::size_t& at, const T& argument) noexcept {
        if constexpr (is_payload<T>) {
            payload_ = argument;
        } else {
            std::memcpy(bytes_.data() + at, &argument, sizeof(T));
            at += sizeof(T);
        }
    }

    alignas(8) std::array<std::byte, header_room + packed_bytes<Types...>> bytes_{};
    Bytes payload_;
};

/// Arguments that have arrived.
template <class... Types>
struct Unpack {
    /// Calls with the arguments; false when these bytes are not such arguments.
    template <class Callable>
    static bool apply(Bytes bytes, Callable&& callable) {
        constexpr bool has_payload = (is_payload<Types> || ...);
        if (has_payload ? bytes.size() < packed_bytes<Types...> : bytes.size() != packed_bytes<Types...>) return false;
        [[maybe_unused]] std::size_t at = 0;
        // Braces: from left to right.
        const std::tuple<Types...> arguments{take<Types>(bytes, at)...};
        std::apply(callable, arguments);
        return true;
    }

private:
    template <class T>
    static T take(Bytes bytes, std::size_t& at) noexcept {
        if constexpr (is_payload<T>) {
            return bytes.subspan(packed_bytes<Types...>);
        } else {
            std::array<std::byte, sizeof(T)> raw;
            std::memcpy(raw.data(), bytes.data() + at, sizeof(T));
            at += sizeof(T);
            return std::bit_cast<T>(raw);
        }
    }
};

template <class T>
inline constexpr bool is_character =
    std::is_same_v<T, char> || std::is_same_v<T, wchar_t> || std::is_same_v<T, char8_t> ||
    std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>;

/// "i8", "f8", "24": kind and size. Programs of different architectures agree wherever the bytes mean the same: a char
/// is "c1", for whether it has a sign differs and does no harm. A long double does not mean the same, though it has 16
/// bytes on both: by the bits of its significand it is "f16.64" on x86-64 and "f16.113" on aarch64.
template <class T>
std::string kind_and_size() {
    std::string text = std::is_same_v<T, bool>       ? "b"
                       : is_character<T>             ? "c"
                       : std::is_floating_point_v<T> ? "f"
                       : std::is_enum_v<T>           ? "e"
                       : !std::is_integral_v<T>      ? ""
                       : std::is_signed_v<T>         ? "i"
                                                     : "u";
    text += std::to_string(sizeof(T));
    if constexpr (std::is_same_v<T, long double>)
        text.append(".").append(std::to_string(std::numeric_limits<T>::digits));
    return text;
}

/// "i8 f8 24 *": kinds and sizes, which two programs must agree on; * is a payload.
template <class... Types>
std::string signature_of() {
    std::string text;
    [[maybe_unused]] const auto add = [&]<class T>(std::type_identity<T>) {
        text += text.empty() ? "" : " ";
        text += is_payload<T> ? std::string("*") : kind_and_size<T>();
    };
    (add(std::type_identity<Types>{}), ...);
    return text;
}

} // namespace kumi::engine
