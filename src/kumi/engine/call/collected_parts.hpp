#pragma once

// Puts together what comes in parts: large arguments and answers of calls. Parts of one whole come in order. Memory is
// taken as parts come, not as a message announces it. One thread at a time uses it.

#include "kumi/base/bytes.hpp"
#include "kumi/engine/wire.hpp"
#include "kumi/pm/node.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace kumi::engine {

using pm::Node;

class CollectedParts {
public:
    explicit CollectedParts(std::uint64_t bytes_max) noexcept : bytes_max_(bytes_max) {}

    /// Adds a part that `source` has sent. False: it does not fit behind the parts before it; these are dropped.
    bool add(Node source, const CallPart& part, Bytes data) {
        const Key key = key_of(source, part.operation);
        std::vector<std::byte>& whole = wholes_[key];
        if (part.bytes > bytes_max_ || part.offset != whole.size() || data.size() > part.bytes - part.offset) {
            wholes_.erase(key);
            return false;
        }
        whole.insert(whole.end(), data.begin(), data.end());
        return true;
    }
    /// Takes all parts that have come.
    std::optional<std::vector<std::byte>> take(Node source, OperationId operation) {
        const auto found = wholes_.find(key_of(source, operation));
        if (found == wholes_.end()) return {};
        std::vector<std::byte> whole = std::move(found->second);
        wholes_.erase(found);
        return whole;
    }
    /// Drops what `source` has not sent to the end.
    void drop(Node source) noexcept {
        const auto begin = wholes_.lower_bound({source, 0, 0});
        auto end = begin;
        while (end != wholes_.end() && std::get<0>(end->first) == source) ++end;
        wholes_.erase(begin, end);
    }
    std::size_t size() const noexcept { return wholes_.size(); }

private:
    using Key = std::tuple<Node, std::uint32_t, std::uint32_t>;
    static Key key_of(Node source, OperationId operation) noexcept {
        return {source, operation.index, operation.generation};
    }

    std::uint64_t bytes_max_;
    std::map<Key, std::vector<std::byte>> wholes_;
};

} // namespace kumi::engine
