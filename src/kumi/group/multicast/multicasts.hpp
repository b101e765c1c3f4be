#pragma once

// Multicasts under way at one node, as their master, as members that pass them on, and as members that they are for.
// Used with the engine's turn.
//
// Three things are kept apart. A Relay is one passing-on: who it came from, who it went on to, who has answered. It
// ends with an answer. A Delivery is content on its way to this node's handler, unless it is handled as it comes; there
// is one for each multicast, however often that comes (it comes again when others were lost), and it waits for those
// that the master sent before. A Stream is content in blocks, at a node that does not have all of them yet or still
// passes them on.
//
// Losses. Whole messages go down a tree: who has sent to a child that is lost sends to those that this child was to
// care for, in new parts, and all who get it twice only pass it on. Blocks go round in circles, and every member knows
// all others: answers climb the tree that the set makes; where a member of it is lost, its parent takes over its
// children, and these turn to it. After a loss blocks go down this tree too, for those who miss some because of it. Who
// has got no more for some time asks its parent for all of them, whatever the reason is.
//
// What will not come. A master tells members that are missing, as far as it reaches them, that it is over: they wait no
// longer for it, nor does what comes after it. When the master itself is lost, what it had under way goes on among
// those who have it; when nothing of it has come for some time, what is not there whole is dropped, and what waited for
// it is delivered.

