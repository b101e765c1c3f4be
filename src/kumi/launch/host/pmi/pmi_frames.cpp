#include "kumi/launch/host/pmi/pmi_frames.hpp"

#include "kumi/base/text/number_text.hpp"

#include <algorithm>

namespace kumi::launch::host {
namespace {

void put(std::vector<std::byte>& to, Bytes bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

template <class Head>
std::vector<std::byte> encode_behind(const Head& head, Bytes rest, Bytes more = {}) {
    std::vector<std::byte> body;
    body.reserve(sizeof head + rest.size() + more.size());
    put(body, bytes_of(head));
    put(body, rest);
    put(body, more);
    return body;
}

struct FetchHead {
    std::uint32_t id, asker, target;
    std::int32_t status;
};

} // namespace

std::vector<std::byte> with_node(std::uint32_t node, Bytes rest) { return encode_behind(node, rest); }

std::vector<std::byte> encode(const Abort& abort) {
    return encode_behind(abort.code, bytes_of(std::string_view(abort.text)));
}

std::optional<Abort> decode_abort(Bytes body) {
    Abort abort;
    if (!read_value(body, abort.code)) return std::nullopt;
    abort.text = text_of(body.subspan(sizeof abort.code));
    return abort;
}

std::vector<std::byte> encode(const Fence& fence) {
    return encode_behind(static_cast<std::uint32_t>(fence.key.size()), bytes_of(std::string_view(fence.key)),
                         fence.content);
}

std::optional<Fence> decode_fence(Bytes body) {
    std::uint32_t key_bytes = 0;
    if (!read_value(body, key_bytes) || body.size() - sizeof key_bytes < key_bytes) return std::nullopt;
    const Bytes key = body.subspan(sizeof key_bytes, key_bytes), content = body.subspan(sizeof key_bytes + key_bytes);
    return Fence{std::string(text_of(key)), {content.begin(), content.end()}};
}

std::optional<std::vector<std::uint32_t>> nodes_of_fence(std::string_view key, std::uint32_t nodes) {
    std::vector<std::uint32_t> named;
    if (key.size() < 2) return std::nullopt;
    key.remove_prefix(1);
    if (key == "*") return named;
    while (true) {
        const std::string_view word = key.substr(0, key.find(','));
        const auto node = base::number_in<std::uint32_t>(word);
        if (!node || *node >= nodes || (!named.empty() && *node <= named.back())) return std::nullopt;
        named.push_back(*node);
        if (word.size() == key.size()) return named;
        key.remove_prefix(word.size() + 1);
    }
}

std::vector<std::byte> encode(const Fetch& fetch) {
    return encode_behind(FetchHead{fetch.id, fetch.asker, fetch.target, fetch.status}, fetch.content);
}

std::optional<Fetch> decode_fetch(Bytes body) {
    FetchHead head{};
    if (!read_value(body, head)) return std::nullopt;
    const Bytes content = body.subspan(sizeof head);
    return Fetch{head.id, head.asker, head.target, head.status, {content.begin(), content.end()}};
}

} // namespace kumi::launch::host
