// Lua with luasocket, as they come: a state for each agent, and its sockets and requests.
#include <lua.hpp>
#include <memory>
#include <string>

#include "test/clients/agents.hpp"
#include "test/clients/stand_in.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::expect_stopped_at_once;
using weft::testing::freed_by;

weft::testing::stand_in& server() {
    static weft::testing::stand_in the_one("http");
    return the_one;
}

// What `code` returned; what it raised, if it did.
std::string result_of(const std::string& code) {
    const std::unique_ptr<lua_State, freed_by<::lua_close>> state(::luaL_newstate());
    ::luaL_openlibs(state.get());
    const std::string all = "socket = require 'socket'; http = require 'socket.http'; " + code;
    if (::luaL_loadstring(state.get(), all.c_str()) == LUA_OK) ::lua_pcall(state.get(), 0, 1, 0);
    const char* const said = ::lua_tostring(state.get(), -1);
    return said != nullptr ? said : "";
}
std::string got(const std::string& url) {
    return result_of("return (http.request('" + url + "'))");
}

class lua : public weft::testing::client_test {
protected:
    void SetUp() override { server().start(); }
};
INSTANTIATE_FOR_ALL(lua);
class lua_in : public lua {};
INSTANTIATE_FOR_FIBERS(lua_in);

TEST_P(lua, is_answered) {
    all(10, [](int i) {
        const std::string text = "hello" + std::to_string(i);
        EXPECT_EQ(got(server().url(1, text)), text);
    });
}

TEST_P(lua, waits_concurrently) {
    all_within(600ms, "20 answers after 300 ms", 20,
               [](int) { EXPECT_EQ(got(server().url(300, "late")), "late"); });
    all_within(500ms, "20 times socket.sleep(0.3)", 20,
               [](int) { EXPECT_EQ(result_of("socket.sleep(0.3); return 'slept'"), "slept"); });
}

TEST_P(lua, connects_to_its_own_listener) {
    all(20, [](int i) {
        const std::string sent = std::to_string(i);
        EXPECT_EQ(result_of(R"(
            local listener = assert(socket.bind('127.0.0.1', 0))
            local host, port = listener:getsockname()
            local client = assert(socket.connect(host, port))
            local server = assert(listener:accept())
            assert(client:send(')" +
                            sent + R"(\n'))
            assert(server:send('re: ' .. assert(server:receive()) .. '\n'))
            local answer = assert(client:receive())
            server:close()
            client:close()
            listener:close()
            return answer)"),
                  "re: " + sent);
    });
}

TEST_P(lua, honours_its_timeouts) {
    all_within(500ms, "20 times a timeout of 300 ms", 20, [](int) {
        EXPECT_EQ(result_of("http.TIMEOUT = 0.3; return select(2, http.request('" + server().url() +
                            "/never'))"),
                  "timeout");
    });
}

TEST_P(lua_in, can_be_stopped) {
    const std::string codes[] = {
        "return tostring(http.request('" + server().url() + "/never'))",
        "local s = assert(socket.bind('127.0.0.1', 0)); return tostring(s:accept())",
        "return tostring(pcall(socket.select, {assert(socket.udp())}, nil, 60) or nil)"};
    for (const std::string& code : codes)
        expect_stopped_at_once(code, [&](bool& inside) {
            inside = true;
            EXPECT_EQ(result_of(code), "nil");
        });
}

}  // namespace
