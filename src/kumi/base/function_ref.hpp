#pragma once

// A reference to a callable, for parameters.

#include <memory>
#include <type_traits>
#include <utility>

namespace kumi::base {

template <class Signature>
class FunctionRef;

/// A parameter type for callables: two words, without allocation and ownership. Requires that the callable outlives the
/// call that it is passed to.
template <class Answer, class... Arguments>
class FunctionRef<Answer(Arguments...)> {
public:
    template <class Callable>
        requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef> &&
                 !std::is_function_v<std::remove_reference_t<Callable>> &&
                 std::is_invocable_r_v<Answer, Callable&, Arguments...>)
    FunctionRef(Callable&& callable) noexcept
        : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
          call_([](void* object, Arguments... arguments) -> Answer {
              return (*static_cast<std::remove_reference_t<Callable>*>(object))(std::forward<Arguments>(arguments)...);
          }) {}

    /// A plain function needs no object.
    FunctionRef(Answer (*function)(Arguments...)) noexcept
        : object_(reinterpret_cast<void*>(function)), call_([](void* object, Arguments... arguments) -> Answer {
              return reinterpret_cast<Answer (*)(Arguments...)>(object)(std::forward<Arguments>(arguments)...);
          }) {}

    Answer operator()(Arguments... arguments) const { return call_(object_, std::forward<Arguments>(arguments)...); }

private:
    void* object_;
    Answer (*call_)(void*, Arguments...);
};

} // namespace kumi::base
