#include "udp/node.hpp"

#include "contestant/measure.hpp"
#include "contestant/mix.hpp"
#include "contestant/processes.hpp"
#include "contestant/processor_time.hpp"
#include "contestant/request_reply.hpp"
#include "contestant/work.hpp"
#include "udp/bare.hpp"
#include "udp/foreign.hpp"
#include "udp/ports.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/device/udp/seal/crypto.hpp"
#include "kumi/device/udp/udp.hpp"
#include "kumi/pm/channel.hpp"
#include "kumi/pm/wait.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace kumi::bench {
namespace {

using pm::Channel;

/// One end for each element of `sides`, opened on that side of the network.
Result<Ends> open_ends(const Network& network, const std::vector<unsigned>& sides,
                       const device::udp::Options& options) {
    std::vector<std::string> addresses;
    for (const unsigned side : sides) addresses.push_back(network.address(side));
    return device::udp::open_in_one_process(addresses, options,
                                            [&](pm::Node node) { return network.enter(sides[node]); });
}

int pingpong(const Task& task, const Ends& ends, pm::Patience patience) {
    constexpr Always size{pingpong_bytes};
    return request_and_reply(ends, patience, size, size,
                             [&](double seconds) { report(task.row().c_str(), seconds / 2 * 1e9); });
}

int mix(const Task& task, const Ends& ends) {
    return request_and_reply(ends, spinning, Mix(1), Mix(2),
                             [&](double seconds) { report(task.row().c_str(), 1e-3 / seconds); });
}

/// Sends the same message again and again, from private memory.
int send_for_ever(Channel& channel, pm::Node to, std::size_t bytes, pm::Patience patience) {
    const std::vector<std::byte> message(bytes);
    while (true) send(channel, to, message, patience);
    return 0;
}

/// Sends messages that are made in place. Their content is not written: bare senders do not write theirs either.
int send_in_place_for_ever(Channel& channel, pm::Node to, std::size_t bytes, pm::Patience patience) {
    while (true) {
        pm::SendSlot slot;
        pm::poll_until(
            channel, ignore, [&] { return static_cast<bool>(slot = channel.try_reserve(to, bytes)); }, patience);
        channel.commit(slot);
    }
    return 0;
}

/// Hands out messages until then.
void take_until(Channel& channel, pm::Handler handler, Instant deadline, pm::Patience patience) {
    pm::poll_until(
        channel, handler, [&] { return now() >= deadline; }, patience, deadline);
}

/// Messages from node 0 to node 1; `unit` is a number of bytes.
int stream(const Task& task, const Ends& ends, std::size_t message_bytes, double unit) {
    ProcessorTime processor;
    // An end that spins takes a core, whatever it does.
    const pm::Patience patience = task.is_processor_time() ? sleeping : spinning;
    const auto take = [&] {
        processor.join();
        std::uint64_t bytes = 0;
        const auto count = [&](pm::Message& message) { bytes += message.bytes().size(); };
        const auto more = [&](Instant deadline) { take_until(*ends[1], count, deadline, patience); };
        const Growth taken =
            growth(bytes, more, task.is("loss") ? loss_window : window, [&] { return processor.seconds(); });
        report_stream(task, taken, unit);
        return 0;
    };
    const auto give = [&] {
        processor.join();
        if (task.is("bulk") || task.is("loss")) return send_in_place_for_ever(*ends[0], 1, message_bytes, patience);
        return send_for_ever(*ends[0], 1, message_bytes, patience);
    };
    return run_parts({{take, 1}, {give, 0}});
}

/// Counts what arrives at node 0, by source. The entry of node 0 stays zero.
class Arrivals {
public:
    explicit Arrivals(std::size_t nodes) : bytes_(nodes) {}

