// What arbitrary messages do to groups. This is node 0 of five; the others are the input, which speaks the language of
// groups well enough to be believed now and then: it knows which multicasts are under way, and which calls are.
// Meanwhile the node's own program goes on: it multicasts, gathers, takes what came, makes calls with others; and other
// nodes are lost.
//
// Nothing may crash or hang, and when all others are lost, whatever the program began has ended.

#include "kumi/group/group.hpp"
#include "fuzz/hostile_channel.hpp"
#include "fuzz/input.hpp"
#include "kumi/base/assert.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/engine.hpp"
#include "kumi/engine/wire.hpp"
#include "kumi/group/gather.hpp"
#include "kumi/group/groups.hpp"
#include "kumi/group/wire/collective.hpp"
#include "kumi/group/wire/multicast.hpp"

#include <limits>
#include <memory>
#include <optional>

namespace kumi::fuzz {
namespace {

using engine::Dispatcher;
using group::Answer;
using group::Block;
using group::Brings;
using group::Cast;
using group::Groups;
using group::Kind;
using group::Name;
using group::Purpose;
using group::RelayId;
using group::Set;
using group::StoreHead;
using group::Use;
using pm::Node;

constexpr Node nodes = 5;
constexpr std::size_t steps_max = 400;
constexpr std::size_t input_bytes_max = 8192;
constexpr std::size_t multicasts_max = 100;
constexpr std::uint64_t content_bytes_max = 1 << 20; // of blocks, for not every run is to fill a gigabyte
// The services of groups: multicasts, and calls that members make together.
constexpr auto group_kind = static_cast<std::uint16_t>(engine::Kind::first_of_layers);
constexpr auto post_kind = static_cast<std::uint16_t>(group_kind + engine::Service::kinds_max);
constexpr std::uint32_t handler_number = 0, functions_count = 2; // the program's own

/// Remembers what groups tell each other.
class GroupChannel final : public HostileChannel {
public:
    GroupChannel() : HostileChannel(fuzz::nodes, 1 << 16) {}

