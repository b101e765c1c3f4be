#include "simulation/reliable_schedule.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace kumi::simulation {
namespace {

using namespace std::chrono_literals;

/// All messages have arrived this long after the last fault.
constexpr Duration end_max = 90s;

std::uint64_t word_of(std::uint64_t key, std::uint64_t index) noexcept {
    const std::uint64_t word = (key + index) * 0x9E37'79B9'7F4A'7C15u;
    return word ^ (word >> 29);
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

} // namespace

ReliableSchedule::ReliableSchedule(std::uint64_t seed)
    : seed_(seed), random_(seed * 2 + 1), options_(choose_options(random_)), network_(options_) {
    choose_streams();
    choose_troubles();
    if (random_.chance(0.5)) keeps_ = 0.7, keeps_for_ = random_.time(100us, 200ms);
    const std::uint32_t guaranteed = network_[0].introduction().credit_guaranteed;
    guarantees_fit_ = std::size_t{guaranteed} * options_.nodes <= options_.endpoint.receive_bytes;
    network_.on_message = [this](Node at, const Arrival& arrival) { on_message(at, arrival); };
    network_.on_turn = [this](Node node) { on_turn(node); };
    network_.on_packet = [this](const PacketHeader& header) { on_packet(header); };
    sent_totals_.resize(streams_.size(), SentTotals{.credit = guaranteed});
}

NetworkOptions ReliableSchedule::choose_options(Random& random) {
    NetworkOptions options;
    options.nodes = static_cast<Node>(random.between(2, 5));
    options.seed = random.next();
    EndpointOptions& endpoint = options.endpoint;
    endpoint.message_bytes_max = random.chance(0.1)   ? 4 << 20
                                 : random.chance(0.5) ? 256 << 10
                                                      : random.between(1, 256 << 10);
    endpoint.receive_bytes = random.chance(0.3) ? random.between(8 << 10, 64 << 10) : random.between(64 << 10, 4 << 20);
    endpoint.window_packets_max = 1u << random.between(3, 11);
    if (random.chance(0.4)) endpoint.first_sequence = 0xFFFF'FF00u + static_cast<std::uint32_t>(random.below(256));
    if (random.chance(0.3)) endpoint.ack_delay_max = random.time(0us, 1ms);
    endpoint.checked = reliable::Checked::everything;
    constexpr std::uint32_t usual[] = {512, 1472, 8968, 65'472};
    options.packet_bytes =
        random.chance(0.6) ? usual[random.below(4)] : static_cast<std::uint32_t>(random.between(64, 8184) * 8);
    options.socket_bytes =
        random.chance(0.3) ? std::max<std::size_t>(endpoint.receive_bytes / 2, 80 << 10) : endpoint.receive_bytes;
    options.socket_bytes = std::max<std::size_t>(options.socket_bytes, 80 << 10); // one packet at least
    if (random.chance(0.5)) options.packet_cost = random.time(0us, 5us);
    if (random.chance(0.3)) options.coalesce = 0.5;
    if (random.chance(0.2)) {
        options.link_bytes_per_us = static_cast<double>(random.between(20, 2000));
        options.link_queue_bytes = random.between(128 << 10, 1 << 20);
    }
    if (random.chance(0.3)) { // a switch may carry less than the nodes assume
        options.sure_bytes = random.chance(0.5) ? 1200 : reliable::packet_bytes_min;
        if (random.chance(0.7))
            options.path_bytes = static_cast<std::uint32_t>(
                random.between(64, std::max<std::uint64_t>(64, options.packet_bytes / 8)) * 8);
    }
    Faults& faults = options.faults;
    if (random.chance(0.6)) faults.loss = random.chance(0.5) ? 0.02 : static_cast<double>(random.below(31)) / 100;
    if (random.chance(0.4)) faults.duplicate = static_cast<double>(random.below(30)) / 100;
    if (random.chance(0.3)) faults.corrupt = static_cast<double>(random.below(15)) / 100;
    if (random.chance(0.3)) faults.truncate = static_cast<double>(random.below(15)) / 100;
    if (random.chance(0.4)) faults.late = static_cast<double>(random.below(30)) / 100;
    faults.delay_min = random.time(5us, 200us);
    faults.delay_max = faults.delay_min + (random.chance(0.5) ? random.time(0us, 1ms) : Duration{0});
    // a distant peer
    if (endpoint.receive_bytes > 512 << 10 && endpoint.window_packets_max >= 256 && random.chance(0.15))
        faults.delay_min += 20ms, faults.delay_max += 25ms;
    return options;
}

void ReliableSchedule::choose_streams() {
    const Node nodes = options_.nodes;
    const std::size_t message_max = options_.endpoint.message_bytes_max;
    const bool many_to_one = random_.chance(0.2);
    for (Node from = 0; from < nodes; ++from)
        for (Node to = 0; to < nodes; ++to) {
            Stream made{.from = from, .to = to, .style = Style::burst, .leads = from < to, .count = 0, .bytes_max = 0};
            if (many_to_one ? to == 0 : random_.chance(from == to ? 0.3 : 0.6)) {
                made.count = static_cast<std::uint32_t>(random_.between(1, random_.chance(0.5) ? 20 : 200));
                made.bytes_max = random_.chance(0.4) ? std::min<std::size_t>(message_max, 200) : message_max;
                made.style = random_.chance(0.6) ? Style::burst : Style::paced;
                const std::size_t budget = 1 << 20;
                if (made.count * made.bytes_max / 4 > budget)
                    made.count = static_cast<std::uint32_t>(std::max<std::size_t>(1, budget * 4 / made.bytes_max));
            }
            streams_.push_back(made);
        }
    for (Node a = 0; a < nodes; ++a)
        for (Node b = a + 1; b < nodes; ++b)
            if (stream(a, b).count != 0 && stream(b, a).count != 0 && random_.chance(0.4)) {
                stream(a, b).count = stream(b, a).count = std::min(stream(a, b).count, stream(b, a).count);
                stream(a, b).style = stream(b, a).style = Style::ping_pong;
            }
    if (all_received()) streams_[1].count = 5, streams_[1].bytes_max = message_max; // at least one node sends something
}

void ReliableSchedule::choose_troubles() {
    Duration at{0};
    for (auto count = random_.chance(0.5) ? random_.between(1, 4) : 0; count > 0; --count) {
        at += random_.time(0us, random_.chance(0.7) ? Duration{5ms} : Duration{2s});
        const Node node = static_cast<Node>(random_.below(options_.nodes));
        const Node other = static_cast<Node>(random_.below(options_.nodes));
        const Duration lasts = random_.time(100us, random_.chance(0.5) ? Duration{50ms} : Duration{6s});
        switch (random_.below(5)) {
        case 0: troubles_.push_back({at, [=, this] { network_.freeze(node, lasts); }}); break;
        case 1:
            troubles_.push_back({at, [=, this] { network_.cut(node, other, true); }});
            troubles_.push_back({at + lasts, [=, this] { network_.cut(node, other, false); }});
            break;
        case 2: troubles_.push_back({at, [=, this] { network_.refuse_sending(node, lasts); }}); break;
        case 3: troubles_.push_back({at, [=, this] { network_.jump_clock(node, lasts * 100); }}); break;
        case 4: {
            const auto bytes = static_cast<std::uint32_t>(random_.between(64, 8184) * 8);
            if (options_.sure_bytes < reliable::packet_bytes_max)
                troubles_.push_back({at, [=, this] { network_.set_path_bytes(bytes); }});
            else
                troubles_.push_back(
                    {at, [=, this] { network_[node].set_packet_bytes(other, bytes, network_.now(node)); }});
            break;
        }
        }
    }
    // Random faults end too, some time after the last other fault.
    troubles_.push_back({at + random_.time(50ms, 3s), [this] {
                             const Faults before = network_.faults();
                             network_.faults() = Faults{.delay_min = before.delay_min, .delay_max = before.delay_max};
                         }});
    std::stable_sort(troubles_.begin(), troubles_.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
}

// ---- messages

std::size_t ReliableSchedule::size_of(const Stream& stream, std::uint32_t index) const {
    Random random(seed_ ^ (std::uint64_t{stream.from} << 40) ^ (std::uint64_t{stream.to} << 48) ^ index);
    const double kind = static_cast<double>(random.below(100));
    if (kind < 40) return std::min<std::size_t>(stream.bytes_max, random.below(33));
    if (kind < 60) return std::min<std::size_t>(stream.bytes_max, random.below(2000));
    if (kind < 65) return stream.bytes_max;
    // Sizes around those that fill one packet or several.
    if (kind < 75)
        return std::min<std::size_t>(stream.bytes_max,
                                     options_.packet_bytes * random.between(1, 3) + random.below(160) - 100);
    return random.below(stream.bytes_max + 1);
}

void ReliableSchedule::fill(const Stream& stream, std::uint32_t index, std::byte* to, std::size_t bytes) const {
    const std::uint64_t key = word_of(seed_ + stream.from * 1000 + stream.to, index);
    std::size_t at = 0;
    for (; at + 8 <= bytes; at += 8) {
        const std::uint64_t word = word_of(key, at);
        std::memcpy(to + at, &word, 8);
    }
    const std::uint64_t word = word_of(key, at);
    if (at != bytes) std::memcpy(to + at, &word, bytes - at);
}

bool ReliableSchedule::is_intact(const Stream& stream, std::uint32_t index, Bytes message) const {
    if (message.size() != size_of(stream, index)) return false;
    const std::uint64_t key = word_of(seed_ + stream.from * 1000 + stream.to, index);
    std::size_t at = 0;
    for (; at + 8 <= message.size(); at += 8) {
        const std::uint64_t word = word_of(key, at);
        if (std::memcmp(message.data() + at, &word, 8) != 0) return false;
    }
    const std::uint64_t word = word_of(key, at);
    return message.size() == at || std::memcmp(message.data() + at, &word, message.size() - at) == 0;
}

void ReliableSchedule::on_message(Node at, const Arrival& arrival) {
    Stream& from = stream(arrival.source, at);
    if (from.received == from.count) fail(fmt::format("a message too many from {} to {}", from.from, at));
    else if (!is_intact(from, from.received, arrival.bytes))
        fail(fmt::format("message {} from {} to {}, of {} bytes, is not what was sent", from.received, from.from, at,
                         arrival.bytes.size()));
    const std::uint32_t index = from.received++;
    if (arrival.block == nullptr) return;
    if (!random_.chance(keeps_)) return network_[at].release(arrival.block);
    kept_.push_back({network_.time() + random_.time(0us, keeps_for_), at, &from, index, arrival});
}

void ReliableSchedule::release_some(Node node) {
    std::erase_if(kept_, [&](const Kept& kept) {
        if (kept.at != node) return false;
        if (kept.until > network_.time()) return network_.wake_at(node, kept.until), false;
        if (!is_intact(*kept.stream, kept.index, kept.arrival.bytes)) fail("a message that was kept has changed");
        network_[node].release(kept.arrival.block);
        network_.wake_at(node, network_.time());
        return true;
    });
}

bool ReliableSchedule::may_send(const Stream& out) const {
    if (out.sent == out.count) return false;
    if (out.style != Style::ping_pong) return true;
    const Stream& back = streams_[out.to * options_.nodes + out.from];
    return out.sent < back.received + (out.leads ? 1 : 0);
}

bool ReliableSchedule::send(Stream& out, std::size_t bytes) {
    Endpoint& endpoint = network_[out.from];
    const Instant now = network_.now(out.from);
    if (random_.chance(0.5)) {
        scratch_.resize(bytes);
        fill(out, out.sent, scratch_.data(), bytes);
        return network_.send(out.from, out.to, scratch_);
    }
    const std::size_t more = std::min(bytes + random_.below(100), options_.endpoint.message_bytes_max);
    std::byte* room = endpoint.try_reserve(out.to, more);
    if (room != nullptr && random_.chance(0.1)) {
        endpoint.cancel(out.to);
        room = endpoint.try_reserve(out.to, more);
    }
    if (room == nullptr) return false;
    fill(out, out.sent, room, bytes);
    endpoint.commit(out.to, bytes, now);
    return true;
}

void ReliableSchedule::send_some(Stream& out) {
    while (may_send(out)) {
        if (out.style == Style::paced && network_.time() < out.next_send)
            return network_.wake_at(out.from, out.next_send);
        if (!send(out, size_of(out, out.sent))) return;
        ++out.sent;
        out.next_send = network_.time() + random_.time(0us, random_.chance(0.1) ? Duration{300ms} : Duration{300us});
    }
}

void ReliableSchedule::on_turn(Node node) {
    release_some(node);
    for (Node to = 0; to < options_.nodes; ++to) send_some(stream(node, to));
    check_memory(node);
}

// ---- what must be true

/// No node sends more than its peer has granted, or further ahead than the window, nor acknowledges what was never
/// sent. Values count from the moment they were sent, so these bounds are never too narrow.
void ReliableSchedule::on_packet(const PacketHeader& header) {
    SentTotals& mine = sent_totals_[header.source * options_.nodes + header.destination];
    const SentTotals& other = sent_totals_[header.destination * options_.nodes + header.source];
    const std::uint32_t first = options_.endpoint.first_sequence;
    const auto wrong = [&](const char* what) {
        fail(fmt::format("node {} to {}: {}", header.source, header.destination, what));
    };
    if (header.transmission - first <= mine.transmissions) wrong("a transmission without a number of its own");
    if (header.expected - first > other.packets) wrong("an acknowledgement of packets that were never sent");
    if (header.expected - first < mine.expected) wrong("an acknowledgement that takes an earlier one back");
    if (header.latest - first > other.transmissions) wrong("a transmission has arrived that was never made");
    mine.transmissions = header.transmission - first;
    mine.expected = header.expected - first;
    mine.credit = std::max(mine.credit, header.credit - first);
    if ((header.flags & reliable::flag::data) == 0) return;
    const std::uint32_t sequence = header.sequence - first;
    if (sequence > mine.packets) wrong("a packet was left out");
    if (sequence - other.expected >= options_.endpoint.window_packets_max && sequence >= other.expected)
        wrong("a packet beyond the window");
    if (sequence != mine.packets) return;
    ++mine.packets;
    mine.weight += reliable::weight_of(header.bytes);
    if (mine.weight > other.credit) wrong("more was sent than was granted");
}

void ReliableSchedule::check_memory(Node node) {
    const Endpoint& endpoint = network_[node];
    if (endpoint.bytes_used() > options_.nodes * Endpoint::bytes_per_peer_max(options_.endpoint))
        fail(fmt::format("node {} uses {} bytes", node, endpoint.bytes_used()));
    if (guarantees_fit_ && endpoint.credits().outstanding_of_all() > options_.endpoint.receive_bytes)
        fail(fmt::format("node {} has granted {} of {} bytes", node, endpoint.credits().outstanding_of_all(),
                         options_.endpoint.receive_bytes));
    for (Node peer = 0; peer < options_.nodes; ++peer)
        if (endpoint.gone(peer) != Gone::no)
            fail(fmt::format("node {} takes {} for gone: {}", node, peer, name_of(endpoint.gone(peer))));
}

bool ReliableSchedule::all_received() const {
    return std::all_of(streams_.begin(), streams_.end(),
                       [](const Stream& one) { return one.received == one.count; });
}

std::optional<std::string> ReliableSchedule::run() {
    const auto done = [this] { return failure_ || all_received(); };
    for (Node node = 0; node < options_.nodes; ++node) network_.wake_at(node, Duration{0});
    for (const Trouble& trouble : troubles_) {
        while (!failure_ && network_.step(trouble.time)) {}
        trouble.begin();
    }
    if (!network_.run_until(done, end_max))
        fail(fmt::format("it does not end: {:.3f} s have passed", seconds(network_.time())));
    if (!failure_) check_end();
    return failure_;
}

void ReliableSchedule::check_end() {
    network_.run_for(10s); // for the last acknowledgements
    if (!kept_.empty()) fail("a message is still kept");
    for (Node node = 0; node < options_.nodes; ++node) network_.wake_at(node, network_.time());
    network_.run_for(5s);
    const std::uint64_t packets = network_.packets();
    network_.run_for(100s);
    if (network_.packets() != packets) fail("an idle network is not silent");
    if (!network_.is_silent()) fail("an idle node has a deadline");
    for (Node node = 0; node < options_.nodes; ++node) {
        if (!network_[node].all_arrived()) fail(fmt::format("node {} has not heard that all has arrived", node));
        if (network_[node].is_stalled()) fail(fmt::format("node {} takes itself for stalled", node));
        if (network_[node].bytes_used() != 0)
            fail(fmt::format("node {} still uses {} bytes", node, network_[node].bytes_used()));
    }
}

std::string ReliableSchedule::describe() const {
    const Faults& faults = options_.faults;
    std::string text = fmt::format(
        "{} nodes, packets of {}, messages to {}, receive {}, socket {}, window {}, first {:x}, loss {}, duplicate {}, "
        "corrupt {}, "
        "truncate {}, late {}, delay {} to {} us, keeps {} for {} us, link {}/us",
        options_.nodes, options_.packet_bytes, options_.endpoint.message_bytes_max, options_.endpoint.receive_bytes,
        options_.socket_bytes, options_.endpoint.window_packets_max, options_.endpoint.first_sequence, faults.loss,
        faults.duplicate, faults.corrupt, faults.truncate, faults.late, faults.delay_min / 1us, faults.delay_max / 1us,
        keeps_, keeps_for_ / 1us, options_.link_bytes_per_us);
    for (const Stream& stream : streams_)
        if (stream.count != 0)
            text += fmt::format("\n  {} to {}: {} of {} sent, {} received, to {} bytes, style {}", stream.from,
                                stream.to, stream.sent, stream.count, stream.received, stream.bytes_max,
                                static_cast<int>(stream.style));
    return text;
}

} // namespace kumi::simulation