#include "kumi/base/bitmap.hpp"
#include "kumi/engine/core.hpp"
#include "kumi/group/plan/choice.hpp"
#include "kumi/group/multicast/exposed.hpp"
#include "kumi/group/groups.hpp"
#include "kumi/group/table/recent_answers.hpp"
#include "kumi/group/table/numbered.hpp"
#include "kumi/group/plan/probing.hpp"
#include "kumi/group/plan/schedule.hpp"
#include "kumi/group/table/sequences.hpp"
#include "kumi/group/topology.hpp"
#include "kumi/group/wire/multicast.hpp"

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kumi::group {

class Multicasts final : public engine::Service {
public:
    Multicasts(engine::Core& core, Topology topology, const Settings& settings, const Costs& usual);

    /// `ended` is called once, unless the engine ends before.
    using Ended = std::function<void(Result<Outcome>)>;
    void start(const Set& to, const Purpose& purpose, Bytes arguments, Bytes payload, Ended ended);
    engine::Core& core() noexcept { return core_; }
    Result<Arrival> next(Instant deadline);
    Choice choice(std::size_t bytes, Node members) const;
    const Costs& costs() const noexcept { return costs_; }
    const Topology& topology() const noexcept { return topology_; }
    std::size_t kept();

private:
    static constexpr std::size_t early_bytes_max = std::size_t{64} << 20;
    static constexpr std::size_t values_bytes_max = std::size_t{4} << 20; // of one master
    static constexpr std::size_t relays_max = 4 * Groups::under_way_max;  // of one master
    static constexpr unsigned quiet_looks_max = 3;
    static constexpr std::size_t trouble_bytes_max = 500; // of what is told of it
    static constexpr std::uint32_t block_bytes_min = 1024;
    static constexpr std::uint64_t blocks_under_way_max = engine::requests_max * 3 / 4; // to one node
    // content of one master's, if there are several
    static constexpr std::size_t under_way_bytes_max = std::size_t{256} << 20;
    static constexpr std::size_t answered_max = 4096;
    static constexpr std::size_t answered_bytes_max = std::size_t{16} << 20;

    struct Content {
        Bytes bytes;
        std::shared_ptr<const void> memory; // none: it lies in the master's, or in a message
        /// In memory of its own.
        static Content copy_of(const Pieces& pieces) {
            auto copy = std::make_shared_for_overwrite<std::byte[]>(pieces.size());
            pieces.copy_to(copy.get());
            return {{copy.get(), pieces.size()}, copy};
        }
    };
    /// What a member must have had before.
    struct Before {
        std::uint64_t sequence;
        Set members;
    };
    struct Link {
        Node to;
        Set part; // of the set, that it cares for
        bool has_answered = false;
    };
    struct Stream;
    struct Relay {
        RelayId id{};
        Name name{};
        Purpose purpose{};
        bool is_masters = false;
        Node parent = 0;            // to be answered
        RelayId parents = no_relay; // its number for this
        Content content;            // for those who are still to get it
        std::optional<Place> place; // of the content, if it lies in the master's memory
        std::optional<Exposed> exposed; // the master's, of which that is the place
        std::vector<Before> before;
        Set members; // all, where it is to be taken
        Pace pace;
        std::vector<Link> children;
        unsigned open = 0; // children that have not answered, and 1 if this node has not got it
        Set missing;
        std::string trouble;
        std::vector<std::pair<Node, std::vector<std::byte>>> values; // what members answered: from which on
        Ended ended; // the master's
        Stream* stream = nullptr; // that it goes by, if it goes in blocks

        /// One by one: to assign a new one would take as long as all the rest that is done for it.
        void reset() {
            is_masters = false;
            content = {};
            place.reset();
            exposed.reset();
            before.clear();
            members = {};
            children.clear();
            open = 0;
            missing = {};
            trouble.clear();
            values.clear();
            ended = nullptr;
            stream = nullptr;
        }
    };
    struct Delivery {
        Name name{};
        Purpose purpose{};
        Content content;
        std::vector<std::uint64_t> after; // sequences of the same master
        std::vector<RelayId> relays;      // that wait for it
        Set members;                      // all, where it is to be taken
        bool is_ready = false;            // to be run, or to be taken
        bool is_given_up = false;         // it does not come: only a place in the order
    };
    /// What has come from one master.
    struct Source {
        unsigned quiet_looks = 0; // since something came, while it is lost
        std::size_t relays = 0;   // of its multicasts
        // they begin at the latest that is ready: the master has given up what comes of earlier ones
        Sequences sequences;
        std::map<std::uint64_t, Delivery> deliveries; // by sequence
        RecentAnswers<std::uint64_t> values{Groups::under_way_max, values_bytes_max};
    };
    struct Flow {
        std::vector<Node> members;
        std::optional<Schedule> schedule; // none: all blocks to the one member, one after the other
        std::uint32_t next = 0;           // step, or block
        std::uint32_t sent = 0;           // blocks of that step
        Set opened;                       // who has got the lead
        bool is_refused = false;          // the next blocks are here, and there was no room
    };
    struct Stream {
        Name name{};
        Purpose purpose{};
        Set set;
        Node root = 0;
        Way way = Way::circulant;
        Pace pace;
        std::vector<Before> before;
        std::shared_ptr<std::vector<std::byte>> content;
        std::uint32_t block_bytes = 0;
        std::uint32_t blocks = 0;
        std::uint32_t arrived = 0;
        base::Bitmap has{0};
        std::list<Flow> flows;
        std::optional<RelayId> relay; // until it is answered
        Set pushed; // who gets all blocks from this node
        Set asked;  // who wants this node's answer, beside its parent
        Set out;    // who cannot help
        std::uint32_t arrived_at_look = 0;
    };
    /// An answer; what lies in the message stays there.
    struct Told {
        Answer head{};
        Set missing;
        std::string_view trouble;
        Bytes values;
    };
    /// A multicast that this node is going to begin.
    struct Draft {
        Set to;
        Purpose purpose;
        std::size_t bytes = 0;
        bool is_member = false; // this node
        Choice choice{};
        Content content;
        std::optional<Exposed> exposed;                   // the content, if members read it where it lies
        std::shared_ptr<std::vector<std::byte>> streamed; // the content, if it goes in blocks
    };
    struct Unsent {
        Node to;
        RelayId relay; // whose Cast it is, or none: then
        std::vector<std::byte> message; // with room for the header
    };
    struct Lead {
        Set set;
        std::vector<Before> before;
        Set members; // all, where it is to be taken
    };

    /// While something is done here; handlers, and what is given to then(), may do something inside of that.
    class Busy {
    public:
        explicit Busy(Multicasts& casts) noexcept : casts_(casts), turn_(casts.core_.take_turn()) { ++casts_.depth_; }
        Busy(const Busy&) = delete;
        Busy& operator=(const Busy&) = delete;
        ~Busy() {
            if (--casts_.depth_ == 0) casts_.settle(turn_);
        }

    private:
        Multicasts& casts_;
        engine::Turn turn_;
    };

    // engine::Service
    engine::Handled on_message(const engine::Turn& turn, Node source, std::uint16_t kind, Bytes bytes) override;
    bool go_on(const engine::Turn& turn) noexcept override;
    void check_silent_peers(const engine::Turn& turn) noexcept override;
    void on_lost(const engine::Turn& turn, Node node) noexcept override;
    bool is_done(const engine::Turn& turn) const noexcept override;
    void on_end(const engine::Turn& turn) noexcept override;

    // The master
    Result<void> check(const Set& to, std::size_t bytes) const;
    Result<Draft> draft_of(const Set& to, const Purpose& purpose, const Pieces& pieces);
    std::optional<std::vector<Before>> room_for(const Draft& draft) const;
    void begin(Draft& draft, const std::vector<Before>& before, Ended ended);
    void begin_whole(Draft& draft, const std::vector<Before>& before, Relay& relay);
    void begin_blocks(const Draft& draft, const std::vector<Before>& before, Relay& relay);
    bool is_on_host(const Set& to) const noexcept;
    std::vector<Before> before_for(const Set& to) const;
    Node choose_first(const Set& set, std::uint64_t sequence) const;

    // What comes; false: it makes no sense
    bool on_cast(Node source, Bytes bytes, bool is_placed);
    bool on_block(Node source, Bytes bytes);
    bool on_answer(Node source, Bytes bytes);
    bool on_probe(Node source, Bytes bytes);
    bool on_probed(Node source, Bytes bytes);
    bool on_over(Node source, Bytes bytes);

    // Relays
    Relay& add_relay(const Name& name, const Purpose& purpose);
    void add_child(Relay& relay, Child child);
    void replace_child(Relay& relay, std::size_t index);
    std::optional<Told> read_answer(Bytes bytes) const;
    static Link* find_child(Relay& relay, Node node) noexcept;
    bool take_answer(Relay& relay, Node source, const Told& told);
    std::optional<std::vector<std::byte>> combine(Relay& relay) const;
    void close_one(Relay& relay);
    void finish(Relay& relay);
    std::unique_ptr<Relay> remove(Relay& relay);

    // Deliveries
    bool is_delivered(const Source& source, std::uint64_t sequence) const noexcept;
    void deliver(Relay& relay, const Set& members, const std::vector<Before>& before, Content content);
    void make_ready(Delivery& delivery);
    void run_ready(const engine::Turn& turn);
    void run(const engine::Turn& turn, const Name& name, Bytes content);
    Result<std::vector<std::byte>> run_handler(const Name& name, const Purpose& purpose, Bytes content);
    void end_delivery(const Name& name, Result<std::vector<std::byte>> value);
    void close_delivery(const Name& name, const Purpose& purpose, std::span<const RelayId> relays,
                        Result<std::vector<std::byte>> value);
    void release_after(Source& source, std::uint64_t sequence);

    // What will not come
    void give_up(const Name& name, std::uint64_t before, const std::string& why = {});
    void end_given_up(const Name& name);
    void tell_missing(const Relay& relay);
    void give_up_rest_of(Node master, const Source& source);
    void drop_early(const Name& name);

    // Streams
    /// Null: there is no memory for it.
    static std::shared_ptr<std::vector<std::byte>> try_make_content(std::size_t bytes);
    Stream& add_stream(const Name& name, const Purpose& purpose, Lead lead, Node root, Way way, const Pace& pace,
                       std::shared_ptr<std::vector<std::byte>> content, std::uint32_t block_bytes);
    void make_member(Stream& stream);
    void add_direct_flow(Stream& stream, Node to);
    bool go_on(Stream& stream);
    bool go_on(Stream& stream, Flow& flow);
    bool send_blocks(Stream& stream, Flow& flow, Node to, std::uint32_t begin, std::uint32_t end);
    static Bytes bytes_in(const Stream& stream, std::uint32_t begin, std::uint32_t end) noexcept;
    void on_lost_in(Stream& stream, Node node);
    void adopt(Stream& stream, const Link& out);
    void take_early_answers(Stream& stream);
    void answer_for(Stream& stream, Relay& relay);
    void answer_again(const Name& name, Node to);
    void ask(const Stream& stream, Node node, bool for_answer);
    bool push_to(Stream& stream, Node to);
    void resign(const Stream& stream, const std::string& why);
    static std::vector<std::byte> resignation(const Name& name, const std::string& why);
    static Block head_of(const Stream& stream, std::size_t lead_bytes, std::uint32_t index, bool wants_answer) noexcept;
    Stream* find_stream(const Name& name) noexcept;
    std::optional<Node> parent_in(const Stream& stream) const;
    void forget_streams();

    // Measuring
    Set find_typical() const;
    void probe(const std::vector<Child>& children);

    // Going out
    static void append_lead(std::vector<std::byte>& message, const Set& set, const std::vector<Before>& before,
                            const Set& all);
    static std::vector<std::byte> lead_of(const Set& set, const std::vector<Before>& before, const Set& all);
    bool is_possible(const Source& source, const Purpose& purpose) const noexcept;
    bool is_possible(const Block& block) const noexcept;
    std::optional<Lead> read_lead(Bytes bytes) const;
    bool try_cast(const Relay& relay, const Link& child);
    /// Until the next message is made.
    std::vector<std::byte>& answer_of(Relay& relay, RelayId id);
    void send(Node to, std::vector<std::byte>& message);
    void send(Node to, std::vector<std::byte>&& message) { send(to, message); }
    void settle(const engine::Turn& turn) noexcept;

    engine::Core& core_;
    engine::Port port_;
    Topology topology_;
    Costs costs_;
    std::optional<Way> way_; // that all go, if one is wanted
    Numbered<Relay, RelayId> relays_;
    std::vector<std::byte> message_; // that is being made
    std::map<Node, Source> sources_;
    std::map<Name, std::unique_ptr<Stream>> streams_;
    // By name: answers by those of whom it is not known yet that they answer this node.
    std::map<Name, std::map<Node, std::vector<std::byte>>> early_;
    std::size_t early_bytes_ = 0;
    // for streams that are over: who was lost meanwhile may have swallowed it
    RecentAnswers<Name> answered_{answered_max, answered_bytes_max};
    std::deque<Name> ready_;    // deliveries to be run
    std::deque<Name> arrivals_; // deliveries to be taken
    bool is_running_ = false;
    bool has_ended_ = false;
    int depth_ = 0; // of Busy
    bool is_called_ = false; // the background, for what is under way
    std::deque<Unsent> unsent_;
    // As the master
    struct UnderWay {
        std::uint64_t sequence;
        Set to;
        std::size_t bytes;
    };
    std::uint64_t next_sequence_ = 1;
    std::deque<UnderWay> under_way_; // oldest first
    std::size_t under_way_bytes_ = 0;
    std::optional<Probing> probing_; // until it is known what messages take
    Set typical_;                    // with whom it is measured
    Node probed_ = 0;
    std::uint64_t train_ = 0;
    std::optional<Instant> train_left_; // while one is under way
};

} // namespace kumi::group
