#include "kumi/device/composite/opening/measure.hpp"

#include "kumi/device/composite/opening/gauge.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <thread>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

/// After so long the nodes tell each other how far they are.
constexpr Duration round_time = 50ms;
constexpr Node nobody = 0xffffffff;
constexpr double not_yet = -1;

/// Opens every message of the node that measures. A burst is many messages; the last has nothing left, and is answered
/// by the burst's number. Burst 0 is only a goodbye: when its answer has come, nothing is under way any more.
struct Piece {
    std::uint64_t burst;
    std::uint64_t left_bytes; // of it, after this message
};

constexpr std::size_t piece_bytes = Gauge::bytes_min;

/// Its number on a channel.
Node number_of(const Part& part, Node node) {
    return static_cast<Node>(std::find(part.members.begin(), part.members.end(), node) - part.members.begin());
}

/// The node that measures a channel, and the one that answers.
struct Pair {
    Node first = nobody;
    Node second = nobody;
};

/// The end that sends bursts.
class Measurer {
public:
    Measurer(pm::Channel& channel, Node to) : channel_(channel), to_(to) {}

    bool is_done() const noexcept { return is_done_; }
    double bytes_per_second() const noexcept { return gauge_.bytes_per_second(); }

    void turn() {
        if (left_ == 0 && !is_waiting_) start_burst();
        while (left_ > 0) {
            const std::size_t bytes = std::min(left_, piece_bytes);
            const Piece piece{burst_, left_ - bytes};
            std::memcpy(message_.data(), &piece, sizeof piece);
            if (!channel_.try_send(to_, Bytes(message_).first(bytes))) break;
            left_ -= bytes;
        }
        channel_.poll([&](pm::Message& message) { on_answer(message.bytes()); }, pm::all_messages);
    }

private:
    void start_burst() {
        burst_ = gauge_.is_done() ? 0 : burst_ + 1;
        left_ = gauge_.is_done() ? sizeof(Piece) : gauge_.bytes();
        started_ = now();
        is_waiting_ = true;
    }
    void on_answer(Bytes bytes) {
        std::uint64_t burst = 0;
        if (!read_value(bytes, burst) || burst != burst_ || left_ > 0 || !is_waiting_) return;
        is_waiting_ = false;
        if (burst == 0) is_done_ = true;
        else gauge_.on_burst(now() - started_);
    }

    pm::Channel& channel_;
    Node to_;
    Gauge gauge_;
    std::array<std::byte, piece_bytes> message_{};
    std::uint64_t burst_ = 0;
    std::size_t left_ = 0; // of the burst
    Instant started_{};
    bool is_waiting_ = false; // for its answer
    bool is_done_ = false;
};

/// The end that answers.
class Answerer {
public:
    Answerer(pm::Channel& channel, Node to) : channel_(channel), to_(to) {}

    bool is_done() const noexcept { return is_done_; }

    void turn() {
        channel_.poll(
            [&](pm::Message& message) {
                Piece piece{};
                if (read_value(message.bytes(), piece) && piece.left_bytes == 0) owed_ = piece.burst;
            },
            pm::all_messages);
        if (!owed_ || !channel_.try_send(to_, bytes_of(*owed_))) return;
        is_done_ = *owed_ == 0;
        owed_.reset();
        channel_.flush();
    }

private:
    pm::Channel& channel_;
    Node to_;
    std::optional<std::uint64_t> owed_; // the burst to be answered
    bool is_done_ = false;
};

/// One node's part in it.
class Measurement {
public:
    Measurement(const std::vector<Probed>& channels, const std::vector<Pair>& pairs, Node self)
        : rates_(channels.size(), 0) {
        for (std::size_t i = 0; i < channels.size(); ++i) {
            const bool is_first = pairs[i].first == self;
            if (channels[i].part == nullptr || (!is_first && pairs[i].second != self)) continue;
            const Part& part = *channels[i].part;
            if (is_first)
                measurers_.emplace_back(i, Measurer(*part.channel, number_of(part, pairs[i].second))),
                    rates_[i] = not_yet;
            else answerers_.emplace_back(*part.channel, number_of(part, pairs[i].first));
        }
    }

    const std::vector<double>& rates() const noexcept { return rates_; }

