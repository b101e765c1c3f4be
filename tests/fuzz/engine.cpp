// What arbitrary messages do to an engine. It is node 0 of three; the other two are the input, which speaks the
// engines' language well enough to be believed now and then: it knows which operations are under way and where data is
// expected. Meanwhile the engine's own program goes on: it puts, gets, offers, accepts, comes to barriers.
//
// Nothing may crash or hang, and nothing is written but to segments, heaps and where the program said: not to what it
// put from or offered, and not around what it gets or accepts to.

#include "kumi/base/assert.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "kumi/engine/engine.hpp"
#include "kumi/engine/call/invoke.hpp"
#include "kumi/engine/wire.hpp"
#include "fuzz/hostile_channel.hpp"
#include "fuzz/input.hpp"

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace kumi::fuzz {
namespace {

using engine::Dispatcher;
using engine::Kind;
using engine::OperationId;
using engine::Place;
using pm::Node;

constexpr Node nodes = 3;
constexpr std::size_t steps_max = 400;
constexpr std::size_t input_bytes_max = 8192;
constexpr std::size_t payload_bytes_max = 100'000;

/// Remembers what the engine's messages tell. When it is polled in vain for long, somebody waits for what will never
/// come: then all are lost.
class EngineChannel final : public HostileChannel {
public:
    EngineChannel() : HostileChannel(fuzz::nodes, 1 << 20) {}
    std::size_t poll(pm::Handler handler, std::size_t messages_max) noexcept override {
        const std::size_t handled = HostileChannel::poll(handler, messages_max);
        if (handled != 0) empty_polls_ = 0;
        else if (++empty_polls_ == 2000) lose_all();
        return handled;
    }
    void lose_all() { is_lost[1] = is_lost[2] = true; }
    bool is_over() const { return is_lost[1]; }

    std::vector<OperationId> operations{engine::no_operation}; // that the engine has told of
    std::vector<Place> landings{{engine::landing_bit, 0, 0}};

private:
    void on_sent(Node, Bytes bytes) noexcept override {
        empty_polls_ = 0;
        engine::Header header;
        if (!read_value(bytes, header)) return;
        const Bytes rest = bytes.subspan(sizeof header);
        const auto remember = [&]<class Head>(Head head) {
            if (read_value(rest, head) && operations.size() < 1000) operations.push_back(head.operation);
            return head;
        };
        switch (static_cast<Kind>(header.kind)) {
        case Kind::put: remember(engine::Put{}); break;
        case Kind::get: remember(engine::Get{}); break;
        case Kind::atomic: remember(engine::AtomicRequest{}); break;
        case Kind::copy: remember(engine::Copy{}); break;
        case Kind::ask: remember(engine::Ask{}); break;
        case Kind::want: landings.push_back(remember(engine::Want{}).to); break;
        default: break;
        }
    }

    unsigned empty_polls_ = 0;
};

/// Memory with a guard on both sides.
class Guarded {
public:
    explicit Guarded(std::size_t bytes) : all_(bytes + 2 * guard, mark) {}
    MutableBytes bytes() { return MutableBytes(all_).subspan(guard, all_.size() - 2 * guard); }
    void check_guards() const {
        for (std::size_t i = 0; i < guard; ++i) KUMI_ASSERT(all_[i] == mark && all_[all_.size() - 1 - i] == mark);
    }
    void check_all() const {
        for (const std::byte byte : all_) KUMI_ASSERT(byte == mark);
    }

private:
    static constexpr std::size_t guard = 256;
    static constexpr std::byte mark{0x5A};
    std::vector<std::byte> all_;
};

class Run {
public:
    explicit Run(Bytes bytes) : input_(bytes) {
        Handlers handlers;
        handler_ = handlers.add("take", [this](Call& call, std::uint64_t number, Bytes payload) {
            for (const std::byte byte : payload) sum_ += std::to_integer<unsigned>(byte);
            if (number % 2 == 0) call.reply(*handler_, number + 1, payload);
        });
        handlers.add("throw", [](Call&, std::uint32_t number) {
            if (number % 2 == 0) throw std::runtime_error("no");
        });
        function_ = handlers.function(
            "join", [](const std::vector<std::string>& words, const std::map<int, std::string>& more) {
                std::string all;
                for (const std::string& word : words) all += word;
                return all + (more.empty() ? "" : more.begin()->second);
            });
        auto dispatcher =
            Dispatcher::open(channel_, std::move(handlers), {.patience = {}, .progress = {.in_background = false}});
        KUMI_ASSERT(dispatcher);
        dispatcher_ = dispatcher->get();
        engine_.emplace(*std::move(dispatcher));
        dispatcher_->messages().set_plain_handler([this](pm::Message& message) { sum_ += message.bytes().size(); });
        for (const std::size_t size : {std::size_t{1}, std::size_t{64}, std::size_t{5000}, std::size_t{200'000}}) {
            const auto made = dispatcher_->segments().add(size);
            KUMI_ASSERT(made);
            segments_.push_back({made->id, size});
        }
        KUMI_ASSERT(dispatcher_->segments().allocate(1000, 1));
    }

    void run() {
        for (std::size_t step = 0; step < steps_max && !input_.empty() && !channel_.is_over(); ++step) {
            act();
            // Nobody has given credit for what was not sent.
            for (Node node = 0; node < nodes; ++node)
                KUMI_ASSERT(dispatcher_->outbox(dispatcher_->take_turn()).credits().under_way(node) <=
                            engine::requests_max);
        }
        channel_.lose_all(); // so nothing waits
        for (int i = 0; i < 10; ++i) dispatcher_->progress().poll();
        (void)dispatcher_->operations().sync(now()).has_value();
        engine_.reset();
        for (const auto& target : targets_) target->check_guards();
        for (const auto& source : sources_) source->check_all();
    }

private:
    void act() {
        const std::uint32_t what = input_.byte();
        switch (what % 8) {
        case 0: dispatcher_->progress().poll(); break;
        case 1: deliver(input_.bytes(input_.byte())); break;
        case 2:
        case 3:
        case 4: lie(); break;
        case 5:
        case 6: go_on(); break;
        case 7: channel_.refuses[1 + input_.byte() % 2] ^= true; break;
        }
    }

    Node any_peer() { return 1 + input_.byte() % 2; }
    void deliver(Bytes bytes) {
        channel_.arrivals.push_back({any_peer(), {bytes.begin(), bytes.end()}});
        if (input_.byte() % 4 != 0) dispatcher_->progress().poll();
    }

    /// Numbers that are small, near a power of two, or huge.
    std::uint64_t any_number() {
        const std::uint32_t kind = input_.byte();
        const std::uint64_t power = std::uint64_t{1} << (kind >> 2);
        return kind % 4 == 0   ? kind >> 2
               : kind % 4 == 1 ? power
               : kind % 4 == 2 ? power - 1
                               : std::uint64_t{0} - (kind >> 2);
    }
    OperationId any_operation() {
        OperationId id = channel_.operations[input_.byte() % channel_.operations.size()];
        if (input_.byte() % 8 == 0) id.generation += input_.byte() - 128;
        if (input_.byte() % 8 == 0) id.index ^= input_.byte();
        return id;
    }
    Place any_place() {
        const std::uint32_t kind = input_.byte();
        if (kind % 4 == 0) {
            Place place = channel_.landings[input_.byte() % channel_.landings.size()];
            place.offset = any_number();
            return place;
        }
        if (kind % 4 == 1) return {input_.number() << 16 | input_.number(), input_.byte(), any_number()};
        const auto& [id, size] = segments_[input_.byte() % segments_.size()];
        return {kind % 8 == 2 ? 0 : id, 0, kind % 16 < 8 ? any_number() : size - any_number() % 64};
    }
    Notice any_notice() {
        const Place place = any_place();
        return {static_cast<Notice::Kind>(input_.byte() % 5), place.segment, place.offset, any_number()};
    }

    /// A message as engines send them, with fields that may be right.
    void lie() {
        const std::uint32_t choice = input_.byte();
        const std::uint32_t place = choice % 32;
        const auto from = [&](Kind first, std::uint32_t begin) {
            return static_cast<Kind>(static_cast<std::uint32_t>(first) + place - begin);
        };
        // Corpora count on this order, and on the number of kinds.
        constexpr auto no_kind = static_cast<Kind>(63);
        constexpr std::array own{Kind::credit, Kind::please, Kind::message, Kind::put,  Kind::put_strided,
                                 Kind::get,    Kind::got,    Kind::atomic,  Kind::copy, Kind::done,
                                 Kind::failed, Kind::nudge,  Kind::want,    no_kind};
        const Kind kind = place < own.size() ? own[place]
                          : place < 16 ? from(Kind::ask, 14)
                          : place < 20 ? from(Kind::step, 16)
                          : place < 30 ? from(Kind::first_handler, 20)
                                       : from(Kind::first_of_layers, 30);
        engine::Header header{static_cast<std::uint16_t>(kind),
                              static_cast<std::uint16_t>(input_.byte() % 4 == 0 ? input_.number() : handled_++),
                              input_.byte() % 4 == 0 ? 0u : 1u};
        std::vector<std::byte> message;
        const auto append = [&](const auto& part) {
            const Bytes bytes = bytes_of(part);
            message.insert(message.end(), bytes.begin(), bytes.end());
        };
        append(header);
        switch (kind) {
        case Kind::put: append(engine::Put{any_operation(), any_place(), any_notice()}); break;
        case Kind::put_strided:
            append(
                engine::PutStrided{any_place(), any_notice(), any_number(), static_cast<std::int64_t>(any_number())});
            break;
        case Kind::get:
            append(engine::Get{any_operation(), any_place(), any_number(), any_number(),
                               static_cast<std::int64_t>(any_number()), any_number()});
            break;
        case Kind::got: append(engine::Got{any_operation(), any_number()}); break;
        case Kind::atomic:
            append(engine::AtomicRequest{
                any_operation(),
                any_place(),
                {static_cast<Atomic::Kind>(input_.byte() % 16), input_.byte() % 16, any_number(), any_number()}});
            break;
        case Kind::copy:
            append(engine::Copy{any_operation(), any_place(), input_.byte() % 4, 0, any_place(), any_number(),
                                any_notice()});
            break;
        case Kind::done:
        case Kind::answer: append(engine::Done{any_operation(), any_number()}); break;
        case Kind::failed: append(engine::Failed{any_operation()}); break;
        case Kind::step:
            append(engine::BarrierStep{input_.byte() % 2 == 0 ? input_.byte() % 4 : any_number(), input_.byte(),
                                       input_.byte() % 8, any_number(), any_number()});
            break;
        case Kind::host_arrived: append(engine::HostArrived{input_.byte(), 0}); break;
        case Kind::hopeless: append(engine::Hopeless{input_.byte() % 4, input_.byte(), input_.byte() % 4}); break;
        case Kind::want: append(engine::Want{input_.byte() % 4, any_place(), any_number(), any_operation()}); break;
        case Kind::ask: append(engine::Ask{any_operation(), input_.byte() % 3, 0}); break;
        default: break;
        }
        const Bytes more = input_.bytes(input_.byte());
        message.insert(message.end(), more.begin(), more.end());
        if (input_.byte() % 16 == 0) message.resize(message.size() + input_.number() % payload_bytes_max);
        if (input_.byte() % 16 == 0)
            message.resize(message.size() - std::min<std::size_t>(message.size(), input_.byte()));
        deliver(message);
    }

    std::size_t any_size() { return input_.byte() % 4 == 0 ? input_.number() * 3 : input_.byte(); }
    global_ptr<std::byte> any_where() {
        const auto& [id, size] = segments_[input_.byte() % segments_.size()];
        const Node node = input_.byte() % nodes;
        return {node, id, input_.number() % size};
    }

    /// What the program does; errors are its own affair.
    void go_on() {
        const auto ignore = [](const auto& result) { (void)result.has_value(); };
        const auto source = [&](std::size_t bytes) {
            return Bytes(sources_.emplace_back(std::make_unique<Guarded>(bytes))->bytes());
        };
        const auto target = [&](std::size_t bytes) {
            return targets_.emplace_back(std::make_unique<Guarded>(bytes))->bytes();
        };
        // One after the other: compilers differ in the order of arguments.
        const std::uint32_t what = input_.byte();
        const global_ptr<std::byte> where = any_where();
        const std::size_t size = any_size();
        const std::uint32_t number = input_.byte();
        const Node node = where.node();
        Flag& flag = flags_.emplace_back(0);
        switch (what % 32 < 30 ? what % 16 : what % 32) {
        case 0: return ignore(dispatcher_->memory().put(where, source(size), any_notice()));
        case 1: return ignore(dispatcher_->memory().start_put(where, source(size), any_notice()));
        case 2: return ignore(dispatcher_->memory().start_get(where, target(size), &flag));
        case 3: return ignore(dispatcher_->rendezvous().offer(number % 4, node, source(size), &flag, 1));
        case 4: return ignore(dispatcher_->rendezvous().accept(number % 4, node, target(size), &flag, 1));
        case 5: {
            const global_ptr<std::byte> other = any_where();
            return ignore(dispatcher_->memory().copy(where, other, size, any_notice()));
        }
        case 6: { // as groups do for a multicast into memory
            const engine::Turn turn = dispatcher_->take_turn();
            const engine::Place place = any_place();
            return ignore(dispatcher_->memory().store(turn, place, source(size), any_notice()));
        }
        case 7: return ignore(dispatcher_->memory().check_store("store", where, size, any_notice()));
        case 8: tokens_.push_back(dispatcher_->barriers().arrive()); return;
        case 9: {
            const Node pair[2] = {0, any_peer()};
            if (const auto token = dispatcher_->barriers().arrive(pair)) tokens_.push_back(*token);
            return;
        }
        case 10: return ignore(dispatcher_->operations().start_sync(flag));
        case 11:
            return ignore(
                dispatcher_->calls().ask(node, function_->index(), input_.bytes(size),
                                   [this](const Result<Bytes>& answer) { sum_ += answer ? answer->size() : 1; }));
        case 12: return ignore(engine_->send(node, *handler_, std::uint64_t{number}, input_.bytes(size)));
        case 13: {
            const std::size_t count = 1 + number % 16, block = 1 + size;
            const auto stride = static_cast<std::ptrdiff_t>(any_number());
            return ignore(dispatcher_->memory().put_strided(where, source(block * count).data(),
                                             {block, count, static_cast<std::ptrdiff_t>(block), stride}, any_notice()));
        }
        case 14: return ignore(dispatcher_->segments().allocate(size, 8));
        case 15:
            for (const BarrierToken& token : tokens_) sum_ += dispatcher_->barriers().test(token) ? 1 : 0;
            return;
        // These wait: for what has arrived already, and then all are lost.
        case 30: {
            const std::size_t block = 1 + size % 100, count = 1 + number % 8;
            const MutableBytes all = target(2 * block * count);
            if (number % 2 == 0)
                return ignore(dispatcher_->memory().get_strided(
                    where, all.data(), {block, count, 0, static_cast<std::ptrdiff_t>(2 * block)}));
            std::byte* const last = all.data() + 2 * block * (count - 1);
            return ignore(dispatcher_->memory().get_strided(
                where, last, {block, count, 0, -static_cast<std::ptrdiff_t>(2 * block)}));
        }
        case 31: return ignore(dispatcher_->memory().atomic(where, {Atomic::add, 8, number, 0}));
        }
    }

    Input input_;
    EngineChannel channel_;
    std::optional<Handler<std::uint64_t, Bytes>> handler_;
    std::optional<Function<std::string(std::vector<std::string>, std::map<int, std::string>)>> function_;
    std::deque<std::unique_ptr<Guarded>> sources_, targets_;
    std::deque<Flag> flags_;
    std::vector<std::pair<SegmentId, std::size_t>> segments_;
    std::vector<BarrierToken> tokens_;
    std::uint16_t handled_ = 0;
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
