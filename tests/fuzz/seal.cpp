// What arbitrary bytes do to sealed packets and to agreeing on keys. Nodes 0 and 1 are honest and send each other
// packets that get lost, late and doubled; keys are replaced every few packets. Node 2 offers whatever the input says
// in place of a public key. In between come packets of the honest nodes with some bytes changed, headers in their name
// with anything behind them, and raw bytes.
//
// Nothing may crash. What opens is what an honest node sealed, and it opens once. In the end the honest nodes still
// understand each other.

#include "fuzz/input.hpp"
#include "kumi/base/assert.hpp"
#include "kumi/device/udp/seal/seal.hpp"

#include <cstddef>
#include <deque>
#include <set>

namespace kumi::fuzz {
namespace {

using namespace device::udp;
using Packet = std::vector<std::byte>;
using pm::Node;

constexpr Node hostile = 2;
constexpr std::size_t input_bytes_max = 1024; // each step may make keys, which takes a while
constexpr std::size_t under_way_max = 8;

class Run {
public:
    explicit Run(Bytes bytes) : input_(bytes) {
        Options options{.encrypt = true};
        options.rekeying.packets = 1 + input_.byte() % 8;
        options.prefers_aes = input_.byte() % 2 == 0;
        std::vector<SealOffer> offers(3);
        for (Node node = 0; node < hostile; ++node) {
            auto made = Seal::make(options, {}, node);
            KUMI_ASSERT(made);
            nodes_[node] = *std::move(made);
            offers[node] = nodes_[node]->offer();
        }
        const Bytes offered = input_.bytes(sizeof(SealOffer));
        std::memcpy(&offers[hostile], offered.data(), offered.size());
        for (const auto& node : nodes_) node->meet(offers);
    }

    void run() {
        while (!input_.empty()) step();
        for (int i = 0; i < 4; ++i)
            for (Node from = 0; from < hostile; ++from) KUMI_ASSERT(opens(1 - from, sealed(from, 1 - from, {})));
    }

private:
    /// On its way to a node.
    struct Letter {
        Node to;
        Packet packet;
    };

    void step() {
        const std::uint32_t what = input_.byte();
        const Node node = what >> 4 & 1;
        switch (what % 6) {
        case 0:
        case 1: send(node); break;
        case 2: deliver(input_.byte()); break;
        case 3: open_changed(node); break;
        case 4: open_in_honest_name(node); break;
        default: {
            const Bytes raw = input_.bytes(input_.byte());
            opens(node, Packet(raw.begin(), raw.end()));
            sealed(node, hostile, {});
        }
        }
    }

    void send(Node from) {
        const Bytes content = input_.bytes(input_.byte() % 64);
        under_way_.push_back({1 - from, sealed(from, 1 - from, content)});
        if (under_way_.size() > under_way_max) under_way_.pop_front(); // lost
    }

    /// Some letter of those under way, which may stay there for a second time.
    void deliver(std::uint32_t which) {
        if (under_way_.empty()) return;
        const auto letter = under_way_.begin() + static_cast<std::ptrdiff_t>(which / 2 % under_way_.size());
        opens(letter->to, letter->packet);
        if (which % 2 == 0) under_way_.erase(letter);
    }

    void open_changed(Node to) {
        if (under_way_.empty()) return;
        Packet packet = under_way_.back().packet;
        for (std::uint32_t i = input_.byte() % 4 + 1; i > 0; --i)
            packet[input_.number() % packet.size()] ^= static_cast<std::byte>(input_.byte());
        opens(to, std::move(packet));
    }

    void open_in_honest_name(Node to) {
        SealHeader header{};
        if (!name_known_) return;
        header = {name_,
                  input_.byte() % 4,
                  0,
                  static_cast<std::uint8_t>(input_.byte()),
                  static_cast<std::uint8_t>(input_.byte()),
                  input_.number()};
        const Bytes content = input_.bytes(input_.byte() % 64);
        header.bytes = static_cast<std::uint16_t>(sizeof header + content.size() + input_.byte() % 2);
        Packet packet(sizeof header + content.size());
        std::memcpy(packet.data(), &header, sizeof header);
        std::copy(content.begin(), content.end(), packet.begin() + sizeof header);
        opens(to, std::move(packet));
    }

    Packet sealed(Node from, Node to, Bytes content) {
        Packet packet(content.size() + seal_bytes);
        const std::size_t bytes = nodes_[from]->close(to, content, {}, packet.data(), {});
        KUMI_ASSERT(bytes == packet.size() || (bytes == 0 && to == hostile));
        if (bytes == 0 || to == hostile) return {};
        SealHeader header{};
        read_value(packet, header);
        name_ = header.name;
        name_known_ = true;
        valid_.insert({{from, header.number}, Packet(content.begin(), content.end())});
        return packet;
    }

    bool opens(Node at, Packet packet) {
        SealHeader header{};
        read_value(packet, header);
        Bytes content;
        if (nodes_[at]->open(packet, content) != Seal::Opened::yes) return false;
        if (header.source == hostile) return true; // its own
        // Whoever opened it was its destination, so the source is the other one.
        KUMI_ASSERT(header.source == 1 - at);
        const auto sent = valid_.find({{header.source, header.number}, Packet(content.begin(), content.end())});
        KUMI_ASSERT(sent != valid_.end());
        valid_.erase(sent); // never again
        return true;
    }

    Input input_;
    std::unique_ptr<Seal> nodes_[hostile];
    std::deque<Letter> under_way_;
    std::set<std::pair<std::pair<Node, std::uint64_t>, Packet>> valid_; // sealed and not yet opened
    std::uint64_t name_ = 0;
    bool name_known_ = false;
};

} // namespace
} // namespace kumi::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kumi;
    if (size > fuzz::input_bytes_max || !device::udp::crypto::is_available()) return 0;
    fuzz::Run(std::as_bytes(std::span(data, size))).run();
    return 0;
}
