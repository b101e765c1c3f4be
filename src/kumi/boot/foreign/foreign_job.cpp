#include "kumi/boot/foreign/foreign_job.hpp"

#include "kumi/base/log.hpp"
#include "kumi/base/machine.hpp"
#include "kumi/boot/foreign/handover.hpp"
#include "kumi/boot/foreign/shared_page.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/random.h>
#include <sys/stat.h>

namespace kumi::boot {
namespace {

constexpr std::uint32_t card_version = 1;

/// What a node leaves first. Followed by `cores_bytes` of its cores' bitmap, then by its host's name.
struct CardHead {
    std::uint32_t version;
    std::uint32_t cores_bytes;
    HostMark host;
    DoorName door;
    base::JobKeys keys; // node 0's are the job's; the others leave none
};

struct Card {
    CardHead head{};
    std::vector<std::byte> cores;
    std::string host_name;
};

/// What a node says at the leader's door.
struct Knock {
    std::uint64_t token;
    std::uint32_t node;
    std::uint32_t reserved;
};

std::vector<std::byte> encode_card(const Card& card) {
    std::vector<std::byte> bytes;
    for (const Bytes part : {bytes_of(card.head), Bytes(card.cores), bytes_of(std::string_view(card.host_name))})
        bytes.insert(bytes.end(), part.begin(), part.end());
    return bytes;
}

Result<Card> decode_card(Bytes bytes, std::uint32_t node) {
    Card card;
    if (!read_value(bytes, card.head) || card.head.version != card_version ||
        card.head.cores_bytes > bytes.size() - sizeof card.head)
        return error("node {} joins with another version of Kumi: build all programs of a job with the same one", node);
    const Bytes rest = bytes.subspan(sizeof card.head);
    card.cores.assign(rest.begin(), rest.begin() + card.head.cores_bytes);
    card.host_name = text_of(rest.subspan(card.head.cores_bytes));
    return card;
}

class ForeignSession final : public Session {
public:
    ForeignSession(std::unique_ptr<KeyValues> store, std::chrono::milliseconds answer_max)
        : store_(std::move(store)), answer_max_(answer_max) {}

    Result<void> join(const HostMark& host) {
        standing_.node = store_->node();
        standing_.nodes = store_->nodes();
        const auto door = open_door();
        if (!door) return door.error();
        if (auto met = exchange_cards(host, door->name); !met) return met.error();
        if (auto found = find_host(*door); !found) return found.error();
        return {};
    }

    const Standing& standing() const noexcept override { return standing_; }

    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override {
        const std::string key = fmt::format("round{}", round_++);
        if (auto put = store_->put(key, mine); !put) return put.error();
        if (auto met = store_->fence(); !met) return met.error();
        std::vector<std::vector<std::byte>> all;
        for (std::uint32_t node = 0; node < standing_.nodes; ++node) {
            if (node == standing_.node) {
                all.emplace_back(mine.begin(), mine.end());
                continue;
            }
            auto theirs = store_->get(node, key);
            if (!theirs) return theirs.error();
            all.push_back(*std::move(theirs));
        }
        return all;
    }

    Result<base::Descriptor> share_on_host(base::Descriptor mine) override {
        if (standing_.slot != 0) return take_over(to_leader_.get(), now() + answer_max_, name_of(leader_));
        for (const Member& member : members_)
            if (auto given = hand_over(member.socket.get(), mine.get(), name_of(member.node)); !given)
                return given.error();
        return base::Descriptor{};
    }

    void report_traffic(std::span<const TrafficEntry>) override {} // nobody here draws it
    void report_stats(std::span<const StatsEntry>) override {}
    bool report_failure(const Error&) override { return false; } // the program tells; the launcher sees it exit
    void leave() override { store_->leave(); }

private:
    struct Member {
        std::uint32_t node;
        base::Descriptor socket;
    };

    std::string name_of(std::uint32_t node) const { return fmt::format("node {} on {}", node, cards_[node].host_name); }

    Result<void> exchange_cards(const HostMark& host, const DoorName& door) {
        Card mine;
        mine.cores = base::cores_allowed_bitmap();
        mine.host_name = base::host_name();
        mine.head = {card_version, static_cast<std::uint32_t>(mine.cores.size()), host, door, {}};
        if (standing_.node == 0) {
            const auto keys = base::make_job_keys();
            if (!keys) return keys.error();
            mine.head.keys = *keys;
        }
        const auto all = exchange(encode_card(mine));
        if (!all) return all.error();
        for (std::uint32_t node = 0; node < standing_.nodes; ++node) {
            auto card = decode_card((*all)[node], node);
            if (!card) return card.error();
            cards_.push_back(*std::move(card));
        }
        standing_.keys = cards_[0].head.keys;
        standing_.host = cards_[standing_.node].host_name;
        return {};
    }

