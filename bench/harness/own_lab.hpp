#pragma once

#include "kumi/base/descriptor.hpp"
#include "kumi/base/result.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace kumi::bench {

/// A lab of this process's own, which nobody else finds. It goes down with this object; when this process is killed, a
/// process that watches over it takes it down.
class OwnLab {
public:
    /// Returns when every host is ready; `kumi_path` is that of the kumi command.
    static Result<OwnLab> up(const std::string& cluster_file, const std::string& kumi_path);

    OwnLab(OwnLab&& other) noexcept;
    OwnLab& operator=(OwnLab&&) = delete;
    ~OwnLab();

    /// With which `kumi lab` finds it.
    std::vector<std::string> environment() const;
    /// The command line that runs `words` on a host of it.
    std::vector<std::string> on(const std::string& host, const std::vector<std::string>& words) const;
    /// `kumi lab WORDS`, as in {"link", "a0", "lan", "down"}.
    Result<void> ask(std::vector<std::string> words) const;
    /// A folder that this machine and all hosts see; gone with the lab.
    const std::string& folder() const noexcept { return folder_; }
    /// A program that starts commands on hosts, as ssh would, for launchers of others.
    std::string agent() const { return folder_ + "/agent"; }

private:
    OwnLab(std::string folder, std::string kumi_path) : folder_(std::move(folder)), kumi_path_(std::move(kumi_path)) {}
    Result<void> write_agent() const;
    Result<void> start(const std::string& cluster_file);

    std::string folder_; // empty: moved away
    std::string kumi_path_;
    base::Descriptor lifeline_; // when it closes, the lab goes down
    pid_t watcher_ = -1;
};

} // namespace kumi::bench