    /// Goes on until the deadline, or until all is done here. A node that answers may leave early the first time only:
    /// after that another node still misses an answer.
    void go_on(Instant deadline, bool is_first_time) {
        do {
            if (next_ < measurers_.size()) measure_next();
            for (Answerer& answerer : answerers_) answerer.turn();
            std::this_thread::yield();
        } while (now() < deadline && (next_ < measurers_.size() || !may_leave(is_first_time)));
    }

private:
    bool may_leave(bool is_first_time) const {
        return std::all_of(answerers_.begin(), answerers_.end(),
                           [&](const Answerer& one) { return is_first_time && one.is_done(); });
    }
    void measure_next() { // one at a time: they share this host
        auto& [channel, measurer] = measurers_[next_];
        measurer.turn();
        if (!measurer.is_done()) return;
        rates_[channel] = measurer.bytes_per_second();
        ++next_;
    }

    std::vector<double> rates_; // as far as this node knows
    std::vector<std::pair<std::size_t, Measurer>> measurers_;
    std::size_t next_ = 0; // of the measurers
    std::vector<Answerer> answerers_;
};

/// The nodes with which this node would measure each channel: the lowest above it that works there, and that no way
/// before it reaches whose place is certain.
std::vector<Node> propose(const std::vector<Probed>& channels, const std::vector<bool>& wanted, Node self, Node nodes) {
    std::vector<Node> partners(channels.size(), nobody);
    base::Bitmap is_settled(nodes);
    for (std::size_t i = 0; i < channels.size(); ++i)
        for (Node node = self + 1; node < nodes; ++node) {
            if (channels[i].part == nullptr || !channels[i].works.test(node) || is_settled.test(node)) continue;
            if (!wanted[i]) is_settled.set(node);
            else partners[i] = std::min(partners[i], node);
        }
    return partners;
}

/// One entry for each channel, of every node.
template <class Entry>
Result<std::vector<std::vector<Entry>>> exchange_all(const std::vector<Entry>& mine, pm::Meeting& meeting) {
    const auto told = meeting.exchange(std::as_bytes(std::span(mine)));
    if (!told) return told.error();
    std::vector<std::vector<Entry>> all(told->size(), std::vector<Entry>(mine.size()));
    for (std::size_t node = 0; node < all.size(); ++node) {
        if ((*told)[node].size() != mine.size() * sizeof(Entry))
            return error("node {} measures other networks: are all nodes of one version?", node);
        std::memcpy(all[node].data(), (*told)[node].data(), (*told)[node].size());
    }
    return all;
}

Result<std::vector<Pair>> agree_on_pairs(const std::vector<Node>& partners, Node nodes, pm::Meeting& meeting) {
    const auto proposed = exchange_all(partners, meeting);
    if (!proposed) return proposed.error();
    std::vector<Pair> pairs(partners.size());
    for (std::size_t i = 0; i < pairs.size(); ++i)
        for (Node node = nodes; node-- > 0;)
            if ((*proposed)[node][i] < nodes) pairs[i] = {node, (*proposed)[node][i]}; // the lowest stays
    return pairs;
}

void give_up(Probed& channel, const Pair& pair, Node self) {
    if (self != pair.first && self != pair.second) return;
    const Node other = self == pair.first ? pair.second : pair.first;
    channel.works.clear(other);
    channel.part->channel->give_up(number_of(*channel.part, other));
}

} // namespace

Result<std::vector<double>> measure(std::vector<Probed>& channels, const std::vector<bool>& wanted, Node self,
                                    Node nodes, pm::Meeting& meeting, Duration patience) {
    const auto pairs = agree_on_pairs(propose(channels, wanted, self, nodes), nodes, meeting);
    if (!pairs) return pairs.error();
    Measurement measurement(channels, *pairs, self);
    std::vector<double> rates(channels.size());
    // As in probe(): all count the same rounds and see the same reports.
    const auto rounds = std::max<std::int64_t>(1, patience / round_time);
    for (std::int64_t round = 0; round < rounds; ++round) {
        measurement.go_on(now() + round_time, round == 0);
        const auto reports = exchange_all(measurement.rates(), meeting);
        if (!reports) return reports.error();
        for (std::size_t i = 0; i < rates.size(); ++i)
            if ((*pairs)[i].first != nobody) rates[i] = (*reports)[(*pairs)[i].first][i];
        if (std::find(rates.begin(), rates.end(), not_yet) == rates.end()) break;
    }
    for (std::size_t i = 0; i < rates.size(); ++i)
        if (rates[i] == not_yet) {
            rates[i] = 0;
            give_up(channels[i], (*pairs)[i], self);
        }
    return rates;
}

} // namespace kumi::device::composite
