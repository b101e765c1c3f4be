#pragma once

// Values as bytes: what functions are called with, and what they answer. cereal knows the types: those below, those
// that have a `serialize` of their own, and more of the standard library's by including <cereal/types/...>. The bytes
// are ours.
//
// Numbers, and classes that are nothing but their memory, lie there as in memory, one after the other without gaps; a
// container is its size in 8 bytes, then its elements. The same on every architecture that Kumi runs on.
//
// Reading trusts nothing. Nothing outside of the bytes is read; a container is never told to have more elements than
// there are bytes left, and a vector makes no more room than these would fill; nesting has a bound, for it costs stack.
// So elements that take no bytes at all cannot be sent in a container.

#ifndef CEREAL_THREAD_SAFE
// for class versions, which it keeps in a table; to be defined by who includes cereal earlier
#define CEREAL_THREAD_SAFE 1
#endif

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/call/parameters.hpp"

#include <cereal/cereal.hpp>
#include <cereal/types/array.hpp>
#include <cereal/types/deque.hpp>
#include <cereal/types/list.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/set.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/tuple.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/unordered_set.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

// A namespace of its own: cereal finds the functions below by their archives alone, not by types of the engine.
namespace kumi::engine::archive {

/// These bytes are not what was to be read from them.
class BadBytes : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// How deeply values may lie in each other, counted in calls of an archive: several for each level of a tree.
inline constexpr std::uint32_t archive_depth_max = 4000;

/// Appends values to bytes.
class Writer final : public cereal::OutputArchive<Writer> {
public:
    explicit Writer(std::vector<std::byte>& bytes) : cereal::OutputArchive<Writer>(this), bytes_(bytes) {}

    void append(const void* data, std::size_t count);
    void enter() {
        if (++depth_ > archive_depth_max) throw std::length_error("values are nested too deeply to be sent");
    }
    void leave() noexcept { --depth_; }

private:
    std::vector<std::byte>& bytes_;
    std::uint32_t depth_ = 0;
};

/// Takes values from bytes; throws BadBytes where they are not there.
class Reader final : public cereal::InputArchive<Reader> {
public:
    explicit Reader(Bytes bytes) : cereal::InputArchive<Reader>(this), left_(bytes) {}

    std::size_t left() const noexcept { return left_.size(); }
    void take(void* data, std::size_t count) {
        if (count > left_.size()) throw BadBytes("the bytes end too early");
        if (count != 0) std::memcpy(data, left_.data(), count); // nowhere to copy to is allowed for nothing
        left_ = left_.subspan(count);
    }
    bool take_bool() {
        std::uint8_t byte;
        take(&byte, 1);
        if (byte > 1) throw BadBytes("neither true nor false");
        return byte == 1;
    }
    /// The size of a container.
    std::uint64_t take_count() {
        std::uint64_t count;
        take(&count, sizeof(count));
        if (count > left_.size()) throw BadBytes("a container has more elements than there are bytes");
        return count;
    }
    void enter() {
        if (++depth_ > archive_depth_max) throw BadBytes("values are nested too deeply");
    }
    void leave() noexcept { --depth_; }

private:
    Bytes left_;
    std::uint32_t depth_ = 0;
};

} // namespace kumi::engine::archive

/// Archives that stand for any other when only this is asked: does cereal know the type? What Writer does depends on
/// the answer, so it cannot be asked itself.
namespace kumi::engine::archive_probe {

struct Writer : cereal::OutputArchive<Writer> {
    template <class... Types>
    Writer& operator()(Types&&...);
};
struct Reader : cereal::InputArchive<Reader> {
    template <class... Types>
    Reader& operator()(Types&&...);
};

} // namespace kumi::engine::archive_probe

CEREAL_REGISTER_ARCHIVE(kumi::engine::archive::Writer)
CEREAL_REGISTER_ARCHIVE(kumi::engine::archive::Reader)
CEREAL_SETUP_ARCHIVE_TRAITS(kumi::engine::archive::Reader, kumi::engine::archive::Writer)
CEREAL_SETUP_ARCHIVE_TRAITS(kumi::engine::archive_probe::Reader, kumi::engine::archive_probe::Writer)

