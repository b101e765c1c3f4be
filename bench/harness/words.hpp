#pragma once

// The words of command lines.

#include <string>
#include <vector>

namespace kumi::bench {

using Words = std::vector<std::string>;

inline void append(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

} // namespace kumi::bench
