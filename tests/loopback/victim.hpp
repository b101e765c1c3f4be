#pragma once

// An engine whose peers are the test: it makes their messages by hand, honest or not, and sees what they are told.

#include "loopback/scripted_channel.hpp"
#include "loopback/threads.hpp"

#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/engine.hpp"
#include "kumi/engine/wire.hpp"

#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <thread>

namespace kumi::loopback {

class Victim {
public:
    struct Options {
        pm::Node nodes = 3;
        pm::Node self = 0;
        pm::RemoteMemory* memory = nullptr;
        bool in_background = false;
        std::size_t waiting_bytes_max = engine::Backlog::bytes_usual;
        std::size_t kept_bytes_max = engine::ByteWindows::bytes_of_all;
        Duration stuck_after = far_away;
    };
    explicit Victim(Handlers&& handlers = {}) : Victim(std::move(handlers), Options{}) {}
    Victim(Handlers&& handlers, const Options& options) : channel(options.nodes, options.self), handled(options.nodes) {
        channel.memory = options.memory;
        auto opened = engine::Dispatcher::open(
            channel, std::move(handlers),
            {.patience = {},
             .progress = {.in_background = options.in_background, .core = {}, .stuck_after = options.stuck_after},
             .keepalive_every = far_away,
             .clock = [this] { return Instant(Duration(time)); },
             .waiting_bytes_max = options.waiting_bytes_max,
             .kept_bytes_max = options.kept_bytes_max});
        dispatcher = opened->get();
        engine.emplace(*std::move(opened));
        dispatcher->loop().start();
    }
    Victim(const Victim&) = delete;
    /// What is still under way would be waited for.
    ~Victim() {
        for (pm::Node node = 0; node < channel.nodes(); ++node)
            if (node != channel.self()) channel.lose(node);
        channel.ring();
    }

    // ---- what peers say

    /// A message of a peer's, as it comes next.
    template <class Head>
    void hears(pm::Node source, engine::Kind kind, const Head& head, Bytes data = {}, bool is_request = true) {
        hears_bytes(source, kind, bytes_of(head), data, is_request);
    }
    void hears(pm::Node source, engine::Kind kind, bool is_request = false) {
        hears_bytes(source, kind, {}, {}, is_request);
    }
    void hears_bytes(pm::Node source, engine::Kind kind, Bytes head, Bytes data, bool is_request) {
        hears_request(source, kind, head, data, is_request ? 1u : 0u);
    }
    /// `is_request` is 0, or 1 with the request's pressure in its highest bits.
    void hears_request(pm::Node source, engine::Kind kind, Bytes head, Bytes data, std::uint32_t is_request) {
        const engine::Header header{static_cast<std::uint16_t>(kind), handled[source], is_request};
        std::vector<std::byte> message;
        for (const Bytes part : {bytes_of(header), head, data}) message.insert(message.end(), part.begin(), part.end());
        channel.deliver(source, message);
    }
    /// Polls as often as it takes to handle all that has come.
    void poll() {
        while (dispatcher->progress().poll() != 0) {
        }
    }

    /// Requests to a peer that it has not handled yet.
    std::uint64_t under_way(pm::Node to) {
        const auto turn = dispatcher->take_turn();
        return dispatcher->outbox(turn).credits().under_way(to);
    }

    // ---- what peers are told

    struct Sent {
        pm::Node to;
        engine::Header header;
        std::vector<std::byte> rest;

        template <class Head>
        Head head() const {
            Head head{};
            EXPECT_TRUE(read_value(rest, head));
            return head;
        }
        template <class Head>
        Bytes data() const {
            return Bytes(rest).subspan(sizeof(Head));
        }
    };
    /// All of that kind since the last call; others are forgotten.
    std::vector<Sent> sent(engine::Kind kind) {
        std::vector<Sent> all;
        for (const auto& letter : channel.take_sent()) {
            Sent message{letter.peer, {}, {}};
            EXPECT_TRUE(read_value(letter.bytes, message.header));
            message.rest.assign(letter.bytes.begin() + sizeof(engine::Header), letter.bytes.end());
            if (message.header.kind == static_cast<std::uint16_t>(kind)) all.push_back(std::move(message));
        }
        return all;
    }
    /// What was refused to `to` since the last call: exactly one thing. Empty: nothing was.
    std::string refusal(pm::Node to, engine::OperationId operation = engine::no_operation) {
        const auto all = sent(engine::Kind::failed);
        if (all.empty()) return "";
        EXPECT_EQ(all.size(), 1u);
        EXPECT_EQ(all[0].to, to);
        EXPECT_EQ(all[0].head<engine::Failed>().operation, operation);
        return std::string(text_of(all[0].data<engine::Failed>()));
    }

    ScriptedChannel channel;
    std::vector<std::uint16_t> handled; // by node: what it says that it has handled
    std::atomic<std::int64_t> time{0};  // of the engine's clock
    engine::Dispatcher* dispatcher = nullptr;
    std::optional<engine::Engine> engine; // last: it uses the others
};

/// A thread that waits in a call of the engine's, which nothing but a wake-up ends before `far_away`.
class Sleeper {
public:
    /// `call` gets the deadline and answers whether it has what it waited for. Returns when it sleeps on the channel.
    Sleeper(Victim& victim, std::function<bool(Instant)> call)
        : thread_([this, call = std::move(call)] {
              const Instant end = now() + far_away;
              has_got_ = call(end);
              was_in_time_ = now() < end;
          }) {
        EXPECT_TRUE(
            comes_true([&] { return victim.channel.is_asleep() && victim.channel.sleeper() == thread_.get_id(); }));
        const auto turn = victim.dispatcher->take_turn(); // and is not on its way there
    }
    ~Sleeper() {
        if (thread_.joinable()) thread_.join();
    }
    std::thread::id id() const { return thread_.get_id(); }
    bool was_woken() {
        thread_.join();
        return has_got_ && was_in_time_;
    }

private:
    bool has_got_ = false, was_in_time_ = false;
    std::thread thread_;
};

} // namespace kumi::loopback
