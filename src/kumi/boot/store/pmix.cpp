#include "kumi/boot/store/pmix.hpp"

#include "kumi/boot/pmix/plugin.hpp"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <string>

namespace kumi::boot {
namespace {

constexpr const char* folder_variable = "KUMI_PLUGINS";
/// leave() waits no longer than this, so that it does not delay the end of a program.
constexpr std::chrono::milliseconds goodbye_max{5'000};

class Pmix final : public KeyValues {
public:
    Pmix(const pmix::Calls& calls, std::chrono::milliseconds answer_max) : calls_(calls), answer_max_(answer_max) {}

    Result<void> open() {
        client_ = calls_.open(milliseconds(), &node_, &nodes_, &why_);
        return client_ != nullptr ? Result<void>() : said("joining");
    }

    std::uint32_t node() const noexcept override { return node_; }
    std::uint32_t nodes() const noexcept override { return nodes_; }

    Result<void> put(std::string_view key, Bytes value) override {
        if (calls_.put(client_, name(key).c_str(), value.data(), value.size(), &why_)) return {};
        return said("leaving a value");
    }

    Result<void> fence() override {
        if (calls_.fence(client_, milliseconds(), &why_)) return {};
        return said(fmt::format("meeting all {} processes of this job", nodes_));
    }

    Result<std::vector<std::byte>> get(std::uint32_t node, std::string_view key) override {
        std::vector<std::byte> value;
        const auto take = [](void* context, const void* bytes, std::size_t count) {
            const auto* const first = static_cast<const std::byte*>(bytes);
            static_cast<std::vector<std::byte>*>(context)->assign(first, first + count);
        };
        if (calls_.get(client_, milliseconds(), node, name(key).c_str(), &value, take, &why_)) return value;
        return said(fmt::format("asking for what process {} left", node));
    }

    void leave() override {
        calls_.close(client_, static_cast<std::uint32_t>(std::min(answer_max_, goodbye_max).count()));
    }

private:
    static std::string name(std::string_view key) { return fmt::format("kumi.{}", key); }
    std::uint32_t milliseconds() const { return static_cast<std::uint32_t>(answer_max_.count()); }
    Error said(std::string_view tried) const {
        const char* const job = std::getenv("PMIX_NAMESPACE");
        return error("{} through PMIx, which this process was started with (PMIX_NAMESPACE={}), failed: {}; is the "
                     "launcher still there, and do all its processes call kumi::Job::join(), once?",
                     tried, job == nullptr ? "" : job, why_.text);
    }

    const pmix::Calls& calls_;
    std::chrono::milliseconds answer_max_;
    pmix::Client* client_ = nullptr; // owned by the plugin
    std::uint32_t node_ = 0;
    std::uint32_t nodes_ = 1;
    pmix::Why why_{};
};

/// Loads the plugin from the folder in KUMI_PLUGINS, if it is set. Otherwise by the run path of the library or program
/// that this code is in, which has the folder of the build or of the installed Kumi; otherwise from the install folder
/// of this build. Never from a place relative to the program, where others may be able to put files.
Result<void*> find_plugin() {
    const char* const chosen = std::getenv(folder_variable);
    std::vector<std::string> files{pmix::plugin_file, fmt::format("{}/{}", KUMI_PLUGINS_DIR, pmix::plugin_file)};
    if (chosen != nullptr) files = {fmt::format("{}/{}", chosen, pmix::plugin_file)};
    for (const std::string& file : files) {
        if (void* const plugin = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return plugin;
        const std::string reason = ::dlerror(); // starts with the missing file: the plugin, or a library that it needs
        if (!reason.starts_with(file))
            return error("loading {}, which speaks PMIx: {}; install libpmix2", file, reason);
    }
    return error("the launcher of this process speaks PMIx, and {}, which Kumi needs for that, is not in {}: install "
                 "libpmix-dev, then build and install Kumi again, or set {} to its folder; kumi run needs no plugin",
                 pmix::plugin_file, chosen != nullptr ? chosen : KUMI_PLUGINS_DIR, folder_variable);
}

Result<const pmix::Calls*> load_plugin() {
    const auto plugin = find_plugin();
    if (!plugin) return plugin.error();
    const auto calls = reinterpret_cast<pmix::CallsFunction>(::dlsym(*plugin, pmix::plugin_symbol));
    if (calls == nullptr || calls()->version != pmix::plugin_version)
        return error("{} is of another version of Kumi than this program: build and install both from one version",
                     pmix::plugin_file);
    return calls();
}

} // namespace

Result<std::unique_ptr<KeyValues>> open_pmix(std::chrono::milliseconds answer_max) {
    auto calls = load_plugin();
    if (!calls) return calls.error();
    auto store = std::make_unique<Pmix>(**calls, answer_max);
    if (auto opened = store->open(); !opened) return opened.error();
    return std::unique_ptr<KeyValues>(std::move(store));
}

} // namespace kumi::boot