    /// The lowest node that says it is on this host.
    std::uint32_t likely_leader() const {
        std::uint32_t node = 0;
        while (cards_[node].head.host != cards_[standing_.node].head.host) ++node;
        return node;
    }

    Result<void> find_host(const Door& door) {
        leader_ = likely_leader();
        Result<void> met;
        if (leader_ != standing_.node) {
            const Knock words{standing_.keys.token, standing_.node, 0};
            auto socket = knock(cards_[leader_].head.door, bytes_of(words));
            if (socket) to_leader_ = *std::move(socket);
            else met = socket.error();
        }
        if (auto knocked = store_->fence(); !knocked) return knocked.error();
        if (leader_ == standing_.node) {
            if (auto answered = answer_knocks(door); !answered) return answered.error();
        } else if (!met || !(met = map_leaders_page())) {
            base::log_debug("{} is on another host, though that looks like this one: {}", name_of(leader_),
                            met.error().text());
            leader_ = standing_.node;
        }
        const auto leaders = exchange(bytes_of(leader_));
        if (!leaders) return leaders.error();
        return stand(*leaders);
    }

    /// What the leader's page says: its door's name, which nobody else has.
    Result<void> map_leaders_page() const {
        const auto page = take_over(to_leader_.get(), now() + answer_max_, name_of(leader_));
        if (!page) return page.error();
        const auto mark = read_shared_page(*page);
        if (!mark) return mark.error();
        if (*mark != cards_[leader_].head.door) return error("its memory says something else here");
        return {};
    }

    /// Hands everybody a page of memory, to see whether they can map it.
    Result<void> answer_knocks(const Door& door) {
        const auto page = make_shared_page(door.name);
        if (!page) return page.error();
        while (auto visitor = next_visitor(door)) {
            Knock words{};
            if (!read_value(visitor->words, words) || words.token != standing_.keys.token ||
                words.node >= standing_.nodes)
                continue;
            const auto known = [&](const Member& member) { return member.node == words.node; };
            if (words.node == standing_.node || std::any_of(members_.begin(), members_.end(), known)) continue;
            if (hand_over(visitor->socket.get(), page->get(), name_of(words.node)))
                members_.push_back({words.node, std::move(visitor->socket)});
        }
        return {};
    }

    /// Works out the standing from what every node says its leader is.
    Result<void> stand(const std::vector<std::vector<std::byte>>& leaders) {
        standing_.nodes_on_host = 0;
        std::vector<std::byte> cores;
        for (std::uint32_t node = 0; node < standing_.nodes; ++node) {
            std::uint32_t leader = 0;
            if (!read_value(leaders[node], leader) || leader > node)
                return error("node {} does not say which host it is on", node);
            if (leader == node) standing_.hosts.push_back(cards_[node].host_name);
            if (leader != leader_) {
                std::erase_if(members_, [&](const Member& member) { return member.node == node; });
                continue;
            }
            if (node == standing_.node) standing_.slot = standing_.nodes_on_host;
            ++standing_.nodes_on_host;
            const std::vector<std::byte>& more = cards_[node].cores;
            cores.resize(std::max(cores.size(), more.size()));
            for (std::size_t i = 0; i < more.size(); ++i) cores[i] |= more[i];
        }
        int count = 0;
        for (const std::byte byte : cores) count += std::popcount(static_cast<unsigned>(byte));
        standing_.cores_on_host = count > 0 ? static_cast<std::uint32_t>(count) : base::cores_allowed();
        return {};
    }

    std::unique_ptr<KeyValues> store_;
    std::chrono::milliseconds answer_max_;
    Standing standing_;
    std::vector<Card> cards_; // by node
    unsigned round_ = 0;      // of exchange
    std::uint32_t leader_ = 0;
    base::Descriptor to_leader_;  // unless this node leads
    std::vector<Member> members_; // if it does: the others of its host
};

} // namespace

Result<HostMark> this_host() {
    HostMark mark;
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    struct stat network {};
    if (file.read(mark.boot_id.data(), static_cast<std::streamsize>(mark.boot_id.size())) &&
        ::stat("/proc/self/ns/net", &network) == 0) {
        mark.network_device = network.st_dev;
        mark.network_inode = network.st_ino;
        return mark;
    }
    if (::getrandom(mark.boot_id.data(), mark.boot_id.size(), 0) != static_cast<ssize_t>(mark.boot_id.size()))
        return system_error(errno, "naming this host (getrandom)");
    return mark;
}

Result<std::unique_ptr<Session>> join_foreign_job(std::unique_ptr<KeyValues> store, const HostMark& host,
                                                  std::chrono::milliseconds answer_max) {
    auto session = std::make_unique<ForeignSession>(std::move(store), answer_max);
    if (auto joined = session->join(host); !joined) return joined.error();
    return std::unique_ptr<Session>(std::move(session));
}

} // namespace kumi::boot
