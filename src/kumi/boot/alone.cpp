#include "kumi/boot/alone.hpp"

#include "kumi/base/system/machine.hpp"

namespace kumi::boot {
namespace {

class AloneSession final : public Session {
public:
    explicit AloneSession(const base::JobKeys& keys) {
        standing_.host = base::host_name();
        standing_.hosts = {standing_.host};
        standing_.cores_on_host = base::cores_allowed();
        standing_.keys = keys;
    }

    const Standing& standing() const noexcept override { return standing_; }
    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override {
        return std::vector<std::vector<std::byte>>{{mine.begin(), mine.end()}};
    }
    Result<base::Descriptor> share_on_host(base::Descriptor) override { return base::Descriptor{}; }
    void report_traffic(std::span<const TrafficEntry>) override {}
    void report_stats(std::span<const StatsEntry>) override {}
    bool report_failure(const Error&) override { return false; }
    void leave() override {}

private:
    Standing standing_;
};

} // namespace

Result<std::unique_ptr<Session>> make_alone_session() {
    auto keys = base::make_job_keys();
    if (!keys) return keys.error();
    return std::unique_ptr<Session>(std::make_unique<AloneSession>(*keys));
}

} // namespace kumi::boot
