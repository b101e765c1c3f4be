#pragma once

// co_await of a Future, and coroutines whose return type is Future<T>: engine/future/coroutine.hpp has the rules. A
// header of its own, because most programs have no coroutines.

#include "kumi/engine/future/coroutine.hpp"
