#pragma once

// One node's networks, over links that do what a test says.

#include "kumi/device/composite/networks/networks.hpp"

#include <gtest/gtest.h>
#include <set>
#include <string>

namespace kumi::device::composite {

using namespace std::chrono_literals;
using Kind = Envelope::Kind;

/// A link that does what a test says. It notes what it was given, and brings nothing by itself.
class ScriptedLink final : public pm::Channel, public pm::Ways {
public:
    struct Given {
        Node to;
        std::vector<std::byte> bytes;

        Envelope head() const {
            Envelope head{};
            EXPECT_TRUE(read_value(bytes, head));
            return head;
        }
        std::string body() const { return std::string(text_of(Bytes(bytes).subspan(head_bytes(head().hops)))); }
        Path path() const {
            Path path;
            for (std::size_t i = 0; i < head().hops; ++i) path.push_back(hop_of(bytes, i));
            return path;
        }
    };

    explicit ScriptedLink(std::size_t bytes_max) {
        traits_ = {.device = "scripted",
                   .message_bytes_max = bytes_max,
                   .bytes_per_peer_max = 0,
                   .latency_class_ns = 0,
                   .bandwidth_class_mb = 0};
    }

    // What the test says.
    std::size_t room = 1000; // for so many messages
    bool up = true;
    bool silent = false, left = false, arrived = true;
    std::set<Node> gone;
    Duration owed{0};
    std::vector<std::vector<std::byte>> unarrived; // to the node that is number 11 here

    // What the test asks.
    std::vector<Given> given;
    std::uint64_t given_bytes = 0, waiting = 0; // waiting until take(), unless the test says otherwise
    std::size_t cancelled = 0;
    std::set<Node> given_up;
    std::vector<Given> take() { return waiting = 0, std::exchange(given, {}); }

    Node self() const noexcept override { return 0; }
    Node nodes() const noexcept override { return 9; }
    const pm::Traits& traits() const noexcept override { return traits_; }
    pm::Ways* ways() noexcept override { return this; }
    pm::SendSlot try_reserve(Node to, std::size_t bytes) noexcept override {
        if (room == 0 || gone.contains(to)) return {};
        reserved_.resize(bytes);
        return {to, reserved_};
    }
    void commit(const pm::SendSlot& slot) noexcept override { push(slot.to(), std::move(reserved_)); }
    void cancel(const pm::SendSlot&) noexcept override { ++cancelled; }
    bool try_send(Node to, Bytes bytes) noexcept override { return try_send(to, {}, bytes); }
    bool try_send(Node to, Bytes head, Bytes body) noexcept override {
        if (room == 0 || gone.contains(to)) return false;
        std::vector<std::byte> bytes(head.size() + body.size());
        Pieces(head, body).copy_to(bytes.data());
        push(to, std::move(bytes));
        return true;
    }
    std::size_t poll(pm::Handler, std::size_t) noexcept override { return 0; }
    bool arm() noexcept override { return true; }
    void sleep(Instant) noexcept override {}
    void wake() noexcept override {}
    bool lost(Node node) const noexcept override { return gone.contains(node); }
    void give_up(Node node) noexcept override { given_up.insert(node); }
    pm::Traffic sent(Node) const noexcept override { return {.bytes = given_bytes}; }

    bool are_up() noexcept override { return up; }
    Duration unanswered(Node, Instant) const noexcept override { return owed; }
    bool is_silent(Node) const noexcept override { return silent; }
    bool has_left(Node) const noexcept override { return left; }
    std::uint64_t losses() const noexcept override { return gone.size() + (left ? 1 : 0); }
    bool all_arrived(Node) const noexcept override { return arrived; }
    std::uint64_t waiting_bytes(Node) const noexcept override { return waiting; }
    void each_unarrived(Node to, base::FunctionRef<void(Bytes)> what) const override {
        for (const auto& letter : unarrived)
            if (to == 11) what(letter);
    }

private:
    void push(Node to, std::vector<std::byte> bytes) {
        --room;
        given_bytes += bytes.size();
        waiting += bytes.size();
        given.push_back({to, std::move(bytes)});
    }

