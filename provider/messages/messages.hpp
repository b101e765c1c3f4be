#pragma once

// Endpoints, and what travels between them: the provider's service on the engine. It knows nothing of libfabric but the
// flags of completions.
//
// A message of up to eager_bytes_max travels at once. Of a longer one only an offer does. When a receive matches, the
// receiver accepts, and pieces travel straight from the sender's buffer into that of the receive.
//
// Order: what an endpoint sends to a node goes through one line, and waits there in order when there is no room. Pieces
// have another line, behind it.
//
// Everything requires the turn.

#include "provider/match/matching.hpp"
#include "provider/messages/completion.hpp"
#include "provider/messages/slab.hpp"
#include "provider/messages/wire.hpp"

#include "kumi/base/bytes.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/service.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <sys/uio.h>
#include <unordered_map>
#include <vector>

namespace kumi::provider {

using engine::Handled;
using engine::Turn;
using pm::Node;

/// Content in several places of memory.
class Places {
public:
    static constexpr std::size_t places_max = 4;

    Places() = default;
    explicit Places(std::span<const iovec> places) noexcept;

    std::size_t bytes() const noexcept { return bytes_; }
    /// The start of the first place.
    std::byte* start() const noexcept { return count_ == 0 ? nullptr : static_cast<std::byte*>(places_[0].iov_base); }
    /// The part from `offset` on, if it lies in one place; else nothing.
    std::optional<Bytes> whole(std::size_t offset, std::size_t bytes) const noexcept;
    void gather(std::size_t offset, MutableBytes to) const noexcept;
    /// What does not fit is dropped.
    void scatter(std::size_t offset, Bytes from) const noexcept;
    /// Of a single place: what follows `offset`.
    Places part(std::size_t offset, std::size_t bytes) const noexcept;

private:
    std::array<iovec, places_max> places_{};
    std::size_t count_ = 0;
    std::size_t bytes_ = 0;
};

/// A send as the program asks for it.
struct SendRequest {
    Peer to;
    std::uint16_t flags = 0; // of its Head
    std::uint64_t tag = 0;
    std::uint64_t data = 0;
    Places content;
    void* context = nullptr;
    std::uint64_t completion_flags = 0;
    bool wants_completion = true;
    bool is_copied = false; // the content may change when the call returns
    bool is_silent = false; // nothing is told of it, not even an error
};

/// A receive as the program asks for it.
struct ReceiveRequest {
    Wanted wanted; // tag and ignore: 0 and all, if it is not tagged
    bool is_tagged = false;
    bool stays = false; // takes messages until less than the endpoint's minimum is left
    Places content;
    void* context = nullptr;
    bool wants_completion = true;
};

class Messages;

/// Endpoints of peers have addresses that the program has given them.
using Addresses = std::unordered_map<std::uint32_t, std::uint64_t>; // by Peer::number()

/// One endpoint. Its user binds queues before the first operation.
class Endpoint {
public:
    explicit Endpoint(Messages& messages) noexcept : messages_(messages) {}

    CompletionQueue* sends = nullptr;
    CompletionQueue* receives = nullptr;
    const Addresses* addresses = nullptr; // if completions shall tell them
    std::size_t least_left = 64;          // of a receive that stays

    std::uint8_t number() const noexcept { return number_; }

    /// False: too much waits; the caller makes progress and tries again. Requires that the node is not lost.
    bool try_send(const Turn& turn, const SendRequest& request);
    void receive(const Turn& turn, const ReceiveRequest& request);
    /// The oldest message that waits and matches, as a completion of `request` would describe it. `claim`: from now on
    /// it is for receive_claimed() with that context, which must have claimed nothing else. `discard`: it is dropped.
    std::optional<Completion> peek(const Turn& turn, const ReceiveRequest& request, bool claim, bool discard);
    /// False: nothing was claimed with that context.
    bool receive_claimed(const Turn& turn, const ReceiveRequest& request);
    bool drop_claimed(const Turn& turn, void* context);
    bool has_claimed(void* context) const { return claimed_.contains(context); }
    /// False: no receive with that context waits.
    bool cancel(const Turn& turn, void* context);

private:
    friend class Messages;

    /// A message, or the offer of one, that no receive has matched.
    struct Unexpected {
        Node from = 0;
        Head head{};
        std::uint64_t length = 0;
        std::vector<std::byte> content; // empty for an offer
        bool is_offer = false;
    };
    /// A receive that stays is over when nothing comes in pieces for it any more, and then told as such.
    struct Staying {
        std::size_t used = 0;   // bytes
        unsigned under_way = 0; // messages
        bool is_over = false;   // takes no more messages
        int error = 0;          // why, if not because it was used up
    };
    static constexpr std::uint32_t no_staying = 0xffffffff;

    Matching& matching(bool is_tagged) noexcept { return is_tagged ? tagged_ : untagged_; }
    /// A message has come.
    void on_message(const Turn& turn, Node from, const Head& head, std::uint64_t length, Bytes content, bool is_offer);
    void join(const Turn& turn, const ReceiveRequest& receive, const Unexpected& message,
              std::uint32_t staying = no_staying);
    void take_in(const Turn& turn, const ReceiveRequest& receive, Node from, const Head& head, std::uint64_t length,
                 Bytes content, bool is_offer, std::uint32_t staying = no_staying);
    /// A message is there whole, perhaps for a receive that stays.
    void finish(std::uint32_t staying, bool wants_completion, Completion completion);
    void end_staying(std::uint32_t number, int error);
    void tell_over(const ReceiveRequest& receive, int error);
    void drop(const Turn& turn, const Unexpected& message);
    static Completion describe(const ReceiveRequest& receive, Node from, const Head& head, std::uint64_t length);
    void complete(bool wants_completion, Completion completion);
    /// A request for one message, in a receive that stays. Afterwards that may be over.
    ReceiveRequest part_of(std::uint32_t number, std::uint64_t length);
    void on_lost(Node node);
    void refuse_unexpected(const Turn& turn);

