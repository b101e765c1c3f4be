#pragma once

#include "kumi/engine/dispatcher.hpp"

namespace kumi::engine {
using Core = Dispatcher;
}