    pm::Traits traits_;
    std::vector<std::byte> reserved_;
};

inline constexpr std::size_t link_bytes_max = std::size_t{2} << 20;
inline constexpr std::size_t relay_window = 256 << 10;

using WaysTo = std::vector<std::vector<PlannedWay>>;

/// Node 0 of a job, over links "first" and "second" with networks 7 and 8. Its numbers of nodes there are 10 more.
struct OneNode {
    explicit OneNode(const WaysTo& ways, const StripeOptions& stripes = StripeOptions::none(),
                     std::size_t bytes_max = link_bytes_max)
        : first(bytes_max), second(bytes_max),
          networks(0, {{&first, &first, 7, "first"}, {&second, &second, 8, "second"}}, ways, stripes) {}

    static PlannedWay by(std::uint32_t link, Node to) { return {.link = link, .number = to + 10}; }
    /// Nodes 1 to 3, each by both links.
    static WaysTo by_both() { return {{}, {by(0, 1), by(1, 1)}, {by(0, 2), by(1, 2)}, {by(0, 3), by(1, 3)}}; }
    static WaysTo one_by_both() { return {{}, {by(0, 1), by(1, 1)}}; }
    /// Node 1 by the first link, node 2 through node 1.
    static WaysTo by_relay() { return {{}, {by(0, 1)}, {relayed({1})}}; }
    static PlannedWay relayed(Path path) { return {.is_relayed = true, .path = std::move(path)}; }

    bool send(Node to, std::size_t bytes) { return networks.try_send(to, std::vector<std::byte>(bytes)); }
    bool send(Node to, std::string_view text) { return networks.try_send(to, bytes_of(text)); }
    static Envelope head(Kind kind, Node source, Sequence sequence = 0) {
        return {.sequence = sequence,
                .source = source,
                .destination = 0,
                .kind = kind,
                .asks = 0,
                .hops = 0,
                .at = 0};
    }
    static std::vector<std::byte> letter(const Envelope& head, std::string_view body = {}) {
        std::vector<std::byte> bytes(sizeof head + body.size());
        Pieces(bytes_of(head), bytes_of(body)).copy_to(bytes.data());
        return bytes;
    }
    static std::vector<std::byte> letter(const Envelope& head, const Path& path, std::string_view body = {}) {
        std::vector<std::byte> bytes(head_bytes(path.size()) + body.size());
        write_head(bytes.data(), head, path);
        copy_bytes(bytes.data() + head_bytes(path.size()), bytes_of(body));
        return bytes;
    }
    bool hear_bytes(Bytes bytes, std::uint32_t link = 0, Node number = 11) {
        pm::Message message(number, bytes);
        return networks.on_message(link, message, [this](pm::Message& one) { note(one); }, clock);
    }
    bool hear(const Envelope& head, std::string_view body = {}, std::uint32_t link = 0) {
        return hear_bytes(letter(head, body), link, head.source + 10);
    }
    void note(pm::Message& message) {
        handed.push_back(std::to_string(message.source()) + std::string(text_of(message.bytes())));
    }
    std::size_t hand_out_early(std::size_t most) {
        return networks.hand_out_early([this](pm::Message& one) { note(one); }, most);
    }
    void pass(Duration time) {
        clock += time;
        networks.on_time(clock);
    }
    const NetworkCounters& counted() const { return networks.counters(); }

    ScriptedLink first, second;
    Networks networks;
    Instant clock{1h};
    std::vector<std::string> handed;
};

using Handed = std::vector<std::string>;

/// From node 1 over this one to node 2, so many bytes in all.
inline std::vector<std::byte> letter_to_pass(std::size_t bytes, Node source = 1) {
    Envelope head = OneNode::head(Kind::message, source);
    head.destination = 2;
    return OneNode::letter(head, Path{0}, std::string(bytes - head_bytes(1), 'x'));
}

/// Those of a kind, by whom they were given to.
inline std::vector<Node> given_to(const std::vector<ScriptedLink::Given>& given, Kind kind) {
    std::vector<Node> found;
    for (const auto& one : given)
        if (one.head().kind == kind) found.push_back(one.to);
    return found;
}

} // namespace kumi::device::composite
