#pragma once

// Functions that nodes call on each other with C++ values: Handlers::function(), Job::invoke(), invoke_all(), gather()
// and reduce(); and collectives of such values: Group::objects(). Programs that use them include this header instead of
// kumi/kumi.hpp, which compiles faster.
//
// Values are numbers, strings, classes that are nothing but their memory, and vectors, arrays, lists, deques, maps,
// sets, pairs, tuples, optionals and variants of such. Classes with a `serialize` as cereal has it work too, and so do
// more types of the standard library after #include <cereal/types/...>.

#include "kumi/engine/call/invoke.hpp"
#include "kumi/group/gather.hpp"
#include "kumi/group/objects.hpp"
#include "kumi/kumi.hpp"
