#pragma once

// Deliveries: content on its way to this node's handlers, once, and after what the same master sent to this node
// before.
//
// A delivery is the content of one multicast, however often that comes. It waits for the multicasts that its lead
// names, and for earlier ones of the same master that wait here. Then it is ready to be run, or to be taken by
// Groups::next(). Later deliveries wait until a handler has ended or a store is done. They do not wait until content is
// taken or a function has answered: it is enough that these are ready. A multicast that will not come is given up:
// nothing waits for it any more, but what comes after it still comes after what was before it.
//
// Pure: no engine, clock or thread. The caller runs handlers, and says when they have ended.

#include "kumi/group/groups.hpp"
#include "kumi/group/multicast/content.hpp"
#include "kumi/group/table/recent_answers.hpp"
#include "kumi/group/table/sequences.hpp"
#include "kumi/group/wire/lead.hpp"
#include "kumi/group/wire/multicast.hpp"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace kumi::group {

struct Delivery {
    Name name{};
    Purpose purpose{};
    Content content;
    std::vector<std::uint64_t> after; // sequences of the same master that it waits for
    std::vector<RelayId> relays;      // that wait for it
    Set members;                      // all of them, where the content waits to be taken
    bool is_ready = false;            // to be run, or to be taken
    bool is_given_up = false;         // the content does not come: only a place in the order
};

class Deliveries {
public:
    explicit Deliveries(Node self) noexcept : self_(self) {}

    /// A multicast whose content has come.
    struct Arrived {
        const Name& name;
        const Purpose& purpose;
        RelayId relay; // that waits for the delivery
        const Set& members;
        const std::vector<Before>& before;
        bool is_lasting;  // the content stays where it is; otherwise it goes with the message
        bool may_run_now; // this is no time at which a handler must not run
    };
    enum class Next {
        waits,   // the relay waits for the delivery
        run_now, // the caller runs the handler on the content where it lies, and then calls release_after()
        is_over, // it was delivered before: there is nothing to wait for
    };
    struct Admission {
        Next next;
        const std::vector<std::byte>* value = nullptr; // is_over: what this node answered
        bool is_missing = false;                       // is_over: this node did not get it, or does not know any more
    };
    /// Takes the content, if it waits and is lasting.
    Admission admit(const Arrived& arrived, Content& content);
    /// Requires that the message names nothing to be delivered before it, and that a handler may run now. True: the
    /// caller runs the handler on the content where it lies, and then calls release_after(). False: the caller calls
    /// admit().
    bool try_run_now(const Name& name, const Purpose& purpose);

    /// False: the master has more under way here than it may.
    bool has_room(Node master) const noexcept;
    bool was_seen(const Name& name) const noexcept;
    /// It was seen and given up.
    bool was_missed(const Name& name) const noexcept;

    /// The next delivery that is to be run, or is given up; the caller calls end(). Null: there is none. It stays where
    /// it is until it ends.
    const Delivery* next_ready();
    bool has_ready() const noexcept { return !ready_.empty(); }
    /// The engine ends: nothing is run any more.
    void drop_ready() noexcept { ready_.clear(); }
    /// The same for what is to be taken.
    const Delivery* next_arrival();
    /// It could not be taken: it is the next again.
    void put_back(const Name& arrival) { arrivals_.push_front(arrival); }

    /// The delivery is over, and what waited for it goes on. Returns the delivery without its content and its members;
    /// it is valid until another delivery is admitted, given up or ended. Null: there is no such delivery.
    const Delivery* end(const Name& name);
    void release_after(const Name& name) { release_after(masters_[name.master], name.sequence); }
    /// Keeps what this node answered, for a node that asks again because the node that got the answer is lost.
    void keep_value(const Name& name, const std::vector<std::byte>& value);
    /// It is not waited for. What comes after it still comes after `before`, if that is not 0. What is here is
    /// delivered in its turn.
    void give_up(const Name& name, std::uint64_t before);

    // ---- masters that are silent

    void note_heard(Node master) { masters_[master].quiet_looks = 0; }
    /// Counts one more look. Returns the masters that are gone and from which nothing has come for some looks.
    template <class IsGone>
    std::vector<Node> look_for_quiet(IsGone&& is_gone) {
        std::vector<Node> quiet;
        for (auto& [master, of] : masters_) {
            if (!is_gone(master) || ++of.quiet_looks < quiet_looks_max) continue;
            quiet.push_back(master);
        }
        return quiet;
    }
    /// Adds the masters of multicasts that are missing here and that deliveries wait for.
    void add_awaited(Set& masters) const;
    /// Sequences that deliveries wait for, and of which nothing has come.
    void add_absent(Node master, std::set<std::uint64_t>& sequences) const;
    /// The last delivery of that master before the sequence; 0: there is none.
    std::uint64_t last_before(const Name& name) const noexcept;

    std::size_t size() const noexcept;

private:
    static constexpr std::size_t values_bytes_max = std::size_t{4} << 20; // of one master
    static constexpr std::size_t of_one_master_max = 2 * Groups::under_way_max;
    static constexpr unsigned quiet_looks_max = 3;

    using Table = std::map<std::uint64_t, Delivery>; // by sequence

    /// What has come from one master.
    struct Master {
        unsigned quiet_looks = 0; // since something came, while it is gone
        // they begin at the latest that is ready: the master has given up what comes of earlier ones
        Sequences sequences;
        Table deliveries;
        RecentAnswers<std::uint64_t> values{Groups::under_way_max, values_bytes_max};
    };

    static bool is_delivered(const Master& master, std::uint64_t sequence) noexcept;
    static std::uint64_t awaited_before(const Master& master, std::uint64_t sequence) noexcept;
    Delivery& add(Master& master, const Name& name);
    void make_ready(Master& master, Delivery& delivery);
    void release_after(Master& master, std::uint64_t sequence);
    const Delivery* pop(std::deque<Name>& names);
    const Master* find(Node master) const noexcept;

    Node self_;
    std::map<Node, Master> masters_;
    std::deque<Name> ready_;    // to be run
    std::deque<Name> arrivals_; // to be taken
    Table::node_type ended_;    // the last delivery that ended; add() uses its memory again
};

} // namespace kumi::group
