#pragma once

// The functions that Kumi calls in libkumi-boot-pmix.so. Plain C, so that the plugin links nothing of Kumi and Kumi
// links nothing of PMIx.

#include <cstddef>
#include <cstdint>

namespace kumi::boot::pmix {

inline constexpr const char* plugin_file = "libkumi-boot-pmix.so";
inline constexpr const char* plugin_symbol = "kumi_boot_pmix_calls";

/// Must change whenever the declarations below change.
inline constexpr std::uint32_t plugin_version = 1;

/// The reason of a failure, to be part of an error message.
struct Why {
    char text[256];
};

struct Client;

/// Each function returns null or false if it failed, and then sets `why`. None takes longer than `milliseconds`.
struct Calls {
    std::uint32_t version;
    Client* (*open)(std::uint32_t milliseconds, std::uint32_t* node, std::uint32_t* nodes, Why* why);
    bool (*put)(Client* client, const char* key, const void* bytes, std::size_t count, Why* why);
    bool (*fence)(Client* client, std::uint32_t milliseconds, Why* why);
    /// Calls `take` with the value before it returns.
    bool (*get)(Client* client, std::uint32_t milliseconds, std::uint32_t node, const char* key, void* context,
                void (*take)(void* context, const void* bytes, std::size_t count), Why* why);
    void (*close)(Client* client, std::uint32_t milliseconds);
};

/// The plugin's only symbol.
using CallsFunction = const Calls* (*)();

} // namespace kumi::boot::pmix
