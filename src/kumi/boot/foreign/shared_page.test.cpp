#include "kumi/boot/foreign/shared_page.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace kumi::boot {
namespace {

TEST(SharedPage, says_what_was_written_into_it) {
    const auto id = make_page_id(), other = make_page_id();
    ASSERT_TRUE(id && other);
    EXPECT_NE(*id, *other);
    const auto page = make_shared_page(*id);
    ASSERT_TRUE(page) << page.error().text();
    const auto read = read_shared_page(*page);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(*read, *id);
}

TEST(SharedPage, what_is_no_page_or_may_not_be_mapped_is_refused) {
    EXPECT_FALSE(read_shared_page({}));
    EXPECT_FALSE(read_shared_page(base::Descriptor(::open("/dev/null", O_RDWR | O_CLOEXEC))));
    const auto page = make_shared_page({});
    ASSERT_TRUE(page);
    const base::Descriptor for_reading(
        ::open(("/proc/self/fd/" + std::to_string(page->get())).c_str(), O_RDONLY | O_CLOEXEC));
    const auto read = read_shared_page(for_reading);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().text(), "mapping memory of another process of this host: Permission denied");
}

TEST(SharedPage, has_exactly_the_size_of_a_mark) {
    for (const int more : {-1, 0, 1}) {
        const auto page = make_shared_page({});
        ASSERT_TRUE(page);
        ASSERT_EQ(::ftruncate(page->get(), static_cast<off_t>(sizeof(PageId)) + more), 0);
        EXPECT_EQ(read_shared_page(*page).has_value(), more == 0) << more << " bytes more";
    }
}

} // namespace
} // namespace kumi::boot
