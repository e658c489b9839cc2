// libldap, as it comes: its synchronous calls, against slapd.
#include <ldap.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/clients/agents.hpp"
#include "test/clients/loopback_port.hpp"
#include "test/clients/program.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::expect_stopped_at_once;
using weft::testing::freed_by;
using weft::testing::loopback_port;

struct unbound {
    void operator()(LDAP* l) const noexcept { ::ldap_unbind_ext_s(l, nullptr, nullptr); }
};
using session = std::unique_ptr<LDAP, unbound>;
using message = std::unique_ptr<LDAPMessage, freed_by<::ldap_msgfree>>;

constexpr const char* settings = R"(
include /etc/ldap/schema/core.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile @folder@/pid
database mdb
suffix "o=weft"
rootdn "cn=admin,o=weft"
rootpw secret
directory @folder@/data
dbnosync
)";

class slapd_server {
public:
    slapd_server() {
        std::filesystem::create_directory(folder_ / "data");
        folder_.write("slapd.conf", settings, {{"@folder@", folder_.path()}});
    }
    void start() { program_.start(); }
    std::string url() const { return url_of(port_); }
    static std::string url_of(const loopback_port& port) {
        return "ldap://127.0.0.1:" + port.text();
    }

private:
    loopback_port port_;
    weft::testing::folder folder_{"slapd"};
    weft::testing::program program_{
        folder_,
        {.command = {WEFT_SERVER, "-d", "0", "-h", url(), "-f", folder_ / "slapd.conf"}},
        [this] { return port_.is_served(); }};
};

slapd_server& server() {
    static slapd_server the_one;
    return the_one;
}

session session_of(const std::string& url) {
    LDAP* l = nullptr;
    EXPECT_EQ(::ldap_initialize(&l, url.c_str()), LDAP_SUCCESS);
    const int version = LDAP_VERSION3;
    ::ldap_set_option(l, LDAP_OPT_PROTOCOL_VERSION, &version);
    return session(l);
}

int bind(const session& s) {
    std::string secret = "secret";
    ::berval password{secret.size(), secret.data()};
    return ::ldap_sasl_bind_s(s.get(), "cn=admin,o=weft", LDAP_SASL_SIMPLE, &password, nullptr,
                              nullptr, nullptr);
}

// Of one value for each name.
int add(const session& s, const std::string& where,
        std::vector<std::pair<std::string, std::string>> attributes) {
    const std::size_t count = attributes.size();
    std::vector<std::array<char*, 2>> values(count);
    std::vector<LDAPMod> changes(count);
    std::vector<LDAPMod*> all;
    for (std::size_t k = 0; k < count; ++k) {
        values[k] = {attributes[k].second.data(), nullptr};
        changes[k].mod_op = LDAP_MOD_ADD;
        changes[k].mod_type = attributes[k].first.data();
        changes[k].mod_values = values[k].data();
        all.push_back(&changes[k]);
    }
    all.push_back(nullptr);
    return ::ldap_add_ext_s(s.get(), where.c_str(), all.data(), nullptr, nullptr);
}

// How many entries there are, under "o=weft".
int count_of(const session& s, const std::string& filter) {
    LDAPMessage* found = nullptr;
    EXPECT_EQ(::ldap_search_ext_s(s.get(), "o=weft", LDAP_SCOPE_SUBTREE, filter.c_str(), nullptr, 0,
                                  nullptr, nullptr, nullptr, LDAP_NO_LIMIT, &found),
              LDAP_SUCCESS);
    const message own(found);
    return ::ldap_count_entries(s.get(), found);
}

class libldap : public weft::testing::client_test {
protected:
    void SetUp() override {
        server().start();
        const session s = session_of(server().url());
        ASSERT_EQ(bind(s), LDAP_SUCCESS);
        const int how = add(s, "o=weft", {{"objectClass", "organization"}, {"o", "weft"}});
        EXPECT_TRUE(how == LDAP_SUCCESS || how == LDAP_ALREADY_EXISTS);
    }
};
INSTANTIATE_FOR_ALL(libldap);
class libldap_in : public libldap {};
INSTANTIATE_FOR_FIBERS(libldap_in);

TEST_P(libldap, is_answered) {
    all(20, [](int i) {
        const session s = session_of(server().url());
        ASSERT_EQ(bind(s), LDAP_SUCCESS);
        const std::string name = std::to_string(i);
        const std::string where = "cn=" + name + ",o=weft";
        EXPECT_EQ(count_of(s, "(cn=" + name + ")"), 0);
        EXPECT_EQ(add(s, where, {{"objectClass", "device"}, {"cn", name}}), LDAP_SUCCESS);
        EXPECT_EQ(add(s, where, {{"objectClass", "device"}, {"cn", name}}), LDAP_ALREADY_EXISTS);
        EXPECT_EQ(count_of(s, "(cn=" + name + ")"), 1);
        EXPECT_EQ(::ldap_delete_ext_s(s.get(), where.c_str(), nullptr, nullptr), LDAP_SUCCESS);
    });
}

TEST_P(libldap, honours_its_timeouts) {
    loopback_port silent;
    silent.be_silent();
    all_within(500ms, "50 times a timeout of 300 ms", 50, [&](int) {
        const session s = session_of(slapd_server::url_of(silent));
        const ::timeval limit{0, 300'000};
        ::ldap_set_option(s.get(), LDAP_OPT_TIMEOUT, &limit);
        EXPECT_EQ(bind(s), LDAP_TIMEOUT);
    });
}

TEST_P(libldap_in, can_be_stopped) {
    loopback_port silent;
    silent.be_silent();
    expect_stopped_at_once("ldap_sasl_bind_s", [&](bool& inside) {
        const session s = session_of(slapd_server::url_of(silent));
        inside = true;
        EXPECT_NE(bind(s), LDAP_SUCCESS);
    });
}

}  // namespace