    void operator()(pm::Message& message) noexcept {
        bytes_[message.source()] += message.bytes().size();
        total_ += message.bytes().size();
    }
    const std::uint64_t& total() const noexcept { return total_; }
    bool from_all() const noexcept { return std::find(bytes_.begin() + 1, bytes_.end(), 0u) == bytes_.end(); }
    void forget_sources() noexcept { std::fill(bytes_.begin(), bytes_.end(), 0u); }
    /// The rate of the slowest sender over that of the fastest.
    double fairness() const noexcept {
        const auto [least, most] = std::minmax_element(bytes_.begin() + 1, bytes_.end());
        return static_cast<double>(*least) / static_cast<double>(*most);
    }

private:
    std::vector<std::uint64_t> bytes_;
    std::uint64_t total_ = 0;
};

/// Many nodes send to node 0, which counts messages by source.
int incast(const Task& task, const Ends& ends) {
    const auto patience = pm::patience_for(static_cast<unsigned>(ends.size()), base::cores_allowed());
    const auto take = [&] {
        Arrivals arrivals(ends.size());
        pm::poll_until(
            *ends[0], arrivals, [&] { return arrivals.from_all(); }, patience);
        take_until(*ends[0], arrivals, now() + warm_up, patience);
        arrivals.forget_sources();
        const auto before = arrivals.total();
        const Instant start = now();
        take_until(*ends[0], arrivals, start + incast_window, patience);
        const double seconds = Seconds(now() - start).count();
        report(task.row().c_str(), static_cast<double>(arrivals.total() - before) * 1e-6 / seconds);
        if (task.who == "kumi") report(("udp.fairness.8." + task.network).c_str(), arrivals.fairness());
        return 0;
    };
    std::vector<Part> parts{{take}};
    for (std::size_t sender = 1; sender < ends.size(); ++sender)
        parts.push_back({[&, sender] { return send_for_ever(*ends[sender], 0, bulk_message_bytes, patience); }});
    return run_parts(parts);
}

/// How fast one core encrypts packets of the network's size, or decrypts them if that is slower. Each end does one of
/// the two.
int cipher_alone(const Task& task) {
    namespace crypto = device::udp::crypto;
    const std::vector<std::byte> plain(task.network == "veth" ? 1'400 : 65'000);
    std::vector<std::byte> sealed(plain.size() + crypto::tag_bytes), opened(sealed.size());
    const auto cipher = crypto::has_fast_aes() ? crypto::Cipher::aes_256_gcm : crypto::Cipher::chacha20_poly1305;
    crypto::Aead closes, opens;
    if (!closes.set(cipher, {}, crypto::Aead::Use::closes) || !opens.set(cipher, {}, crypto::Aead::Use::opens))
        return fail(error("OpenSSL lacks the cipher"));
    std::uint64_t bytes = 0;
    const auto seal = [&](Instant deadline) {
        for (; now() < deadline; bytes += plain.size()) closes.close({}, {}, {}, plain, sealed.data());
    };
    const double sealing = per_second(bytes, seal, window);
    bool are_sound = true;
    const auto open = [&](Instant deadline) {
        for (; now() < deadline; bytes += plain.size()) {
            copy_bytes(opened.data(), sealed);
            are_sound &= opens.open({}, {}, MutableBytes(opened).first(plain.size()));
        }
    };
    const double opening = per_second(bytes, open, window);
    if (!are_sound) return fail(error("OpenSSL cannot open what it has sealed"));
    report(task.row().c_str(), std::min(sealing, opening) * 1e-6);
    return 0;
}

} // namespace

int run_kumi(const Task& task, const Network& network) {
    std::vector<unsigned> sides{0, 1};
    if (task.is("incast") && task.who == "kumi") sides.resize(9, 1); // the limit is the rate of one sender
    device::udp::Options options;
    options.encrypt = task.is_encrypted() && task.who == "kumi"; // the limit is plain
    options.checks_all = task.is_checked() && task.who == "kumi";
    const auto ends = open_ends(network, sides, options);
    if (!ends) return fail(ends.error());
    if (task.is("latency")) return pingpong(task, *ends, spinning);
    if (task.is("sleeping")) return pingpong(task, *ends, sleeping);
    if (task.is("bulk") || task.is("copied") || task.is("loss")) return stream(task, *ends, bulk_message_bytes, 1e6);
    if (task.is("rate")) return stream(task, *ends, small_message_bytes, small_message_bytes * 1e6);
    if (task.is("mix")) return mix(task, *ends);
    if (task.is("incast")) return incast(task, *ends);
    return fail(error("kumi-bench node: no case {}", task.what));
}

int udp_node(std::span<const std::string> words) {
    const auto task = Task::from(words);
    if (!task) return fail(error("kumi-bench node: what, who, network and folder are wanted"));
    if (task->is("ports")) return count_ports(*task);
    if (task->who == "cipher") return cipher_alone(*task);
    const double loss = task->is("loss") ? std::stod(task->what.substr(task->what.find('.') + 1)) : 0;
    const auto network = Network::open(task->network, loss);
    if (!network) return fail(network.error());
    if (task->is("placing")) return run_bare(*task, *network);
    if (task->who == "kumi" ||
        (task->who == "limit" && (task->is("incast") || task->is_encrypted() || task->is_checked())))
        return run_kumi(*task, *network);
    if (task->who == "limit" || task->who == "udp_connected" || task->who.starts_with("tcp"))
        return run_bare(*task, *network);
    return run_foreign(*task, *network);
}

} // namespace kumi::bench
