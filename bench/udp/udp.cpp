#include "udp/udp.hpp"

#include "harness/stage.hpp"
#include "harness/words.hpp"
#include "udp/task.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

namespace kumi::bench {
namespace {

constexpr std::chrono::seconds entry_seconds_max{15};
constexpr const char* peers_to_name[] = {"tcp", "iperf3", "openmpi", "enet", "zeromq"};

/// A kind of row, its contestants and its networks.
struct Kind {
    RowKind row; // its id without "udp." and the network
    Words who;
    Words networks = {"loopback", "veth"};
};

std::vector<Kind> kinds() {
    std::vector<Kind> all{
        {{"latency.64", "ns", true,
          "64 bytes, one way, half a ping-pong, spinning; limit: bare UDP sockets, one for all peers"},
         {"kumi", "limit", "udp_connected", "tcp", "openmpi"}},
        {{"sleeping.64", "ns", true, "the same with waiters that sleep; limit: bare UDP sockets that block"},
         {"kumi", "limit", "udp_connected", "tcp"}},
        {{"bulk", "MB/s", false,
          "one stream, 128 KiB at a time, where it lies; limit: bare GSO datagrams with room for headers, 2 MiB of "
          "them under way, into a GRO receiver"},
         {"kumi", "limit", "tcp", "iperf3", "openmpi"}},
        {{"copied", "MB/s", false, "the same, copied from the sender's own memory"}, {"kumi"}},
        {{"bulk.cpu", "us/MB", true, "processor time of both ends for each MB of bulk, with waiters that sleep"},
         {"kumi", "tcp"}},
        {{"placing", "us", true,
          "processor time of a bare receiver for each MB: pieces copied out of what recv(2) filled, as Kumi does; "
          "limit: left there; scattered: put in place by recvmsg(2), with an iovec for each"},
         {"kumi", "limit", "scattered"}},
        {{"rate.32", "M/s", false, "32-byte messages, one way, as many as will go"},
         {"kumi", "tcp_nodelay", "tcp_nagle", "enet", "zeromq"}},
        {{"rate.32.cpu", "ns", true,
          "processor time of both ends for each message of rate.32, with waiters that sleep"},
         {"kumi", "tcp_nodelay", "tcp_nagle"}},
        {{"mix", "k/s", false, "requests answered, one at a time, sizes of both from the paper's mix, spinning"},
         {"kumi", "tcp"}},
        {{"incast.8", "MB/s", false, "128 KiB messages, 8 senders to 1 receiver, together; limit: one sender"},
         {"kumi", "limit"}},
        {{"fairness.8", "ratio", false, "of these, what the slowest sender got through, over the fastest"},
         {}}}; // by incast.8
    const std::tuple<const char*, const char*, bool> encrypted[] = {
        {"latency.64", "ns", true}, {"bulk", "MB/s", false}, {"rate.32", "M/s", false}};
    for (const auto& [what, unit, is_less_better] : encrypted)
        all.push_back({{fmt::format("encrypted.{}", what), unit, is_less_better,
                        fmt::format("{} encrypted; limit: the same in clear", what)},
                       {"kumi", "limit"}});
    const auto bulk = std::ranges::find(all, "encrypted.bulk", [](const Kind& kind) { return kind.row.id; });
    bulk->row.what += "; cipher: what one core encrypts or decrypts, without sending it";
    bulk->who.push_back("cipher");
    all.push_back({{"checked.bulk", "MB/s", false, "bulk with a checksum over all of it; limit: over headers only"},
                   {"kumi", "limit"}});
    for (const char* percent : {"0.1", "1", "5"})
        all.push_back({{fmt::format("loss.{}", percent), "MB/s", false,
                        fmt::format("bulk while {} % of the packets are lost, both ways", percent)},
                       {"kumi", "tcp_cubic", "tcp_bbr"},
                       {"veth"}});
    return all;
}

/// A row, which is one kind on one network, and its contestants.
struct Case {
    RowKind row;
    std::vector<Task> tasks;
};

std::vector<Case> all_cases(const std::string& peers_folder) {
    std::vector<Case> cases;
    for (const Kind& kind : kinds())
        for (const std::string& network : kind.networks) {
            Case one{kind.row, {}};
            one.row.id = Task{kind.row.id, "", network, ""}.row();
            for (const std::string& who : kind.who) one.tasks.push_back({kind.row.id, who, network, peers_folder});
            cases.push_back(std::move(one));
        }
    cases.push_back({{"udp.ports.60", "ports", true, "UDP sockets that a job of 60 nodes has open"},
                     {{"ports.60", "kumi", "loopback", peers_folder}}});
    return cases;
}

/// The cases whose rows were asked for.
std::vector<Case> chosen_cases(const BenchOptions& options) {
    std::vector<Case> cases = all_cases(options.peers_folder);
    std::erase_if(cases, [&](const Case& one) { return !is_asked_for(options, one.row.id); });
    return cases;
}

/// The columns: "tcp" stands for TCP in all its variants.
Words columns(const Words& peers) {
    Words names{"cipher", "scattered"};
    const auto add = [&](const std::string& name) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    for (const std::string& peer : peers) {
        add(peer);
        if (peer != "tcp") continue;
        for (const char* variant : {"iperf3", "udp_connected", "tcp_nodelay", "tcp_nagle", "tcp_cubic", "tcp_bbr"})
            add(variant);
    }
    return names;
}

class UdpBench {
public:
    explicit UdpBench(const BenchOptions& options)
        : options_(options), cases_(chosen_cases(options)), columns_(columns(options.peers)),
          table_(rows_of(cases_), columns_), stage_(table_, options.on_progress) {}

    Table run() {
        for (int round = 0; round < options_.rounds; ++round) {
            stage_.begin_round(round + 1, options_.rounds);
            for (std::size_t i = 0; i < cases_.size(); ++i) {
                stage_.begin_case(i, cases_.size());
                for (const Task& task : cases_[i].tasks)
                    if (chosen(task.who) && !(task.is("ports") && round > 0))
                        measure(entry(task)); // a count does not vary, so one round is enough
            }
        }
        return std::move(table_);
    }

private:
    bool chosen(const std::string& who) const {
        return who == "kumi" || who == "limit" || std::find(columns_.begin(), columns_.end(), who) != columns_.end();
    }

    Entry entry(const Task& task) const {
        Entry made{task.who, task.what + " " + task.network, {options_.node_path, "node", "udp"}};
        for (const std::string& word : task.words()) made.words.push_back(word);
        if (task.is("ports")) { // a job as users start it
            made.words.insert(made.words.begin(), {options_.kumi_path, "run", "-n", "60", "--"});
            made.environment = {"KUMI_DEVICE=udp"};
        }
        return made;
    }

    void measure(const Entry& one) {
        const auto heard = stage_.run(one, entry_seconds_max);
        if (!heard) return;
        if (heard->results.empty()) table_.note(fmt::format("{} {}: ended without a result", one.who, one.what));
        for (const auto& [id, value] : heard->results) table_.add(one.who, id, value);
    }

    const BenchOptions& options_;
    std::vector<Case> cases_;
    Words columns_;
    Table table_;
    Stage stage_;
};

} // namespace

Table run_udp_bench(const BenchOptions& options) { return UdpBench(options).run(); }

std::vector<std::string> udp_rows() {
    std::vector<std::string> names;
    for (const Case& one : all_cases("")) names.push_back(one.row.id);
    return names;
}

std::span<const char* const> udp_peers() noexcept { return peers_to_name; }

} // namespace kumi::bench
