#pragma once

// A callable that is kept.

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace kumi::base {

template <class Signature>
class OwnedFunction;

/// Owns a callable, which need not be copyable, and calls it. A small callable lies in the object itself, without
/// allocation; std::function allocates for all that has a destructor.
template <class Answer, class... Arguments>
class OwnedFunction<Answer(Arguments...)> {
public:
    static constexpr std::size_t inline_bytes = 4 * sizeof(void*);

    OwnedFunction() noexcept = default;
    OwnedFunction(std::nullptr_t) noexcept {}
    template <class Callable>
        requires(!std::is_same_v<std::remove_cvref_t<Callable>, OwnedFunction> &&
                 std::is_invocable_r_v<Answer, std::decay_t<Callable>&, Arguments...>)
    OwnedFunction(Callable&& callable) {
        using Kept = std::decay_t<Callable>;
        if constexpr (fits<Kept>) {
            ::new (place()) Kept(std::forward<Callable>(callable));
            kind_ = &kind_of<Kept, Kept>;
        } else {
            using Pointer = std::unique_ptr<Kept>;
            ::new (place()) Pointer(std::make_unique<Kept>(std::forward<Callable>(callable)));
            kind_ = &kind_of<Kept, Pointer>;
        }
    }
    OwnedFunction(OwnedFunction&& other) noexcept { take(other); }
    OwnedFunction& operator=(OwnedFunction&& other) noexcept {
        if (this == &other) return *this;
        OwnedFunction old(std::move(*this)); // destroyed last: its destructor may use this object
        take(other);
        return *this;
    }
    ~OwnedFunction() { reset(); }

    explicit operator bool() const noexcept { return kind_ != nullptr; }
    /// Requires that there is a callable.
    Answer operator()(Arguments... arguments) { return kind_->call(place(), std::forward<Arguments>(arguments)...); }

private:
    struct Kind {
        Answer (*call)(void*, Arguments&&...);
        void (*move)(void* from, void* to) noexcept; // and destroys what was moved from
        void (*destroy)(void*) noexcept;
    };
    template <class Kept>
    static constexpr bool fits = sizeof(Kept) <= inline_bytes && alignof(Kept) <= alignof(void*) &&
                                 std::is_nothrow_move_constructible_v<Kept>;
    /// `Stored` is the callable itself, or a pointer to it.
    template <class Kept, class Stored>
    static constexpr Kind kind_of{[](void* at, Arguments&&... arguments) -> Answer {
                                      auto& stored = *static_cast<Stored*>(at);
                                      if constexpr (std::is_same_v<Kept, Stored>)
                                          return stored(std::forward<Arguments>(arguments)...);
                                      else return (*stored)(std::forward<Arguments>(arguments)...);
                                  },
                                  [](void* from, void* to) noexcept {
                                      auto& stored = *static_cast<Stored*>(from);
                                      ::new (to) Stored(std::move(stored));
                                      stored.~Stored();
                                  },
                                  [](void* at) noexcept { static_cast<Stored*>(at)->~Stored(); }};

    void* place() noexcept { return memory_; }
    void take(OwnedFunction& other) noexcept {
        kind_ = std::exchange(other.kind_, nullptr);
        if (kind_ != nullptr) kind_->move(other.place(), place());
    }
    void reset() noexcept {
        if (const Kind* const kind = std::exchange(kind_, nullptr)) kind->destroy(place());
    }

    alignas(void*) std::byte memory_[inline_bytes];
    const Kind* kind_ = nullptr;
};

} // namespace kumi::base
