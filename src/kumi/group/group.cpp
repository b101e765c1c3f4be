#include "kumi/group/group.hpp"

#include "kumi/group/mail/mailbox.hpp"

namespace kumi::group {

Node Group::rank() const noexcept { return seat_->rank; }

Node Group::size() const noexcept { return seat_->size(); }

const Set& Group::set() const noexcept { return seat_->set; }

} // namespace kumi::group