    std::uint16_t requests[fuzz::nodes] = {}; // that came to each, of which all are handled
    std::vector<Name> names{{0, 1}, {1, 1}};  // that were told of
    std::vector<RelayId> relays{group::no_relay};
    group::CollectiveHeader post{}; // the last that left

private:
    void on_sent(Node to, Bytes bytes) noexcept override {
        engine::Header header;
        if (!read_value(bytes, header) || header.is_request == 0) return;
        ++requests[to];
        if (header.kind == group_kind) learn(bytes.subspan(sizeof header));
        if (header.kind == post_kind) (void)read_value(bytes.subspan(sizeof header), post);
    }
    void learn(Bytes bytes) {
        std::uint32_t kind = 0;
        Cast cast;
        Block block;
        if (!read_value(bytes, kind) || names.size() > 1000) return;
        if (kind == static_cast<std::uint32_t>(Kind::cast) && read_value(bytes, cast))
            names.push_back(cast.name), relays.push_back(cast.relay);
        if (kind == static_cast<std::uint32_t>(Kind::block) && read_value(bytes, block)) names.push_back(block.name);
    }
};

class Run {
public:
    explicit Run(Bytes bytes) : input_(bytes) {
        Handlers handlers;
        handler_ = handlers.add("take", [this](Call&, std::uint64_t number, Bytes payload) {
            for (const std::byte byte : payload) sum_ += std::to_integer<unsigned>(byte);
            if (number % 8 == 0) begin(Set::range(0, nodes), number + 1, 100);
            if (number % 8 == 1) throw std::runtime_error("no");
        });
        function_ = handlers.function("double", [](std::uint64_t number) { return 2 * number; });
        add_ = handlers.function("add", [](std::uint64_t a, std::uint64_t b) { return a + b; });
        auto dispatcher = Dispatcher::open(channel_, std::move(handlers),
                               {.patience = {Duration{0}}, .progress = {.in_background = false}});
        KUMI_ASSERT(dispatcher);
        dispatcher_ = dispatcher->get();
        group::Topology topology;
        if (input_.byte() % 2 == 0) topology = group::Topology({{0, 0, 1, 1, 1}, {0, 1, 2, 2, 3}});
        groups_.emplace(
            *dispatcher_, topology,
            group::Settings{.costs = group::Costs{.overhead_us = 0.1, .latency_us = 0.2, .us_per_byte = 0.001},
                            .way = {}});
        engine_.emplace(*std::move(dispatcher));
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    void run() {
        for (std::size_t step = 0; step < steps_max && !input_.empty(); ++step) act();
        begun_ = multicasts_max; // enough
        for (Node node = 1; node < nodes; ++node) channel_.is_lost[node] = true;
        channel_.refuses[0] = false;
        for (int i = 0; i < 3; ++i) {
            look();
            while (groups_->next(now())) {
            }
        }
        for (const auto& is_over : over_) KUMI_ASSERT(is_over());
        engine_.reset();
    }

private:
    void act() {
        const std::uint32_t what = input_.byte();
        switch (what % 12) {
        case 0:
            if (what / 12 % 4 == 1) lie_over();
            else if (what / 12 % 4 == 2) lie_post();
            else if (what / 12 % 4 == 3) lie_probe();
            else dispatcher_->progress().poll();
            break;
        case 1: deliver(input_.bytes(input_.byte())); break;
        case 2:
        case 3: lie_cast(); break;
        case 4:
        case 5: lie_block(); break;
        case 6:
        case 7: lie_answer(); break;
        case 8:
        case 9: go_on(); break;
        case 10: channel_.refuses[input_.byte() % nodes] ^= true; break;
        case 11:
            if (const Node node = input_.byte() % 16; node > 0 && node < nodes) channel_.is_lost[node] = true;
            look();
            break;
        }
    }

    /// Long enough to see losses, which are seen before a sleep.
    void look() {
        int looks = 0;
        dispatcher_->progress().wait_until([&] { return ++looks > 30; }, never);
    }

    Node any_node() { return input_.byte() % nodes; }
    Set any_set() {
        Set set;
        const std::uint32_t bits = input_.byte();
        for (Node node = 0; node < nodes; ++node)
            if ((bits >> node & 1) != 0) set.add(node);
        return set;
    }
    Name any_name() {
        const std::uint32_t kind = input_.byte();
        if (kind % 4 == 0) return channel_.names[input_.byte() % channel_.names.size()];
        if (kind % 4 == 1) return {any_node(), ~input_.byte()};
        return {any_node(), kind % 8 < 4 ? input_.byte() % 16 : input_.number()};
    }
    Purpose any_purpose() {
        const std::uint32_t kind = input_.byte();
        const auto use = static_cast<Use>(kind >= 250 ? kind : kind % 5); // the last ones are none
        const std::uint32_t number = use == Use::handler ? handler_number : kind / 8 % functions_count;
        return {use, kind % 8 == 7 ? input_.number() : number, kind / 16 % 4};
    }
    RelayId any_relay() {
        RelayId id = channel_.relays[input_.byte() % channel_.relays.size()];
        if (input_.byte() % 8 == 0) id = {input_.byte() % 16, input_.byte() % 16};
        return id;
    }
    double any_gap() {
        const std::uint32_t kind = input_.byte();
        switch (kind) {
        case 0: return std::numeric_limits<double>::quiet_NaN();
        case 1: return std::numeric_limits<double>::infinity();
        case 2: return -1;
        case 3: return 0;
        case 4: return std::numeric_limits<double>::denorm_min();
        default: return kind / 128.0;
        }
    }
    std::vector<std::byte> any_lead() {
        std::vector<std::byte> lead;
        if (input_.byte() % 8 == 0) {
            const Bytes raw = input_.bytes(input_.byte() % 32);
            lead.assign(raw.begin(), raw.end());
            return lead;
        }
        Set set = any_set();
        if (input_.byte() % 8 != 0) set.add(0);
        set.encode(lead);
        const std::uint32_t count = input_.byte() % 8 < 5 ? 0 : input_.byte() % 4;
        append(lead, count);
        for (std::uint32_t i = 0; i < count; ++i) {
            append(lead, std::uint64_t{input_.byte() % 16});
            any_set().encode(lead);
        }
        any_set().encode(lead); // all members
        lead.resize((lead.size() + 7) / 8 * 8);
        return lead;
    }

    template <class T>
    static void append(std::vector<std::byte>& message, const T& value) {
        const Bytes bytes = bytes_of(value);
        message.insert(message.end(), bytes.begin(), bytes.end());
    }
    static void append(std::vector<std::byte>& message, const std::vector<std::byte>& bytes) {
        message.insert(message.end(), bytes.begin(), bytes.end());
    }
    void append_content(std::vector<std::byte>& message, std::size_t bytes) {
        const Bytes raw = input_.bytes(std::min<std::size_t>(bytes, input_.byte() % 16));
        message.insert(message.end(), raw.begin(), raw.end());
        message.resize(message.size() + bytes - raw.size());
    }

    void append_store_head(std::vector<std::byte>& message) {
        if (input_.byte() % 8 == 0) return; // too short, or what comes by chance
        const std::uint32_t segment = input_.byte();
        const std::uint64_t offset = input_.byte() % 4 == 0 ? ~std::uint64_t{input_.byte()} : 16 * input_.byte();
        append(message, StoreHead{{segment % 8 == 7 ? segment << 24 : segment % 3, 0, offset},
                                  {static_cast<Notice::Kind>(segment / 8 % 4), segment / 32 % 3, offset, 1}});
    }

    void lie_cast() {
        std::vector<std::byte> message;
        const auto lead = input_.byte() % 4 == 0 ? std::vector<std::byte>() : any_lead();
        const auto lead_bytes =
            static_cast<std::uint32_t>(lead.size()) + (input_.byte() % 16 == 0 ? input_.byte() - 8 : 0);
        const Name name = any_name();
        const Purpose purpose = any_purpose();
        const RelayId relay = any_relay();
        append(message, Cast{Kind::cast, lead_bytes, name, purpose, relay, any_gap()});
        append(message, lead);
        if (purpose.use == Use::store) append_store_head(message);
        append_content(message, input_.byte() % 4 == 0 ? input_.byte() : 8 + input_.byte() % 2);
        deliver(message);
    }

    void lie_block() {
        std::vector<std::byte> message;
        const auto lead = input_.byte() % 4 == 0 ? std::vector<std::byte>() : any_lead();
        const Name name = any_name();
        const Purpose purpose = any_purpose();
        const std::uint64_t bytes = input_.byte() % 16 == 0 ? std::uint64_t{input_.byte()} << 23 : input_.byte() * 40;
        const std::uint32_t block_bytes = input_.byte() % 16 == 0 ? input_.number() : 1024;
        const std::uint32_t place = input_.byte();
        const std::uint32_t index = place % 16;
        const std::uint32_t origin = input_.byte();
        const Node root = origin % 8;
        const auto way = static_cast<group::Way>(origin / 8 % 6);
        append(message, Block{Kind::block, static_cast<std::uint32_t>(lead.size()), name, purpose, bytes, block_bytes,
                              index, root, way, origin / 64 % 2, 0, any_gap()});
        append(message, lead);
        const std::uint64_t offset = std::uint64_t{index} * block_bytes;
        const std::uint64_t run_bytes = std::uint64_t{block_bytes} * (1 + place / 16 % 3);
        append_content(message, input_.byte() % 16 == 0
                                    ? input_.number() % 40'000
                                    : std::min<std::uint64_t>(run_bytes, bytes - std::min(bytes, offset)));
        deliver(message);
    }

    void lie_answer() {
        std::vector<std::byte> message, set;
        any_set().encode(set);
        const Name name = any_name();
        const RelayId relay = any_relay();
        const std::uint32_t text_bytes = input_.byte() % 4 == 0 ? input_.byte() : 0;
        append(message, Answer{Kind::answer, static_cast<std::uint32_t>(set.size()), name, relay, text_bytes,
                               static_cast<Brings>(input_.byte() % 4)});
        append(message, set);
        append_content(message, input_.byte());
        deliver(message);
    }

    void lie_over() {
        std::vector<std::byte> message;
        const Name name = any_name();
        append(message, group::Over{Kind::over, 0, name, input_.byte() % 16});
        deliver(message);
    }

    void lie_probe() {
        std::vector<std::byte> message;
        const std::uint32_t what = input_.byte();
        append(message, group::Probe{what % 2 == 0 ? Kind::probe : Kind::probed, what / 2 % 2, what / 4});
        deliver(message);
    }

    /// Like the last that this node sent, as far as the input does not say otherwise.
    void lie_post() {
        std::vector<std::byte> message;
        group::CollectiveHeader post = channel_.post;
        const std::uint32_t changes = input_.byte();
        post.kind = static_cast<group::MessageKind>(input_.byte() % 9);
        post.taken = changes % 8 == 0 ? input_.number() : 0;
        if ((changes & 8) != 0) post.serial = input_.byte();
        if ((changes & 16) != 0) post.bytes = input_.number();
        if ((changes & 32) != 0) post.came_with = input_.byte();
        if ((changes & 64) != 0) post.step = static_cast<std::uint16_t>(input_.byte());
        if ((changes & 128) != 0)
            post.collective = static_cast<std::uint8_t>(input_.byte()), post.root = input_.byte() % 8,
            post.key += input_.byte() % 2;
        append(message, post);
        append_content(message, input_.byte() % 4 == 0 ? input_.byte() : std::min<std::uint64_t>(post.bytes, 1000));
        deliver(message, post_kind);
    }

    void deliver(Bytes bytes, std::uint16_t kind = group_kind) {
        const Node source = 1 + input_.byte() % (nodes - 1);
        const engine::Header header{kind, channel_.requests[source], 1u};
        std::vector<std::byte> message;
        append(message, header);
        message.insert(message.end(), bytes.begin(), bytes.end());
        if (Block block; kind == group_kind && read_value(bytes, block) && block.kind == Kind::block &&
                         block.bytes <= Groups::content_bytes_max) {
            block.bytes = std::min(block.bytes, content_bytes_max);
            copy_bytes(message.data() + sizeof header, bytes_of(block));
        }
        channel_.arrivals.push_back({source, std::move(message)});
        if (input_.byte() % 4 != 0) dispatcher_->progress().poll();
    }

    /// Remembers that it is to end.
    template <class T>
    void expect(Future<T> future) {
        const auto kept = std::make_shared<Future<T>>(std::move(future));
        over_.push_back([kept] { return kept->is_ready(); });
    }
    void begin(const Set& to, std::uint64_t number, std::size_t bytes) {
        if (++begun_ > multicasts_max) return;
        const std::vector<std::byte> content(bytes);
        auto done = groups_->multicast(to, *handler_, number, Bytes(content));
        if (number % 3 != 0) return expect(std::move(done));
        expect(done.then([this, number](const Result<Set>& missing) {
            if (missing) begin(Set::range(0, nodes), number / 3, 10);
        }));
    }

    /// What the program does; errors are its own affair.
    void go_on() {
        const std::uint32_t what = input_.byte();
        Set to = any_set();
        if (to.empty()) to.add(1);
        const std::size_t bytes = input_.byte() % 4 == 0 ? input_.number() : input_.byte();
        switch (what % 8) {
        case 0:
            if (what / 8 % 2 == 0) return (void)groups_->next(now()).has_value();
            to.add(0);
            return call(to, what / 16, bytes % 1000);
        case 1:
            if (++begun_ <= multicasts_max) expect(groups_->multicast(to, what, Bytes(std::vector<std::byte>(bytes))));
            return;
        case 2:
            if (++begun_ <= multicasts_max) expect(groups_->gather(to, *function_, std::uint64_t{what}));
            return;
        case 3:
            if (++begun_ <= multicasts_max) expect(groups_->reduce(to, *add_, *function_, std::uint64_t{what}));
            return;
        default: return begin(to, what / 8, bytes);
        }
    }

    /// One that others are in as well, as far as the input plays them; it does not wait.
    void call(const Set& members, std::uint32_t what, std::size_t bytes) {
        auto group = groups_->group(members);
        KUMI_ASSERT(group);
        std::vector<std::uint16_t> mine(bytes), all(bytes * group->size());
        const Node root = what % group->size();
        switch (what % 8) {
        case 0: return (void)group->barrier(now()).has_value();
        case 1: return (void)group->broadcast(root, mine, now()).has_value();
        case 2: return (void)group->allreduce(mine, mine, group::sum, now()).has_value();
        case 3: return (void)group->gather(root, mine, all, now()).has_value();
        case 4: return (void)group->scan(mine, mine, group::sum, now()).has_value();
        case 5: return (void)group->allgatherv(mine, now()).has_value();
        case 6: return (void)group->reduce(root, mine, mine, group::max, now(), group::Order::by_rank).has_value();
        case 7: return (void)group->alltoall(all, all, now()).has_value();
        }
    }

    Input input_;
    GroupChannel channel_;
    std::optional<Groups> groups_;
    std::optional<Handler<std::uint64_t, Bytes>> handler_;
    std::optional<Function<std::uint64_t(std::uint64_t)>> function_;
    std::optional<Function<std::uint64_t(std::uint64_t, std::uint64_t)>> add_;
    std::vector<std::function<bool()>> over_;
    std::size_t begun_ = 0;
    std::uint64_t sum_ = 0;
    Dispatcher* dispatcher_ = nullptr;
    std::optional<engine::Engine> engine_; // last: it uses the others
};

} // namespace
} // namespace kumi::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    kumi::fuzz::Run(std::as_bytes(std::span(data, std::min(size, kumi::fuzz::input_bytes_max)))).run();
    return 0;
}
