#include "simulation/reliable_network.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>
#include <utility>

namespace kumi::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t datagrams_per_turn = 64;
constexpr int series_per_turn_max = 100'000;

} // namespace

ReliableNetwork::ReliableNetwork(const NetworkOptions& options)
    : options_(options), random_(options.seed), nodes_(options.nodes), cut_(options.nodes * options.nodes) {
    if (options_.socket_bytes == 0) options_.socket_bytes = options.endpoint.receive_bytes;
    for (Node node = 0; node < options.nodes; ++node) make_endpoint(node);
    for (Node node = 0; node < options.nodes; ++node)
        for (Node peer = 0; peer < options.nodes; ++peer) {
            auto introduction = nodes_[peer].endpoint->introduction();
            introduction.packet_bytes = options.packet_bytes;
            introduction.sure_bytes = options.sure_bytes;
            nodes_[node].endpoint->introduce(peer, introduction);
        }
}

void ReliableNetwork::make_endpoint(Node node) {
    EndpointOptions own = options_.endpoint;
    own.self = node;
    own.nodes = options_.nodes;
    own.token = 0x1234'5678'9ABC'DEF0u;
    own.incarnation = nodes_[node].incarnation;
    nodes_[node].endpoint = std::make_unique<Endpoint>(own);
}

void ReliableNetwork::restart(Node node, bool introduce) {
    Member& member = nodes_[node];
    ++member.incarnation;
    make_endpoint(node);
    member.socket.clear();
    member.socket_bytes = 0;
    for (Node peer = 0; peer < options_.nodes; ++peer) {
        auto introduction = nodes_[peer].endpoint->introduction();
        introduction.packet_bytes = options_.packet_bytes;
        introduction.sure_bytes = options_.sure_bytes;
        member.endpoint->introduce(peer, introduction);
        auto own = member.endpoint->introduction();
        own.packet_bytes = options_.packet_bytes;
        own.sure_bytes = options_.sure_bytes;
        if (introduce && peer != node) nodes_[peer].endpoint->introduce(node, own);
    }
}

void ReliableNetwork::kill(Node node) {
    Member& member = nodes_[node];
    member.has_ended = true;
    member.socket.clear();
    member.socket_bytes = 0;
}

void ReliableNetwork::leave(Node node) {
    for (const bool more : {true, false})
        while (nodes_[node].endpoint->next_farewell(*series_, more)) put_on_wire(*series_, 1);
    kill(node);
}

// ---- the wire

std::vector<std::byte> ReliableNetwork::fresh_buffer() {
    if (buffers_.empty()) return {};
    auto buffer = std::move(buffers_.back());
    buffers_.pop_back();
    buffer.clear();
    return buffer;
}

/// Sends as a driver does: by try_send_now() if that is possible.
bool ReliableNetwork::send(Node from, Node to, Bytes message) {
    Member& member = nodes_[from];
    const Bytes packet = to == from ? Bytes{} : member.endpoint->try_send_now(to, message, now(from));
    if (packet.empty()) return member.endpoint->try_send(to, message, now(from));
    if (member.refuses_until > time_ && random_.chance(0.5)) {
        member.endpoint->on_not_sent(to);
    } else {
        series_->to = to;
        series_->count = 1;
        series_->packets[0] = {const_cast<std::byte*>(packet.data()), packet.size(), {}, false};
        put_on_wire(*series_, 1);
    }
    wake_at(from, time_);
    return true;
}

void ReliableNetwork::put_on_wire(const Series& series, std::size_t count) {
    const bool together = count > 1 && random_.chance(options_.coalesce);
    std::vector<std::byte> all;
    for (std::size_t i = 0; i < count; ++i) {
        const auto& packet = series.packets[i];
        PacketHeader header;
        std::memcpy(&header, packet.head, sizeof header);
        ++packets_;
        if ((header.flags & reliable::flag::data) == 0) ++bare_packets_;
        if (on_packet) on_packet(header);
        if (cut_[header.source * options_.nodes + header.destination]) continue;
        if (header.source != header.destination && packet.bytes() > options_.path_bytes) continue;
        if (loses && loses(header)) continue;
        if (random_.chance(options_.faults.loss)) continue;
        auto bytes = fresh_buffer();
        bytes.insert(bytes.end(), packet.head, packet.head + packet.head_bytes);
        bytes.insert(bytes.end(), packet.body.begin(), packet.body.end());
        if (together) all.insert(all.end(), bytes.begin(), bytes.end());
        else deliver(series.to, std::move(bytes));
    }
    if (!all.empty()) deliver(series.to, std::move(all));
}

void ReliableNetwork::deliver(Node to, std::vector<std::byte> bytes) {
    const Faults& faults = options_.faults;
    if (random_.chance(faults.duplicate)) {
        auto copy = fresh_buffer();
        copy.assign(bytes.begin(), bytes.end());
        wire_.push({time_ + random_.time(faults.delay_min, faults.delay_max * 3), order_++, to, std::move(copy)});
    }
    if (random_.chance(faults.corrupt))
        for (auto flips = random_.between(1, 4); flips > 0; --flips)
            bytes[random_.below(bytes.size())] ^= static_cast<std::byte>(1 << random_.below(8));
    if (random_.chance(faults.truncate)) bytes.resize(random_.below(bytes.size()));
    Duration at = time_ + random_.time(faults.delay_min, faults.delay_max);
    if (random_.chance(faults.late)) at += random_.time(0ns, faults.delay_max * 10);
    if (options_.link_bytes_per_us > 0) {
        Duration& free = nodes_[to].link_free;
        free = std::max(free, time_);
        const auto waiting = static_cast<double>((free - time_).count()) / 1000 * options_.link_bytes_per_us;
        if (waiting > static_cast<double>(options_.link_queue_bytes)) {
            ++overflows_;
            return buffers_.push_back(std::move(bytes));
        }
        free +=
            Duration(static_cast<std::int64_t>(static_cast<double>(bytes.size()) * 1000 / options_.link_bytes_per_us));
        at += free - time_;
    }
    wire_.push({at, order_++, to, std::move(bytes)});
}

