#include "kumi/group/started/started_calls.hpp"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <string_view>

namespace kumi::group {

// ---- one call

bool Started::go_on(const engine::Turn& turn) {
    if (!call_) {
        using Form = CollectiveCall::Form;
        call_.emplace(turn, *seat_, shape_, deadline_, is_late_ ? Form::late : Form::started);
        try {
            running_.emplace(steps(*call_));
        } catch (...) { // no memory for the steps
            call_->on_thrown(std::current_exception());
        }
    } else if (!call_->go_on(turn)) {
        return false;
    }
    if (running_ && !running_->is_done()) return false;
    if (running_ && running_->thrown()) call_->on_thrown(running_->thrown());
    outcome_ = call_->outcome();
    abandon();
    return true;
}

bool Started::check_time(const engine::Turn& turn, Instant time) {
    if (deadline_ == never || time < deadline_ || is_late_) return false;
    if (call_) return call_->on_late(turn), true;
    is_late_ = true;
    return true;
}

void Started::abandon() noexcept {
    running_.reset();
    call_.reset();
}

// ---- starting

Result<void> StartedCalls::check(const Started& started) const {
    const Membership& seat = started.seat();
    const auto refused = [&](ErrorCode code, std::string_view why) {
        return refusal(seat, started.shape().collective, code, why);
    };
    if (mailbox_.has_ended()) return refused(ErrorCode::ended, job_has_ended);
    if (auto good = check_rank(seat, started.shape().collective, started.shape().root); !good) return good;
    if (started.is_waited_for() && mailbox_.dispatcher().progress().in_handler())
        return refused(ErrorCode::misuse, no_wait_in_handler);
    return {};
}

Result<void> StartedCalls::check_turn(const engine::Turn&, const Started& started) const {
    const Inbox& box = started.seat().box;
    const bool is_taken = box.started.empty() ? box.call != nullptr : box.started.back()->is_waited_for();
    if (is_taken) return refusal(started.seat(), started.shape().collective, ErrorCode::misuse, another_thread);
    return {};
}

/// A thread of the program waits until fewer calls wait; a handler cannot.
Result<void> StartedCalls::wait_for_room(const Started& started) {
    const Inbox& box = started.seat().box;
    engine::Dispatcher& dispatcher = mailbox_.dispatcher();
    const auto has_room = [&](const engine::Turn&) { return box.started.size() < waiting_max; };
    const auto refused = [&](ErrorCode code) {
        return refusal(started.seat(), started.shape().collective, code,
                       fmt::format("{} calls on this set are under way: wait for some of them", waiting_max));
    };
    {
        const auto turn = dispatcher.take_turn();
        if (has_room(turn)) return {};
        if (turn.is_inner() && !turn.is_borrowed()) return refused(ErrorCode::too_large);
    }
    const auto describe = [&] { return refused(ErrorCode::timed_out).text(); };
    if (!dispatcher.loop().serve_until(has_room, started.deadline(), describe)) return refused(ErrorCode::timed_out);
    return {};
}

Result<void> StartedCalls::add(const std::shared_ptr<Started>& started) {
    if (auto good = check(*started); !good) return good;
    if (auto good = wait_for_room(*started); !good) return good;
    engine::Dispatcher& dispatcher = mailbox_.dispatcher();
    const auto turn = dispatcher.take_turn();
    if (auto good = check_turn(turn, *started); !good) return good;
    Inbox& box = started->seat().box;
    finished_.reserve(finished_.size() + 2 * (box.started.size() + 1)); // no memory is taken when they end
    box.started.reserve(box.started.size() + 1);
    if (box.started.empty()) boxes_.push_back(&box);
    box.started.push_back(started);
    if (box.started.size() == 1) go_on(turn, box);
    else note_wants(turn, box);
    if (started->deadline() != never) dispatcher.loop().call(turn); // whoever sleeps is to wake up in time
    else dispatcher.loop().on_duty(turn);                           // the program may only compute from now on
    finish(turn);
    return {};
}

// ---- going on

void StartedCalls::go_on(const engine::Turn& turn, Inbox& box) {
    if (box.started.empty()) return;
    while (!box.started.empty() && box.started.front()->go_on(turn)) {
        std::shared_ptr<Started> over = std::move(box.started.front());
        box.started.erase(box.started.begin());
        const Result<void>& outcome = over->outcome();
        finished_.emplace_back(std::move(over), outcome);
    }
    if (box.started.empty()) std::erase(boxes_, &box);
    note_wants(turn, box);
}

void StartedCalls::go_on_with(const engine::Turn& turn, Node node) {
    for (std::size_t i = boxes_.size(); i-- > 0;) // a box that has no more calls leaves the list
        if (boxes_[i]->needs(node)) go_on(turn, *boxes_[i]);
}

bool StartedCalls::go_on_all(const engine::Turn& turn) {
    const std::size_t before = finished_.size();
    const Instant time = next_deadline(turn) == never ? Instant{} : now();
    for (std::size_t i = boxes_.size(); i-- > 0;) {
        Inbox& box = *boxes_[i];
        for (const auto& started : box.started)
            if (time != Instant{} && started->check_time(turn, time) && started != box.started.front())
                finished_.emplace_back(started, refusal(started->seat(), started->shape().collective,
                                                        ErrorCode::timed_out, late_behind_others));
        go_on(turn, box);
    }
    return finished_.size() != before;
}

Instant StartedCalls::next_deadline(const engine::Turn&) const noexcept {
    Instant next = never;
    for (const Inbox* const box : boxes_)
        for (const auto& started : box->started)
            next = std::min(next, started->due());
    return next;
}

/// The engine calls go_on_all() only while that may do something.
void StartedCalls::note_wants(const engine::Turn& turn, Inbox& box) {
    const bool wants = !box.started.empty() &&
        (box.has_unsent() || box.barrier ||
         std::ranges::any_of(box.started, [](const auto& started) { return started->deadline() != never; }));
    if (const bool is_in_barrier = !box.started.empty() && box.barrier; is_in_barrier != box.wants_barriers) {
        box.wants_barriers = is_in_barrier;
        in_barriers_ += is_in_barrier ? 1 : -1;
        mailbox_.dispatcher().barriers().want_completion(turn, in_barriers_ != 0);
    }
    if (wants == box.wants_progress) return;
    box.wants_progress = wants;
    if (wants) ++wanting_;
    else --wanting_;
    mailbox_.want_progress(turn, wanting_ != 0);
}

void StartedCalls::finish_now(const engine::Turn& turn) {
    is_finishing_ = true;
    while (!finished_.empty()) {
        auto batch = std::exchange(finished_, {});
        for (auto& [started, outcome] : batch) started->complete(outcome);
    }
    is_finishing_ = false;
    mailbox_.dispatcher().loop().wake_waiters(turn);
}

void StartedCalls::end(const engine::Turn& turn) {
    for (Inbox* const box : std::exchange(boxes_, {})) {
        for (auto& started : std::exchange(box->started, {})) {
            started->abandon();
            mailbox_.note_failed(turn);
            finished_.emplace_back(started, refusal(started->seat(), started->shape().collective, ErrorCode::ended,
                                                    job_has_ended));
        }
        note_wants(turn, *box);
    }
    finish(turn);
}

} // namespace kumi::group
