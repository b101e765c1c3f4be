#pragma once

namespace kumi {

/// Whether this is the build of a sanitizer, in which everything takes several times as long.
#if defined(KUMI_ADDRESS_SANITIZER) || defined(KUMI_THREAD_SANITIZER)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

} // namespace kumi
