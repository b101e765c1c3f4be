#pragma once

// What threads leave for the thread that has a lock. A thread that finds the lock taken adds an errand and goes on; it
// does not wait. No errand is forgotten, because of these steps:
//
//     add(errand);                                    // a thread that does not have the lock
//     if (lock.try_lock(seq_cst)) { run take_all(), then unlock as below }
//
//     lock.unlock(seq_cst);                           // each thread that has had the lock
//     while (has_any() && lock.try_lock(seq_cst)) { run take_all(); lock.unlock(seq_cst); }
//
// These four accesses of two variables are sequentially consistent: a thread that adds an errand and finds the lock
// taken is seen by the thread that unlocks it.

#include <atomic>

namespace kumi::base {

struct ErrandLink {
    ErrandLink* next = nullptr;
};

template <class Memory>
class ErrandList {
public:
    /// Any thread. Errands of one thread stay in order.
    void add(ErrandLink& errand) noexcept {
        errand.next = first_.load(std::memory_order_relaxed); // a guess
        // Release: partner of the acquire in take_all(). Seq_cst: of has_any().
        while (!first_.compare_exchange_strong(errand.next, &errand, std::memory_order_seq_cst)) {
        }
    }
    /// After unlock(): see above.
    bool has_any() const noexcept { return first_.load(std::memory_order_seq_cst) != nullptr; }
    /// For a thread that looks again later.
    bool seems_to_have_any() const noexcept { return first_.load(std::memory_order_relaxed) != nullptr; }
    /// For one thread at a time: all errands, the oldest first.
    ErrandLink* take_all() noexcept {
        ErrandLink* oldest = nullptr;
        for (ErrandLink* newest = first_.exchange(nullptr, std::memory_order_acquire); newest != nullptr;) {
            ErrandLink* const older = newest->next;
            newest->next = oldest;
            oldest = newest;
            newest = older;
        }
        return oldest;
    }

private:
    typename Memory::template Atomic<ErrandLink*> first_{nullptr}; // the newest
};

} // namespace kumi::base
