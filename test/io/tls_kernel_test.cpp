#include "weft/io/tls/detail/tls_kernel.hpp"

#include <gtest/gtest.h>
#include <linux/tls.h>
#include <openssl/ssl3.h>

#include "test/io/drivers.hpp"

namespace {

using weft::detail::descriptor_ref;
using weft::detail::give_keys;
using weft::detail::typed_message;

TEST(tls_kernel, data_needs_no_record_type) {
    const char text[] = "data";
    const typed_message m(SSL3_RT_APPLICATION_DATA, text, 4);
    EXPECT_EQ(m.header.msg_controllen, 0u);
    ASSERT_EQ(m.header.msg_iovlen, 1u);
    EXPECT_EQ(m.header.msg_iov->iov_base, text);
    EXPECT_EQ(m.header.msg_iov->iov_len, 4u);
}

TEST(tls_kernel, other_records_carry_their_type) {
    typed_message m(SSL3_RT_ALERT, "\1\0", 2);
    const ::cmsghdr* const c = CMSG_FIRSTHDR(&m.header);
    ASSERT_NE(c, nullptr);
    EXPECT_EQ(c->cmsg_level, SOL_TLS);
    EXPECT_EQ(c->cmsg_type, TLS_SET_RECORD_TYPE);
    EXPECT_EQ(c->cmsg_len, CMSG_LEN(1));
    EXPECT_EQ(*CMSG_DATA(c), SSL3_RT_ALERT);
    EXPECT_EQ(m.header.msg_iov->iov_len, 2u);
}

TEST(tls_kernel, keys_that_are_refused_change_nothing) {
    auto [near, far] = weft::testing::connected();
    const auto of = descriptor_ref::find(near.native_handle());
    ::tls12_crypto_info_aes_gcm_128 keys{};
    keys.info.version = TLS_1_3_VERSION;
    keys.info.cipher_type = 9999;
    EXPECT_FALSE(give_keys(of, &keys)) << "a cipher of which it does not know how long a key is";
    keys.info.cipher_type = TLS_CIPHER_AES_GCM_128;
    keys.info.version = 1;
    EXPECT_FALSE(give_keys(of, &keys)) << "no version, wherever there is kTLS";
    EXPECT_FALSE(give_keys({}, &keys));
    EXPECT_TRUE(near.write_all(weft::bytes_of("as it is")));
    std::string got(8, 0);
    EXPECT_TRUE(far.read_exact(weft::testing::room(got)));
    EXPECT_EQ(got, "as it is");
    near.close();
    EXPECT_FALSE(give_keys(of, &keys));
}

}  // namespace