void ReliableNetwork::inject(Node to, Bytes datagram, Duration after) {
    wire_.push({time_ + after, order_++, to, {datagram.begin(), datagram.end()}});
}

/// The host of `from`, where nobody listens, says so to the sender of a datagram.
void ReliableNetwork::refuse(Node from, Bytes datagram) {
    PacketHeader header;
    if (!read_value(datagram, header) || header.source >= options_.nodes) return;
    Member& sender = nodes_[header.source];
    if (options_.refusal_burst != 0) {
        sender.refusals_from = std::max(sender.refusals_from, time_ - options_.refusal_burst * 1s);
        if (sender.refusals_from + 1s > time_) return;
        sender.refusals_from += 1s;
    }
    wire_.push({time_ + options_.faults.delay_min, order_++, header.source, {}, from});
}

void ReliableNetwork::arrive(Datagram datagram) {
    Member& member = nodes_[datagram.to];
    if (datagram.refused_by) return member.refused_by.push_back(*datagram.refused_by);
    if (member.has_ended) return refuse(datagram.to, datagram.bytes);
    const std::size_t weight = reliable::weight_of(datagram.bytes.size());
    if (member.socket_bytes + weight > options_.socket_bytes) {
        ++overflows_;
        return buffers_.push_back(std::move(datagram.bytes));
    }
    member.socket_bytes += weight;
    socket_bytes_most_ = std::max(socket_bytes_most_, member.socket_bytes);
    member.socket.push_back(std::move(datagram.bytes));
}

// ---- a node's turn

Duration ReliableNetwork::next_turn(Node node) const {
    const Member& member = nodes_[node];
    if (member.has_ended) return Duration::max();
    Duration next = member.wake;
    const Instant deadline = std::max(member.endpoint->next_deadline(), now(node)); // min() is at once
    if (deadline != never) next = std::min(next, deadline - Instant{} - 1h - member.clock_offset);
    if (!member.socket.empty() || !member.refused_by.empty()) next = std::min(next, time_);
    if (member.endpoint->has_ready()) next = std::min(next, std::max(time_, member.refuses_until));
    if (next == Duration::max()) return next;
    return std::max({next, time_, member.frozen_until, member.busy_until});
}

void ReliableNetwork::read_socket(Node node) {
    Member& member = nodes_[node];
    Endpoint& endpoint = *member.endpoint;
    Arrival arrival;
    const auto read = [&] {
        while (endpoint.next_message(arrival, now(node)))
            if (on_message) on_message(node, arrival);
            else if (arrival.block != nullptr) endpoint.release(arrival.block);
    };
    read(); // messages that waited for a release
    std::size_t left = datagrams_per_turn;
    for (; left > 0 && !member.socket.empty(); --left) {
        auto datagram = std::move(member.socket.front());
        member.socket.pop_front();
        member.socket_bytes -= reliable::weight_of(datagram.size());
        for (Bytes rest = datagram; !rest.empty();) {
            const std::size_t used = endpoint.on_packet(rest, now(node));
            KUMI_ASSERT(used != 0 && used <= rest.size());
            read();
            rest = rest.subspan(used);
        }
        buffers_.push_back(std::move(datagram));
    }
    member.busy_until = time_ + options_.packet_cost * (datagrams_per_turn - left);
}

void ReliableNetwork::send_all(Node node) {
    Member& member = nodes_[node];
    for (int i = 0; member.endpoint->next_series(*series_, now(node)); ++i) {
        KUMI_ASSERT(i < series_per_turn_max); // an endpoint that always has something to send
        std::size_t count = series_->count;
        if (member.refuses_until > time_) count = random_.chance(0.5) ? 0 : random_.below(count);
        put_on_wire(*series_, count);
        member.endpoint->on_sent(*series_, count, count > 1, now(node));
        if (count < series_->count) return;
    }
}

void ReliableNetwork::turn(Node node) {
    nodes_[node].wake = Duration::max();
    read_socket(node);
    for (const Node by : std::exchange(nodes_[node].refused_by, {})) nodes_[node].endpoint->on_refused(by, now(node));
    nodes_[node].endpoint->on_time(now(node));
    if (on_turn) on_turn(node);
    nodes_[node].endpoint->flush();
    send_all(node);
}

// ---- time

bool ReliableNetwork::step(Duration limit) {
    Duration next = wire_.empty() ? Duration::max() : wire_.top().time;
    Node who = options_.nodes;
    for (Node node = 0; node < options_.nodes; ++node)
        if (const Duration own = next_turn(node); own < next) next = own, who = node;
    if (next > limit) return time_ = std::max(time_, limit), false;
    time_ = std::max(time_, next);
    if (who < options_.nodes) return turn(who), true;
    Datagram datagram = std::move(const_cast<Datagram&>(wire_.top()));
    wire_.pop();
    arrive(std::move(datagram));
    return true;
}

void ReliableNetwork::run_for(Duration duration) {
    for (const Duration limit = time_ + duration; step(limit);) {}
}

bool ReliableNetwork::run_until(const std::function<bool()>& done, Duration limit) {
    for (const Duration end = time_ + limit; !done();)
        if (!step(end)) return done();
    return true;
}

bool ReliableNetwork::is_silent() const {
    for (Node node = 0; node < options_.nodes; ++node)
        if (next_turn(node) != Duration::max()) return false;
    return wire_.empty();
}

} // namespace kumi::simulation
