// What arbitrary bytes do to the reliable protocol. Nodes 0 and 1 are honest and talk to each other over a bad wire;
// in the name of node 2 come packets that have the right token and checksum and otherwise whatever the input says.
// Also come raw bytes, and packets in an honest node's name whose token, checksum or life is wrong.
//
// Nothing may crash, hang or use more memory than is stated, and between the honest nodes everything that was sent
// arrives, once and in order, and nothing else does.

#include "kumi/base/assert.hpp"
#include "kumi/base/data/checksum.hpp"
#include "fuzz/input.hpp"
#include "simulation/reliable_network.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>

namespace kumi::fuzz {
namespace {

using namespace std::chrono_literals;
using namespace simulation;
using reliable::Drop;
using reliable::RecordHeader;
namespace flag = reliable::flag;

constexpr std::uint64_t token = 0x1234'5678'9ABC'DEF0u; // as the network has it
constexpr Node hostile = 2;
constexpr std::size_t steps_max = 300;
constexpr std::size_t input_bytes_max = 8192;

NetworkOptions options_from(Input& input) {
    NetworkOptions options;
    options.nodes = 3;
    options.seed = input.number();
    options.endpoint.message_bytes_max = 32 << 10;
    options.endpoint.receive_bytes = std::size_t{8} << (10 + input.byte() % 6);
    options.endpoint.window_packets_max = 8u << input.byte() % 9;
    options.endpoint.first_sequence = input.byte() % 2 == 0 ? 0u : 0xFFFF'FFF0u;
    options.socket_bytes = 1 << 20;
    options.packet_bytes = 512 + 8 * (input.number() % 512);
    options.faults.loss = input.byte() % 32 * 0.01;
    options.faults.duplicate = input.byte() % 32 * 0.01;
    options.faults.late = input.byte() % 32 * 0.01;
    return options;
}

class Run {
public:
    explicit Run(Bytes bytes) : input_(bytes), options_(options_from(input_)), network_(options_) {
        network_.cut(0, hostile, true);
        network_.cut(1, hostile, true);
        network_.freeze(hostile, 1000h);
        network_.on_message = [this](Node at, const Arrival& arrival) { on_message(at, arrival); };
        network_.on_packet = [this](const PacketHeader& header) {
            if (header.destination != hostile || header.source == hostile) return;
            transmitted_[header.source] = header.transmission;
            const std::uint32_t next = header.sequence + 1;
            if ((header.flags & flag::data) != 0 && reliable::is_before(sent_[header.source], next))
                sent_[header.source] = next;
        };
    }

