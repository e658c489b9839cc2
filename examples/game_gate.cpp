// game_gate: a game server with a frame loop of its own, and a fiber for each player.
//
// Shows: weft inside a foreign loop, with time by tick(); a request and its reply by sequence
// number, completed by the database's thread; an SDK of callbacks as straight-line code; packets
// given to a player by the player's id; a logout, which unwinds a player in any wait; and a player
// that does not log in in time.
//
//   build/release/examples/game_gate
#include <cstdio>
#include <deque>
#include <string>
#include <thread>
#include <utility>

#include "weft/manager/task_manager.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sync/unbounded_channel.hpp"
#include "weft/wait/from_callback.hpp"

using namespace std::chrono_literals;

// -- what is not weft's: an SDK with callbacks, which the frame loop pumps ----------------------

using sdk_callback = void (*)(void* user, const char* place);
static std::deque<std::pair<sdk_callback, void*>> sdk_calls;

static void sdk_locate_async(sdk_callback f, void* user) { sdk_calls.emplace_back(f, user); }
static void sdk_pump() {
    for (; !sdk_calls.empty(); sdk_calls.pop_front())
        sdk_calls.front().first(sdk_calls.front().second, "Lyon");
}

// -- the game -----------------------------------------------------------------------------------

struct load_request {
    std::uint64_t sequence;
    int player;
};
struct load_reply {
    int level;
};
struct packet {
    int steps;
};

struct player {
    int id = 0;
    int level = 0;
    int position = 0;
    std::string place = {};
    int* in_world;

    ~player() { --*in_world; }
};

struct game {
    weft::loop loop;
    weft::task_manager<> players{{.on = loop, .grace = 0s, .max_live_count = 100}};
    weft::unbounded_channel<load_request> database;
    int in_world = 0;
    int playing = 0;
    int walked = 0;

    // Runs in a fiber. A logout ends the fiber in any wait.
    void play(int id) {
        ++in_world;
        player p{.id = id, .in_world = &in_world};
        auto reply = players.expect<load_reply>();
        static_cast<void>(database.send({reply.sequence(), id}));
        const auto loaded = reply.wait(1h);
        if (!loaded) return;
        p.level = loaded->level;
        p.place = *weft::await_callback<std::string>([](auto done) {
            sdk_locate_async(
                [](void* user, const char* place) {
                    weft::completion<std::string>::adopt(user)(place);
                },
                done.release());
        });
        players.set_time_limit(weft::this_managed::id(), weft::never);  // the login is complete
        ++playing;
        std::printf("player %d, level %d, from %s\n", p.id, p.level, p.place.c_str());
        for (;;) walked += weft::this_managed::suspend<packet>().steps;
    }
};

int main() {
    game g;
    std::thread database([&] {
        for (const load_request& r : g.database)
            if (r.player != 3) g.players.complete(r.sequence, load_reply{10 * r.player});
    });
    std::uint64_t session[4] = {};
    for (int i = 1; i <= 3; ++i)
        session[i] =
            g.players
                .spawn([&g, i] { g.play(i); }, {.name = "login", .timeout = i == 3 ? 50ms : 30s})
                .value();

    const auto frame = 5ms;
    int frames = 0;
    bool sent = false;
    for (auto next = weft::steady_now() + frame; g.players.live_count() != 0; next += frame) {
        ++frames;
        sdk_pump();
        g.players.tick(weft::steady_now(), 100);
        g.loop.run_until_idle(weft::after(weft::steady_now(), 2ms));
        if (g.playing == 2 && !std::exchange(sent, true)) g.players.resume(session[1], packet{7});
        if (g.walked != 0 && g.players.stats().timed_out_count != 0)
            for (const int i : {1, 2}) g.players.kill(session[i]);  // logout
        std::this_thread::sleep_until(next);
    }
    g.database.close();
    database.join();

    const auto s = g.players.stats();
    std::printf("%d frames: %d steps, %llu logged out, %llu too slow, %d in the world\n", frames,
                g.walked, static_cast<unsigned long long>(s.killed_count),
                static_cast<unsigned long long>(s.timed_out_count), g.in_world);
    const bool late = g.players.complete(99, load_reply{1});
    const bool right = g.walked == 7 && s.killed_count == 2 && s.timed_out_count == 1;
    return right && g.in_world == 0 && !late ? 0 : 1;
}
