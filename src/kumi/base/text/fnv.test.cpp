#include "kumi/base/text/fnv.hpp"

#include <gtest/gtest.h>

namespace kumi::base {
namespace {

TEST(Fnv, is_what_its_authors_say) {
    EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
    EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
    EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
}

} // namespace
} // namespace kumi::base
