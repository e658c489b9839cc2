#include "weft/io/io_request.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>

#include "weft/io/receive_buffers.hpp"

namespace {

using weft::descriptor;
using weft::descriptor_ref;
using weft::detail::io_request;
using weft::detail::receive_buffers;

// A driver that completes calls is not obliged to keep a buffer to itself when there is nothing to
// put in it: some systems answer the end, or an error, with one.
TEST(io_request, keeps_a_buffer_that_comes_with_its_result_for_bytes_alone) {
    std::error_code error;
    const descriptor owned(
        descriptor_ref::adopt(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), 0, error));
    auto* const lender = new receive_buffers;
    for (const std::int64_t n : {5, 0, -ECONNRESET}) {
        io_request r(io_request::receive, true, owned.ref(), nullptr, 0);
        r.borrows = r.under_way = true;
        ASSERT_TRUE(r.of.entry().enter(r.of.generation())) << "as one that was submitted";
        r.complete_with(*lender, lender->take(), n);
        EXPECT_EQ(r.result, n);
        EXPECT_FALSE(r.under_way);
        EXPECT_EQ(r.data != nullptr, n > 0);
        EXPECT_EQ(lender->out_count(), n > 0 ? 1u : 0u) << n;
        if (n > 0) r.give_back();
    }
    EXPECT_EQ(lender->out_count(), 0u);
    lender->let_go();
}

}  // namespace
