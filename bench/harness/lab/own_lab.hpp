#pragma once

#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace kumi::bench {

/// A lab that only this process uses. It goes down with this object. If this process is killed, another process, which
/// watches over the lab, takes it down.
class OwnLab {
public:
    /// Returns when every host is ready. `kumi_path`: the kumi command.
    static Result<OwnLab> up(const std::string& cluster_file, const std::string& kumi_path);

    OwnLab(OwnLab&& other) noexcept;
    OwnLab& operator=(OwnLab&&) = delete;
    ~OwnLab();

    /// The environment in which `kumi lab` finds this lab.
    std::vector<std::string> environment() const;
    /// The command line that runs `words` on a host of this lab.
    std::vector<std::string> on(const std::string& host, const std::vector<std::string>& words) const;
    /// Runs `kumi lab WORDS`, as in {"link", "a0", "lan", "down"}.
    Result<void> ask(std::vector<std::string> words) const;
    /// A folder that this machine and all hosts see. It is removed with the lab.
    const std::string& folder() const noexcept { return folder_; }
    /// A program that runs commands on hosts of the lab as ssh would; for the launchers of MPIs.
    std::string agent() const { return folder_ + "/agent"; }

private:
    OwnLab(std::string folder, std::string kumi_path) : folder_(std::move(folder)), kumi_path_(std::move(kumi_path)) {}
    Result<void> write_agent() const;
    Result<void> start(const std::string& cluster_file);

    std::string folder_; // empty after a move
    std::string kumi_path_;
    base::Descriptor lifeline_; // when this closes, the lab goes down
    pid_t watcher_ = -1;
};

} // namespace kumi::bench
