#include "weft/io/tls/detail/tls_kernel.hpp"

#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

namespace weft::detail {
namespace {

::socklen_t size_of(const ::tls_crypto_info& keys) noexcept {
    switch (keys.cipher_type) {
        case TLS_CIPHER_AES_GCM_128:
            return sizeof(::tls12_crypto_info_aes_gcm_128);
        case TLS_CIPHER_AES_GCM_256:
            return sizeof(::tls12_crypto_info_aes_gcm_256);
        case TLS_CIPHER_AES_CCM_128:
            return sizeof(::tls12_crypto_info_aes_ccm_128);
        case TLS_CIPHER_CHACHA20_POLY1305:
            return sizeof(::tls12_crypto_info_chacha20_poly1305);
        default:
            return 0;
    }
}

}  // namespace

bool give_keys(const descriptor_ref& to, const void* keys) noexcept {
    const ::socklen_t bytes = size_of(*static_cast<const ::tls_crypto_info*>(keys));
    if (bytes == 0) return false;
    return to.call([=](int number) noexcept {
        const int r = ::setsockopt(number, IPPROTO_TCP, TCP_ULP, "tls", sizeof "tls");
        return r != 0 ? r : ::setsockopt(number, SOL_TLS, TLS_TX, keys, bytes);
    }) == 0;
}

typed_message::typed_message(unsigned char type, const void* data, std::size_t bytes) noexcept
    : contents_{const_cast<void*>(data), bytes} {
    header.msg_iov = &contents_;
    header.msg_iovlen = 1;
    if (type == type_of_data) return;
    header.msg_control = control_;
    header.msg_controllen = sizeof control_;
    ::cmsghdr* const c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_TLS;
    c->cmsg_type = TLS_SET_RECORD_TYPE;
    c->cmsg_len = CMSG_LEN(1);
    *CMSG_DATA(c) = type;
}

}  // namespace weft::detail
