#pragma once

// A set of nodes: a value that any node can make at any time, and that travels in messages. No node has to know a set
// beforehand. A member's rank is the number of members before it.

#include "kumi/base/bytes.hpp"
#include "kumi/base/data/words.hpp"
#include "kumi/pm/node.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kumi::group {

using pm::Node;

class Set {
public:
    Set() = default;
    Set(std::initializer_list<Node> members);
    /// From `begin` to before `end`, in steps of one or more.
    static Set range(Node begin, Node end, Node step = 1);

    void add(Node node);
    void remove(Node node) noexcept;
    bool contains(Node node) const noexcept;

    bool empty() const noexcept { return size_ == 0; }
    Node size() const noexcept { return size_; }
    /// The lowest and the highest member. The set must not be empty.
    Node first() const noexcept;
    Node last() const noexcept;

    /// The number of members before `node`, which need not be a member.
    Node rank(Node node) const noexcept;
    /// The member of that rank, which must be less than size().
    Node at(Node rank) const noexcept;
    /// The members with ranks from `begin` to before `end`, as far as they exist.
    Set slice(Node begin, Node end) const;

    Set& operator|=(const Set& other);
    Set& operator&=(const Set& other) noexcept;
    Set& operator-=(const Set& other) noexcept;
    friend Set operator|(Set a, const Set& b) { return std::move(a |= b); }
    friend Set operator&(Set a, const Set& b) { return std::move(a &= b); }
    friend Set operator-(Set a, const Set& b) { return std::move(a -= b); }
    friend bool operator==(const Set&, const Set&) = default;

    /// Members from the lowest to the highest.
    class Iterator;
    Iterator begin() const noexcept;
    Iterator end() const noexcept;

    /// For people: "0-3,7,9".
    std::string text() const;

    /// Appends the shortest encoding: a list of nodes, a range with a step, or bits.
    void encode(std::vector<std::byte>& onto) const;
    /// Takes a set off the front of `bytes`. Nothing, with `bytes` unchanged: they do not begin with a set of nodes
    /// below `nodes`.
    static std::optional<Set> decode(Bytes& bytes, Node nodes);

private:
    static std::optional<Set> decode_list(Bytes& bytes, Node nodes);
    static std::optional<Set> decode_range(Bytes& bytes, Node nodes);
    static std::optional<Set> decode_bits(Bytes& bytes, Node nodes);

    std::uint32_t end_word() const noexcept { return first_word_ + static_cast<std::uint32_t>(words_.size()); }
    /// Makes room for the nodes in words `begin` to before `end`.
    void cover(std::uint32_t begin, std::uint32_t end);
    /// Restores the invariants after bits have been changed.
    void trim() noexcept;
    /// The first member from `from` on; 64 * end_word(): none.
    std::uint64_t next(std::uint64_t from) const noexcept;

    // Bits of nodes from 64 * first_word_ on. The first and the last word are not zero. An empty set has no words, and
    // first_word_ is zero.
    base::Words words_;
    std::uint32_t first_word_ = 0;
    Node size_ = 0;
};

class Set::Iterator {
public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Node;
    using difference_type = std::ptrdiff_t;
    using pointer = const Node*;
    using reference = Node;

    Iterator() = default;
    Node operator*() const noexcept { return static_cast<Node>(node_); }
    Iterator& operator++() noexcept;
    Iterator operator++(int) noexcept {
        Iterator before = *this;
        ++*this;
        return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) noexcept { return a.node_ == b.node_; }

private:
    friend class Set;
    Iterator(const Set& set, std::uint64_t node) noexcept : set_(&set), node_(node) {}
    const Set* set_ = nullptr;
    std::uint64_t node_ = 0; // past the last: 64 times the word after it, which may be no Node
};

} // namespace kumi::group
