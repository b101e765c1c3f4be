#pragma once

// Collectives of objects: values of any type that functions take (functions.hpp), one of each member, each of any size.
//
//     auto names = group.objects().allgather(std::string("node"));       // a Result<std::vector<std::string>>
//     auto later = group.start().objects().allgather(my_map);            // a Future of the maps of all
//
// What group.hpp and starting.hpp say holds here too. Objects are written when the call is made, and read when they
// have come: nothing has to stay. A type must have a default value. An object that cannot be written is an error at all
// members that need it; bytes that are no such object are an error (ErrorCode::refused) at the member that reads them.
// Objects are combined in the order of ranks; the parentheses depend on the number of members and the root.

#include "kumi/engine/call/archive.hpp"
#include "kumi/group/collective/objects.hpp"
#include "kumi/group/group.hpp"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace kumi::group {

/// The object of that rank. Errors are without the name of the call.
template <class T>
Result<T> read_object(const Membership& seat, Node rank, Bytes bytes) {
    try {
        T object{};
        engine::read_archive(bytes, object);
        return object;
    } catch (...) { // also what making or moving an object throws
        return not_an_object(seat, rank);
    }
}

template <class T, class Operation>
class FoldingOf final : public Folding {
public:
    FoldingOf(const T& mine, Node rank, const Operation& operation)
        : object_(mine), rank_(rank), operation_(operation) {}

    Result<void> combine(const Membership& seat, Node rank, Bytes other) override {
        auto came = read_object<T>(seat, rank, other);
        if (!came) return came.error();
        object_ = rank < rank_ ? operation_(*came, object_) : operation_(object_, *came);
        return {};
    }
    Result<std::vector<std::byte>> written() const override {
        try {
            return engine::write_archive(object_);
        } catch (...) { // the other members wait, whatever a type of the program's throws
            return cannot_be_sent();
        }
    }

private:
    T object_;
    Node rank_;
    Operation operation_;
};

/// Starts collectives of objects.
class ObjectStarter {
public:
    /// `is_waited_for`: a thread waits for each future, as in a blocking call.
    explicit ObjectStarter(std::shared_ptr<Membership> seat, bool is_waited_for = false) noexcept
        : seat_(std::move(seat)), is_waited_for_(is_waited_for) {}

