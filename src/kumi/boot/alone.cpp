#include "kumi/boot/alone.hpp"

#include "kumi/base/machine.hpp"

namespace kumi::boot {
namespace {

class AloneSession final : public Session {
public:
    AloneSession() {
        standing_.host = base::host_name();
        standing_.cores_on_host = base::cores_allowed();
    }

    const Standing& standing() const noexcept override { return standing_; }
    Result<std::vector<std::vector<std::byte>>> exchange(Bytes mine) override {
        return std::vector<std::vector<std::byte>>{{mine.begin(), mine.end()}};
    }
    Result<base::Descriptor> share_on_host(base::Descriptor) override { return base::Descriptor{}; }
    void report_traffic(std::span<const TrafficEntry>) override {}
    bool report_failure(const Error&) override { return false; }
    void leave() override {}

private:
    Standing standing_;
};

} // namespace

std::unique_ptr<Session> make_alone_session() { return std::make_unique<AloneSession>(); }

} // namespace kumi::boot
