#include "kumi/base/descriptor.hpp"

#include <unistd.h>

namespace kumi::base {

void Descriptor::reset(int number) noexcept {
    if (number_ >= 0) ::close(number_);
    number_ = number;
}

} // namespace kumi::base