    void run() {
        for (std::size_t step = 0; step < steps_max && !input_.empty(); ++step) {
            act();
            for (const Node node : {0u, 1u})
                KUMI_ASSERT(network_[node].bytes_used() <= 3 * Endpoint::bytes_per_peer_max(options_.endpoint));
        }
        network_.faults() = {};
        keeps_ = false;
        release_all();
        network_.run_for(20s);
        KUMI_ASSERT(under_way_[0].empty() && under_way_[1].empty());
        for (const Node node : {0u, 1u}) KUMI_ASSERT(network_[node].gone(1 - node) == Gone::no);
    }

private:
    void act() {
        const std::uint32_t what = input_.byte();
        const Node to = what >> 7;
        switch (what % 8) {
        case 0: network_.run_for(std::chrono::microseconds(input_.byte())); break;
        case 1: network_.run_for(std::chrono::milliseconds(input_.byte())); break;
        case 2: say(1 - to, to, input_.number() % 33'000); break;
        case 3: say(to, hostile, input_.number() % 33'000); break;
        case 4: network_.inject(to, input_.bytes(input_.number() % 2048)); break;
        case 5: lie(to); break;
        case 6: disguise(to); break;
        case 7: keeps_ = !keeps_, release_all(); break;
        }
        network_.wake_at(to, network_.time());
        network_.wake_at(1 - to, network_.time());
    }

    static std::byte content(std::uint32_t count, std::size_t index) {
        return static_cast<std::byte>(count * 31 + index * 7 + index / 256);
    }

    void say(Node from, Node to, std::size_t bytes) {
        bytes = std::min(bytes, options_.endpoint.message_bytes_max);
        std::vector<std::byte> message(bytes);
        for (std::size_t i = 0; i < bytes; ++i) message[i] = content(said_, i);
        if (!network_.send(from, to, message) || to == hostile) return;
        under_way_[to].push_back({said_++, bytes});
    }

    void on_message(Node at, const Arrival& arrival) {
        if (arrival.source != hostile) {
            KUMI_ASSERT(at != hostile && arrival.source == 1 - at && !under_way_[at].empty());
            const Said said = under_way_[at].front();
            under_way_[at].pop_front();
            KUMI_ASSERT(said.bytes == arrival.bytes.size());
            for (std::size_t i = 0; i < said.bytes; ++i) KUMI_ASSERT(arrival.bytes[i] == content(said.count, i));
        }
        if (arrival.block == nullptr) return;
        if (keeps_) kept_.push_back({at, arrival.block});
        else network_[at].release(arrival.block);
    }

    void release_all() {
        for (const auto& [node, block] : kept_) network_[node].release(block);
        kept_.clear();
        for (const Node node : {0u, 1u}) network_.wake_at(node, network_.time());
        network_.run_for(1s);
    }

    /// A header whose fields are near what would be right.
    PacketHeader header_from_input(Node from, Node to) {
        const std::uint32_t first = options_.endpoint.first_sequence;
        const auto near = [&](std::uint32_t value) {
            return value + static_cast<std::uint32_t>(static_cast<std::int8_t>(input_.byte()));
        };
        PacketHeader header{};
        header.token = token;
        header.flags = static_cast<std::uint8_t>(input_.byte());
        header.source = from;
        header.destination = to;
        header.source_incarnation = header.destination_incarnation = 1;
        header.sequence = near(sequence_[to]);
        header.expected = near(first);
        header.credit = first + (input_.number() << 8);
        header.transmission = near(transmission_[to]++);
        header.latest = near(first);
        header.held_us = input_.byte();
        return header;
    }

    std::vector<std::byte> packet_of(PacketHeader header, Bytes rest) {
        if ((header.flags & flag::data) == 0)
            header.ack_words = static_cast<std::uint8_t>(std::min<std::size_t>(rest.size() / 8, 255));
        const std::size_t bytes =
            sizeof header +
            ((header.flags & flag::data) != 0 ? reliable::padded(rest.size()) : header.ack_words * std::size_t{8});
        header.bytes = static_cast<std::uint16_t>(bytes);
        std::vector<std::byte> packet(bytes);
        std::memcpy(packet.data(), &header, sizeof header);
        if (!rest.empty())
            std::memcpy(packet.data() + sizeof header, rest.data(), std::min(rest.size(), bytes - sizeof header));
        header.checksum = base::checksum(packet);
        std::memcpy(packet.data(), &header, sizeof header);
        return packet;
    }

    /// From the hostile node, with all that makes a packet sound.
    void lie(Node to) {
        const PacketHeader header = header_from_input(hostile, to);
        if ((header.flags & flag::data) != 0) ++sequence_[to];
        std::vector<std::byte> rest;
        if (input_.byte() % 4 != 0) { // a piece or a message that might be right
            const RecordHeader record{input_.number(),
                                      input_.byte() % 2 == 0 ? reliable::whole_message : input_.number()};
            rest.resize(sizeof record);
            std::memcpy(rest.data(), &record, sizeof record);
        }
        const Bytes more = input_.bytes(input_.byte() * 8);
        rest.insert(rest.end(), more.begin(), more.end());
        if (is_beyond_all_sent(to, header)) drop_at_once(to, packet_of(header, rest));
        else network_.inject(to, packet_of(header, rest));
    }

    /// It acknowledges what node `to` has never sent to the hostile one.
    bool is_beyond_all_sent(Node to, const PacketHeader& header) const {
        return reliable::is_before(sent_[to], header.expected) || reliable::is_before(transmitted_[to], header.latest);
    }

    /// No message comes of it, it is counted, and nothing counts as arrived by it.
    void drop_at_once(Node to, const std::vector<std::byte>& packet) {
        Endpoint& endpoint = network_[to];
        const auto drops = [&] {
            std::uint64_t all = 0;
            for (const std::uint64_t count : endpoint.drops().by_cause) all += count;
            return all;
        };
        Arrival arrival;
        while (endpoint.next_message(arrival, network_.now(to))) on_message(to, arrival); // what had to wait for memory
        const std::uint64_t before = drops();
        const std::size_t waiting = endpoint.sender(hostile).queue_bytes();
        const std::size_t used = endpoint.on_packet(packet, network_.now(to));
        KUMI_ASSERT(used == packet.size() && drops() == before + 1);
        KUMI_ASSERT(!endpoint.next_message(arrival, network_.now(to)));
        KUMI_ASSERT(endpoint.sender(hostile).queue_bytes() == waiting);
    }

    /// From an honest node as it seems, with one thing wrong.
    void disguise(Node to) {
        PacketHeader header = header_from_input(1 - to, to);
        const std::uint32_t wrong = input_.byte() % 4;
        if (wrong == 0) header.token ^= std::uint64_t{1} << input_.byte() % 64;
        if (wrong == 1) header.source_incarnation = 0;
        if (wrong == 2) header.destination_incarnation = input_.byte() + 2;
        auto packet = packet_of(header, input_.bytes(input_.byte() * 8));
        if (wrong == 3) packet[offsetof(PacketHeader, checksum)] ^= std::byte{1};
        network_.inject(to, packet);
    }

    struct Said {
        std::uint32_t count;
        std::size_t bytes;
    };

    Input input_;
    NetworkOptions options_;
    ReliableNetwork network_;
    std::deque<Said> under_way_[2]; // by destination
    std::uint32_t said_ = 0;
    bool keeps_ = false;
    std::vector<std::pair<Node, Block*>> kept_;
    std::uint32_t sequence_[2] = {options_.endpoint.first_sequence, options_.endpoint.first_sequence};
    // The last that each honest node has sent to the hostile one: the sequence behind it, and its transmission.
    std::uint32_t sent_[2] = {options_.endpoint.first_sequence, options_.endpoint.first_sequence};
    std::uint32_t transmitted_[2] = {options_.endpoint.first_sequence, options_.endpoint.first_sequence};
    std::uint32_t transmission_[2] = {options_.endpoint.first_sequence + 1, options_.endpoint.first_sequence + 1};
};

void parse_alone(Bytes bytes) {
    for (const auto checked : {reliable::Checked::nothing, reliable::Checked::heads}) {
        Bytes packet = bytes;
        PacketHeader header;
        std::uint64_t own = 0;
        read_value(bytes, own); // so that the token is right
        Drop cause;
        if (!reliable::parse(packet, own, checked, header, cause)) continue;
        KUMI_ASSERT(packet.size() == header.bytes && packet.size() <= bytes.size() && packet.size() >= sizeof header);
    }
}

} // namespace
} // namespace kumi::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const kumi::Bytes bytes = std::as_bytes(std::span(data, std::min(size, kumi::fuzz::input_bytes_max)));
    kumi::fuzz::parse_alone(bytes);
    kumi::fuzz::Run(bytes).run();
    return 0;
}