    /// All members get the root's object. What other members give does not matter.
    template <class T>
    Future<T> broadcast(Node root, const T& object, Instant deadline = never) {
        return one<T>(root, start_broadcast_object(*seat_, root, only_at(root, object), terms(deadline)));
    }
    /// The root gets the objects of all members, by rank; other members get none.
    template <class T>
    Future<std::vector<T>> gather(Node root, const T& mine, Instant deadline = never) {
        return all<T>(start_gather_objects(*seat_, root, given(&mine, 1), terms(deadline)));
    }
    template <class T>
    Future<std::vector<T>> allgather(const T& mine, Instant deadline = never) {
        return all<T>(start_allgather_objects(*seat_, given(&mine, 1), terms(deadline)));
    }
    /// Each member gets its object of the root's, which has one for each rank.
    template <class T>
    Future<T> scatter(Node root, const std::vector<T>& objects, Instant deadline = never) {
        auto mine = rank_of(*seat_) == root ? given(objects.data(), objects.size()) : Given{};
        return one<T>(root, start_scatter_objects(*seat_, root, std::move(mine), terms(deadline)));
    }
    /// Object r goes to rank r. The answer has the object of rank r at index r.
    template <class T>
    Future<std::vector<T>> alltoall(const std::vector<T>& objects, Instant deadline = never) {
        return all<T>(start_alltoall_objects(*seat_, given(objects.data(), objects.size()), terms(deadline)));
    }
    /// The root gets the combination of all objects; other members get a T{}.
    template <class T, OperationOn<T> Operation>
    Future<T> reduce(Node root, const T& mine, const Operation& operation, Instant deadline = never) {
        auto done = start_reduce_objects(*seat_, root, folding(mine, operation), terms(deadline));
        return done.then([seat = seat_, root](Result<std::vector<std::byte>> bytes) -> Result<T> {
            if (!bytes) return bytes.error();
            if (rank_of(*seat) != root) return T{};
            return named(*seat, read_object<T>(*seat, root, *bytes));
        });
    }
    template <class T, OperationOn<T> Operation>
    Future<T> allreduce(const T& mine, const Operation& operation, Instant deadline = never) {
        return one<T>(0, start_allreduce_objects(*seat_, folding(mine, operation), terms(deadline)));
    }

private:
    Terms terms(Instant deadline) const noexcept { return {deadline, is_waited_for_}; }
    template <class T>
    static Given given(const T* objects, std::size_t count) {
        Given given;
        try {
            for (std::size_t i = 0; i < count; ++i) given.objects.push_back(engine::write_archive(objects[i]));
        } catch (...) { // the other members wait, whatever a type of the program's throws
            given.refusal = cannot_be_sent().text();
        }
        return given;
    }
    template <class T>
    Given only_at(Node root, const T& object) const {
        return rank_of(*seat_) == root ? given(&object, 1) : Given{};
    }
    template <class T, class Operation>
    std::unique_ptr<Folding> folding(const T& mine, const Operation& operation) const {
        return std::make_unique<FoldingOf<T, std::decay_t<const Operation&>>>(mine, rank_of(*seat_), operation);
    }
    template <class T>
    static Result<T> named(const Membership& seat, Result<T> object) {
        if (!object) return error_among(seat, object.error());
        return object;
    }
    template <class T>
    Future<T> one(Node root, Future<std::vector<std::byte>> bytes) const {
        return bytes.then([seat = seat_, root](Result<std::vector<std::byte>> came) -> Result<T> {
            if (!came) return came.error();
            return named(*seat, read_object<T>(*seat, root, *came));
        });
    }
    template <class T>
    Future<std::vector<T>> all(Future<Parts> parts) const {
        return parts.then([seat = seat_](Result<Parts> came) -> Result<std::vector<T>> {
            if (!came) return came.error();
            std::vector<T> objects;
            for (Node rank = 0; rank < came->size(); ++rank) {
                auto object = read_object<T>(*seat, rank, (*came)[rank]);
                if (!object) return error_among(*seat, object.error());
                objects.push_back(*std::move(object));
            }
            return objects;
        });
    }

    std::shared_ptr<Membership> seat_;
    bool is_waited_for_;
};

/// Collectives of objects that wait; otherwise as ObjectStarter has them.
class Objects {
public:
    explicit Objects(std::shared_ptr<Membership> seat) noexcept : start_(std::move(seat), true) {}

    /// All members get the root's object.
    template <class T>
    Result<void> broadcast(Node root, T& object, Instant deadline = never) {
        auto came = start_.broadcast(root, object, deadline).get();
        if (!came) return came.error();
        object = *std::move(came);
        return {};
    }
    template <class T>
    Result<std::vector<T>> gather(Node root, const T& mine, Instant deadline = never) {
        return start_.gather(root, mine, deadline).get();
    }
    template <class T>
    Result<std::vector<T>> allgather(const T& mine, Instant deadline = never) {
        return start_.allgather(mine, deadline).get();
    }
    template <class T>
    Result<T> scatter(Node root, const std::vector<T>& objects, Instant deadline = never) {
        return start_.scatter(root, objects, deadline).get();
    }
    template <class T>
    Result<std::vector<T>> alltoall(const std::vector<T>& objects, Instant deadline = never) {
        return start_.alltoall(objects, deadline).get();
    }
    template <class T, OperationOn<T> Operation>
    Result<T> reduce(Node root, const T& mine, const Operation& operation, Instant deadline = never) {
        return start_.reduce(root, mine, operation, deadline).get();
    }
    template <class T, OperationOn<T> Operation>
    Result<T> allreduce(const T& mine, const Operation& operation, Instant deadline = never) {
        return start_.allreduce(mine, operation, deadline).get();
    }

private:
    ObjectStarter start_;
};

inline Objects Group::objects() const noexcept { return Objects(seat_); }
inline ObjectStarter Starter::objects() const noexcept { return ObjectStarter(seat_); }

} // namespace kumi::group
