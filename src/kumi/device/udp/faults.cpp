#include "kumi/device/udp/faults.hpp"

#include "kumi/base/text/number_text.hpp"

#include <algorithm>
#include <utility>

namespace kumi::device::udp {
namespace {

constexpr unsigned overtakers_max = 8;

Error wrong(std::string_view part) {
    return error("KUMI_FAULT: {}: write udp.loss=0.01 (also duplicate, reorder, corrupt, truncate; from 0 to 1), "
                 "udp.largest=1472, udp.burst=vanish or udp.seed=7, separated by commas",
                 part);
}

Result<void> read_part(std::string_view part, Faults& faults) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return wrong(part);
    const std::string_view name = part.substr(4, equals - 4);
    const std::string_view value = part.substr(equals + 1);
    if (name == "burst" && value == "vanish") {
        faults.burst_vanish = true;
        return {};
    }
    const auto read = [&](auto& number) {
        const auto found = base::number_in<std::decay_t<decltype(number)>>(value);
        if (found) number = *found;
        return found.has_value();
    };
    if (name == "seed") return read(faults.seed) ? Result<void>{} : wrong(part);
    if (name == "largest") return read(faults.largest) ? Result<void>{} : wrong(part);
    const std::pair<std::string_view, double*> chances[] = {{"loss", &faults.loss},
                                                            {"duplicate", &faults.duplicate},
                                                            {"reorder", &faults.reorder},
                                                            {"corrupt", &faults.corrupt},
                                                            {"truncate", &faults.truncate}};
    for (const auto& [known, chance] : chances)
        if (name == known && read(*chance) && *chance >= 0 && *chance <= 1) return {};
    return wrong(part);
}

} // namespace

Result<Faults> parse_faults(std::string_view text) {
    Faults faults;
    while (!text.empty()) {
        const std::string_view part = text.substr(0, text.find(','));
        text.remove_prefix(std::min(part.size() + 1, text.size()));
        if (!part.starts_with("udp.")) {
            if (part.substr(0, part.find('=')).find('.') == std::string_view::npos) return wrong(part);
            continue;
        }
        if (auto read = read_part(part, faults); !read) return read.error();
    }
    return faults;
}

void FaultyWire::pass(pm::Node to, Bytes packet, Send send) {
    for (std::size_t i = 0; i < held_.size();) {
        if (held_[i].to != to || --held_[i].overtakers != 0) {
            ++i;
            continue;
        }
        const Held due = std::move(held_[i]);
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
        send(due.to, due.packet);
    }
    if (happens(faults_.loss) || (faults_.largest != 0 && packet.size() > faults_.largest)) return;
    if (happens(faults_.reorder)) {
        held_.push_back({to, {packet.begin(), packet.end()}, 1 + static_cast<unsigned>(random_() % overtakers_max)});
        return;
    }
    if (happens(faults_.truncate)) return send(to, packet.first(random_() % packet.size()));
    if (happens(faults_.corrupt)) {
        std::vector<std::byte> changed(packet.begin(), packet.end());
        changed[random_() % changed.size()] ^= static_cast<std::byte>(1u << random_() % 8);
        return send(to, changed);
    }
    send(to, packet);
    if (happens(faults_.duplicate)) send(to, packet);
}

void FaultyWire::flush(Send send) {
    for (const Held& held : std::exchange(held_, {})) send(held.to, held.packet);
}

} // namespace kumi::device::udp
