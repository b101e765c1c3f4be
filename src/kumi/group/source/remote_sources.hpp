#pragma once

// Multicasts into memory whose values lie in the memory of another node: a service of the engine. This node asks that
// node, the source, which becomes the master of the multicast and tells this node how it ended. What reaches the source
// while too many of its multicasts are under way waits there. A node may have asked for asked_max at a time, so that a
// source has room for what waits. A credit of the node that asks would not do as a limit: the node needs credits to
// answer the multicasts that must end first.
//
// Losses. When the source is lost, what this node has asked it for fails. When the node that asks is lost, what waits
// for it at the source is dropped. What was begun goes on, and nobody is told.

#include "kumi/engine/dispatcher.hpp"
#include "kumi/group/multicast/multicasts.hpp"
#include "kumi/group/wire/source.hpp"

#include <cstdint>
#include <deque>
#include <map>

namespace kumi::group {

class RemoteSources final : public engine::Service {
public:
    RemoteSources(engine::Dispatcher& dispatcher, Multicasts& multicasts);

    /// Asks the node of `from` to multicast so many bytes to `to`. `arguments` are a StoreHead and `places`
    /// StorePlaces. Waits while too much is asked for, but not in a handler. `ended` is told how the multicast ended.
    /// For any thread.
    void ask(global_ptr<std::byte> from, std::size_t bytes, const Set& to, std::uint32_t places, Bytes arguments,
             Ended ended);

private:
    static constexpr std::size_t asked_max = 64;

    /// What this node has asked for.
    struct Asked {
        Node source;
        engine::OperationId held; // for sync()
        Ended ended;
    };
    /// What another node has asked for, and what waits for room here.
    struct Wanted {
        Node by;
        SourceAsk head;
        std::vector<std::byte> arguments;
        Set to;
    };

    // engine::Service
    engine::Handled on_message(const engine::Turn& turn, Node source, std::uint16_t kind, Bytes body) override;
    bool go_on(const engine::Turn& turn) noexcept override;
    void check_silent_peers(const engine::Turn& turn) noexcept override;
    void on_lost(const engine::Turn& turn, Node node) noexcept override;
    /// What was begun for others ends first: members may lack the values, if the source leaves.
    bool is_done(const engine::Turn&) const noexcept override { return begun_ == 0; }
    void on_end(const engine::Turn& turn) noexcept override;

    Result<std::uint64_t> note_asked(Node source, Ended& ended);
    bool on_ask(const engine::Turn& turn, Node source, Bytes body);
    bool on_ended(const engine::Turn& turn, Node source, Bytes body);
    bool try_begin(const engine::Turn& turn, const Wanted& wanted);
    void tell(const engine::Turn& turn, Node to, std::uint64_t number, const Result<Outcome>& outcome);
    void end(const engine::Turn& turn, std::uint64_t number, Result<Outcome> outcome);

    engine::Dispatcher& dispatcher_;
    engine::Port port_;
    Multicasts& multicasts_;
    std::uint64_t last_number_ = 0;
    bool has_ended_ = false; // the engine
    std::map<std::uint64_t, Asked> asked_; // by number
    std::deque<Wanted> waiting_;
    std::size_t begun_ = 0; // for other nodes, and not ended
};

} // namespace kumi::group