    Messages& messages_;
    std::uint8_t number_ = 0;
    Matching tagged_;
    Matching untagged_;
    Slab<ReceiveRequest> posted_;
    std::unordered_map<std::uint32_t, Staying> staying_; // by number
    Slab<Unexpected> unexpected_;
    std::unordered_map<void*, Unexpected> claimed_;
};

class Messages final : public engine::Service {
public:
    explicit Messages(engine::Dispatcher& dispatcher);

    engine::Dispatcher& dispatcher() noexcept { return dispatcher_; }
    /// False: there are as many as a process may have.
    bool add(const Turn& turn, Endpoint& endpoint);
    /// Nothing is read from or written into memory of its user any more. What it has sent and not copied is given up,
    /// and the peers' receives fail. Peers that wait for a receive here get an error.
    void remove(const Turn& turn, Endpoint& endpoint);
    /// Sends of an endpoint that are not over.
    bool has_sends(const Turn& turn, const Endpoint& endpoint);

    Handled on_message(const Turn& turn, Node source, std::uint16_t kind, Bytes body) override;
    bool go_on(const Turn& turn) noexcept override;
    void on_lost(const Turn& turn, Node node) noexcept override;
    bool is_done(const Turn&) const noexcept override { return sends_.count() == withdrawn_; }

private:
    friend class Endpoint;

    enum class State : std::uint8_t { in_line, offered, in_pieces, to_be_delivered, withdrawn };
    struct Send {
        std::uint8_t endpoint = 0; // that is told; no_endpoint: it is closed
        std::uint8_t from = 0;     // for its Head
        State state = State::in_line;
        SendRequest request; // its content is `copy`, if that is not empty
        std::vector<std::byte> copy;
        std::uint64_t sent = 0; // of its pieces
        std::uint64_t wanted = 0;
        std::uint32_t arrival = 0;
    };
    /// What comes in pieces.
    struct Arrival {
        std::uint8_t endpoint = 0;
        Node from = 0;
        Head head{};
        Places content;
        Completion completion;
        bool wants_completion = false;
        std::uint64_t left = 0;  // bytes that have not come
        bool is_dropped = false; // its endpoint is gone
        std::uint32_t staying = 0xffffffff;
    };
    struct Line {
        std::deque<std::uint32_t> sends;  // in order
        std::deque<std::uint32_t> pieces; // sends that were accepted, in turn
        bool is_empty() const noexcept { return sends.empty() && pieces.empty(); }
    };

    /// What has come for an endpoint that this process has not opened yet.
    struct Early {
        Node from;
        Head head;
        std::uint64_t length;
        std::vector<std::byte> content;
        bool is_offer;
    };

    bool try_send(const Turn& turn, Endpoint& endpoint, const SendRequest& request);
    /// Sends a whole message, or the offer of one.
    bool try_first(const Turn& turn, std::uint8_t endpoint, const SendRequest& request, std::uint32_t send);
    bool try_begin(const Turn& turn, std::uint32_t number);
    void give_up(const Turn& turn, std::uint32_t number);
    bool send_pieces(const Turn& turn, Node to, Line& line);
    bool try_piece(const Turn& turn, Node to, Send& send);
    void end(std::uint32_t number, int error);
    void complete(Endpoint* endpoint, const SendRequest& request, int error);
    Endpoint* endpoint_at(std::uint8_t number) const noexcept {
        return number < endpoints_.size() ? endpoints_[number] : nullptr;
    }
    void accept(const Turn& turn, Endpoint& endpoint, Node from, const Head& head, const Places& content,
                std::uint64_t length, const Completion& completion, bool wants_completion,
                std::uint32_t staying = 0xffffffff);
    void tell_delivered(const Turn& turn, Node to, const Head& head, int error);
    void refuse(const Turn& turn, Node from, const Head& head);
    void wait_for_room(const Turn& turn, Node to);

    Handled on_head(const Turn& turn, Node source, std::uint16_t kind, Bytes body);
    Handled on_accept(const Turn& turn, Node source, Bytes body);
    Handled on_piece(const Turn& turn, Node source, Bytes body);
    Handled on_aborted(Node source, Bytes body);
    void finish_arrival(std::uint32_t number, int error);
    Handled on_delivered(Node source, Bytes body);

    engine::Dispatcher& dispatcher_;
    engine::Port port_;
    std::size_t piece_bytes_;
    std::size_t eager_bytes_max_;
    std::vector<Endpoint*> endpoints_; // by number; null: it is gone
    std::vector<Early> early_;
    std::vector<Line> lines_;   // by node
    std::vector<Node> crowded_; // nodes whose line is not empty
    Slab<Send> sends_;
    std::size_t withdrawn_ = 0; // sends whose peers have not answered the offer
    Slab<Arrival> arrivals_;
    std::vector<std::byte> gathered_; // scratch
};

} // namespace kumi::provider