namespace kumi::engine::archive {

/// A class that cereal does not know and that is nothing but its memory. (Pointers inside of it are the user's
/// mistake.)
template <class T>
concept PlainClass =
    (std::is_class_v<T> || std::is_union_v<T>)&&std::is_trivially_copyable_v<T> &&
    !only_refers<T> && cereal::traits::detail::count_output_serializers<T, archive_probe::Writer>::value == 0 &&
    cereal::traits::detail::count_input_serializers<T, archive_probe::Reader>::value == 0;

/// Travels as it lies in memory.
template <class T>
concept Plain = std::is_arithmetic_v<T> || PlainClass<T>;

// ---- found by cereal, as its archives' own functions are

template <class T>
void prologue(Writer& writer, const T&) {
    writer.enter();
}
template <class T>
void epilogue(Writer& writer, const T&) noexcept {
    writer.leave();
}
template <class T>
void prologue(Reader& reader, const T&) {
    reader.enter();
}
template <class T>
void epilogue(Reader& reader, const T&) noexcept {
    reader.leave();
}

template <Plain T>
void save(Writer& writer, const T& value) {
    writer.append(std::addressof(value), sizeof(T));
}
template <Plain T>
void load(Reader& reader, T& value) {
    if constexpr (std::is_same_v<T, bool>) value = reader.take_bool();
    else reader.take(std::addressof(value), sizeof(T));
}

template <class T>
void save(Writer& writer, const cereal::NameValuePair<T>& named) {
    writer(named.value);
}
template <class T>
void load(Reader& reader, cereal::NameValuePair<T>& named) {
    reader(named.value);
}

template <class T>
void save(Writer& writer, const cereal::SizeTag<T>& tag) {
    const auto count = static_cast<std::uint64_t>(tag.size);
    writer.append(&count, sizeof(count));
}
template <class T>
void load(Reader& reader, cereal::SizeTag<T>& tag) {
    tag.size = static_cast<std::remove_cvref_t<T>>(reader.take_count());
}

template <class T>
void save(Writer& writer, const cereal::BinaryData<T>& data) {
    writer.append(data.data, static_cast<std::size_t>(data.size));
}
template <class T>
void load(Reader& reader, cereal::BinaryData<T>& data) {
    using Element = std::remove_cv_t<std::remove_all_extents_t<std::remove_pointer_t<std::remove_reference_t<T>>>>;
    if constexpr (std::is_same_v<Element, bool>)
        for (std::size_t index = 0; index < data.size; ++index)
            static_cast<bool*>(data.data)[index] = reader.take_bool();
    else reader.take(data.data, static_cast<std::size_t>(data.size));
}

/// Many travel as they lie in memory. (To cereal a std::byte is an enumeration, which it takes one by one.)
template <class T>
concept PlainElement = Plain<T> || std::is_same_v<T, std::byte>;

template <PlainElement T, class Allocator>
    requires(!std::is_arithmetic_v<T>) // those are cereal's
void save(Writer& writer, const std::vector<T, Allocator>& vector) {
    writer(cereal::make_size_tag(static_cast<cereal::size_type>(vector.size())));
    writer.append(vector.data(), vector.size() * sizeof(T));
}
template <class T, class Allocator>
    requires(!std::is_same_v<T, bool>)
void load(Reader& reader, std::vector<T, Allocator>& vector) {
    const std::size_t count = reader.take_count(), fill = reader.left() / sizeof(T);
    vector.clear();
    if constexpr (PlainElement<T>) {
        if (count > fill) throw BadBytes("a vector is longer than its bytes");
        vector.resize(count);
        reader.take(vector.data(), count * sizeof(T));
    } else {
        vector.reserve(count < fill ? count : fill);
        for (std::size_t index = 0; index < count; ++index) reader(vector.emplace_back());
    }
}

} // namespace kumi::engine::archive

namespace kumi::engine {

/// Can be written to bytes and read from them. Asked for containers of the standard library, their elements count.
template <class T>
inline constexpr bool is_archived =
    !std::is_pointer_v<T> && cereal::traits::is_output_serializable<T, archive::Writer>::value &&
    cereal::traits::is_input_serializable<T, archive::Reader>::value;
template <class T, class... More>
inline constexpr bool is_archived<std::vector<T, More...>> = is_archived<T>;
template <class T, class... More>
inline constexpr bool is_archived<std::list<T, More...>> = is_archived<T>;
template <class T, class... More>
inline constexpr bool is_archived<std::deque<T, More...>> = is_archived<T>;
template <class T, class... More>
inline constexpr bool is_archived<std::set<T, More...>> = is_archived<T>;
template <class T, class... More>
inline constexpr bool is_archived<std::unordered_set<T, More...>> = is_archived<T>;
template <class Key, class T, class... More>
inline constexpr bool is_archived<std::map<Key, T, More...>> = is_archived<Key>&& is_archived<T>;
template <class Key, class T, class... More>
inline constexpr bool is_archived<std::unordered_map<Key, T, More...>> = is_archived<Key>&& is_archived<T>;
template <class T, std::size_t count>
inline constexpr bool is_archived<std::array<T, count>> = is_archived<T>;
template <class T>
inline constexpr bool is_archived<std::optional<T>> = is_archived<T>;
template <class First, class Second>
inline constexpr bool is_archived<std::pair<First, Second>> = is_archived<First>&& is_archived<Second>;
template <class... Types>
inline constexpr bool is_archived<std::tuple<Types...>> = (is_archived<Types> && ...);

using archive::BadBytes;

/// The values one after the other. Throws what the types' own functions throw.
template <class... Types>
std::vector<std::byte> write_archive(const Types&... values) {
    std::vector<std::byte> bytes;
    bytes.reserve((sizeof(Types) + ... + 0));
    archive::Writer writer(bytes);
    (writer(values), ...);
    return bytes;
}

/// Reads what write_archive() made of values of these types, and of nothing else: throws BadBytes, and nothing else,
/// whatever a type's own function throws.
template <class... Types>
void read_archive(Bytes bytes, Types&... values) {
    try {
        archive::Reader reader(bytes);
        (reader(values), ...);
        if (reader.left() != 0) throw BadBytes("there are more bytes than values");
    } catch (const BadBytes&) {
        throw;
    } catch (...) { // by cereal, or by a type's own function
        throw BadBytes(error_of_thrown(ErrorCode::refused).text());
    }
}

} // namespace kumi::engine
