#include "kumi/lab/keeper/furnish.hpp"

#include <gtest/gtest.h>

namespace kumi::lab {
namespace {

using Folders = std::vector<std::string>;

TEST(Furnish, what_a_private_folder_would_hide_is_kept_once) {
    EXPECT_EQ(folders_to_keep({"/tmp/a/build", "/home/me", "/tmp/a", "/tmp/a", "/run/user/1", "/tmp/ab"}),
              (Folders{"/run/user/1", "/tmp/a", "/tmp/ab"}));
}

TEST(Furnish, a_private_folder_stays_private) {
    EXPECT_EQ(folders_to_keep({"/tmp", "/run", "/dev/shm", "/", "/tmpfiles/a"}), Folders{});
}

} // namespace
} // namespace kumi::lab
