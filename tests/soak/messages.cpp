#include "soak/messages.hpp"

namespace kumi::soak {
namespace {

/// A route: one byte for each node, the next one lowest. A token that must return has the highest bit.
constexpr unsigned hops_max = 7;
constexpr std::uint64_t must_return = std::uint64_t{1} << 63;

struct PlainHead {
    std::uint64_t thread;
    std::uint64_t number;
};

std::uint64_t key_of(int kind, Node source, std::uint32_t thread, std::uint64_t number) {
    return mixed(source, thread, number, static_cast<std::uint64_t>(kind));
}

} // namespace

Messages::Messages(Handlers& handlers, World& world)
    : world_(world), take_(handlers.add("take",
                                        [this](Call& call, std::uint32_t thread, std::uint64_t number, Bytes payload) {
                                            take(handled, call.source(), thread, number, payload);
                                        })),
      pass_(handlers.add("pass",
                         [this](Call& call, std::uint64_t route, std::uint32_t hops) {
                             if (hops == 0) {
                                 if ((route & must_return) != 0) ++tokens_back_;
                                 return;
                             }
                             // An error: the node is lost, and so is the token.
                             (void)call.job().send(static_cast<Node>(route & 0x7f), pass_,
                                                   (route & must_return) | ((route & ~must_return) >> 7), hops - 1);
                         })),
      received_by_(handlers.function("received_by",
                                     [this](std::uint32_t source) {
                                         Counts counts;
                                         for (const Kind kind : {handled, plain})
                                             for (unsigned thread = 0; thread < world_.plan.threads; ++thread)
                                                 counts.push_back(received_[index(kind, source, thread)]);
                                         return counts;
                                     })),
      sent_(kinds * world.plan.nodes * world.plan.threads), received_(sent_.size()) {}

void Messages::start() {
    world_.job().on_message([this](Message& message) {
        PlainHead head{};
        if (!read_value(message.bytes(), head)) world_.wrong("a plain message is too short");
        take(plain, message.source(), static_cast<std::uint32_t>(head.thread), head.number,
             message.bytes().subspan(sizeof head));
    });
}

std::size_t Messages::index(Kind kind, Node node, unsigned thread) const noexcept {
    return (static_cast<std::size_t>(kind) * world_.plan.nodes + node) * world_.plan.threads + thread;
}

void Messages::take(Kind kind, Node source, std::uint32_t thread, std::uint64_t number, Bytes payload) {
    if (thread >= world_.plan.threads) world_.wrong("a message of no thread");
    const std::uint64_t last = ++received_[index(kind, source, thread)];
    if (number != last)
        world_.wrong(fmt::format("message {} of kind {} from node {}, thread {}, came as the {}th", number,
                                 static_cast<int>(kind), source, thread, last));
    if (!has_pattern(payload, key_of(kind, source, thread, number)))
        world_.wrong(fmt::format("message {} from node {} has other bytes", number, source));
}

void Messages::act(Actor& actor) {
    for (std::uint64_t i = actor.random.between(1, 30); i > 0; --i) switch (actor.random.below(4)) {
        case 0: send_plain(actor); break;
        case 1: send_token(actor); break;
        default: send_handled(actor);
        }
}

void Messages::send_handled(Actor& actor) {
    const Node to = actor.some_node(world_);
    const std::uint64_t number = sent_[index(handled, to, actor.thread)] + 1;
    const auto content = pattern(key_of(handled, world_.self(), actor.thread, number), actor.random.size(200000));
    if (world_.is_good(world_.job().send(to, take_, actor.thread, number, Bytes(content)), world_.is_risky(to), "send"))
        sent_[index(handled, to, actor.thread)] = number;
}

void Messages::send_plain(Actor& actor) {
    const Node to = actor.some_node(world_);
    const PlainHead head{actor.thread, sent_[index(plain, to, actor.thread)] + 1};
    const auto content = pattern(key_of(plain, world_.self(), actor.thread, head.number), actor.random.size(200000));
    if (world_.is_good(world_.job().send(to, bytes_of(head), Bytes(content)), world_.is_risky(to), "plain send"))
        sent_[index(plain, to, actor.thread)] = head.number;
}

void Messages::send_token(Actor& actor) {
    const auto hops = static_cast<std::uint32_t>(actor.random.between(1, hops_max));
    std::uint64_t route = world_.self();
    bool is_risky = false;
    for (std::uint32_t i = 0; i < hops; ++i) {
        const Node node = actor.some_node(world_);
        is_risky = is_risky || world_.is_risky(node);
        route = (route << 7) | node;
    }
    if (!is_risky) route |= must_return;
    if (!is_risky) ++tokens_sent_;
    const Node first = static_cast<Node>(route & 0x7f);
    const std::uint64_t rest = (route & must_return) | ((route & ~must_return) >> 7);
    (void)world_.is_good(world_.job().send(first, pass_, rest, hops), world_.is_risky(first), "send of a token");
}

void Messages::wait_for_tokens() {
    if (!world_.job().wait_until([&] { return tokens_back_ == tokens_sent_; }, world_.deadline(false)))
        world_.wrong(fmt::format("{} of {} tokens came back", tokens_back_.load(), tokens_sent_.load()));
}

void Messages::check() {
    const Instant deadline = world_.deadline(false);
    for (const Node node : world_.survivors()) {
        Counts expected;
        for (const Kind kind : {handled, plain})
            for (unsigned thread = 0; thread < world_.plan.threads; ++thread)
                expected.push_back(sent_[index(kind, node, thread)]);
        const auto is_handled = [&](const Counts& counts) { // sync() has waited for these
            return std::equal(counts.begin(), counts.begin() + world_.plan.threads, expected.begin());
        };
        for (Counts counts; counts != expected;) {
            auto answer = world_.job().invoke(node, received_by_, world_.self()).get(deadline);
            if (!world_.is_good(answer, false, "invoke of received_by")) return;
            counts = *std::move(answer);
            if (!is_handled(counts) || (counts != expected && now() > deadline))
                world_.wrong(fmt::format("node {} got {} messages of this node's {}", node, fmt::join(counts, ","),
                                         fmt::join(expected, ",")));
        }
    }
}

} // namespace kumi::soak
