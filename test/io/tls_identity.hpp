// tls_identity: a key and a certificate that it signs itself, for a name and for 127.0.0.1: made by
// the constructor, in two files, which go with the object.
//
//   const weft::testing::tls_identity anna("anna.test");
//   auto c = weft::tls_context::server(anna.certificate(), anna.key());
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace weft::testing {

class tls_identity {
public:
    // Valid for so many seconds from now.
    explicit tls_identity(const std::string& name, long seconds = 3600) {
        std::string folder = ::testing::TempDir() + "weft.tls.XXXXXX";
        EXPECT_NE(::mkdtemp(folder.data()), nullptr);
        folder_ = folder;
        const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> pair(
            ::EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"), ::EVP_PKEY_free);
        const std::unique_ptr<X509, decltype(&::X509_free)> x(::X509_new(), ::X509_free);
        ::X509_set_version(x.get(), X509_VERSION_3);
        ::ASN1_INTEGER_set(::X509_get_serialNumber(x.get()), 1);
        ::X509_gmtime_adj(::X509_getm_notBefore(x.get()), -60);
        ::X509_gmtime_adj(::X509_getm_notAfter(x.get()), seconds);
        ::X509_set_pubkey(x.get(), pair.get());
        X509_NAME* const who = ::X509_get_subject_name(x.get());
        ::X509_NAME_add_entry_by_txt(who, "CN", MBSTRING_ASC,
                                     reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                                     0);
        ::X509_set_issuer_name(x.get(), who);
        X509_EXTENSION* const names = ::X509V3_EXT_conf_nid(
            nullptr, nullptr, NID_subject_alt_name, ("DNS:" + name + ",IP:127.0.0.1").c_str());
        ::X509_add_ext(x.get(), names, -1);
        ::X509_EXTENSION_free(names);
        EXPECT_GT(::X509_sign(x.get(), pair.get(), ::EVP_sha256()), 0);
        std::FILE* f = std::fopen(certificate().c_str(), "we");
        EXPECT_EQ(::PEM_write_X509(f, x.get()), 1);
        std::fclose(f);
        f = std::fopen(key().c_str(), "we");
        EXPECT_EQ(::PEM_write_PrivateKey(f, pair.get(), nullptr, nullptr, 0, nullptr, nullptr), 1);
        std::fclose(f);
    }
    tls_identity(const tls_identity&) = delete;
    ~tls_identity() {
        ::unlink(certificate().c_str());
        ::unlink(key().c_str());
        ::rmdir(folder_.c_str());
    }

    std::string certificate() const { return folder_ + "/certificate"; }
    std::string key() const { return folder_ + "/key"; }

private:
    std::string folder_;
};

}  // namespace weft::testing
