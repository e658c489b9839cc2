// Stand-ins for the user's own code in the examples of the headers' opening comments, for
// tools/header_examples.py. They are declared and never defined: nothing is linked. Those in a
// namespace that is named for a header are for that header alone.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <chrono>
#include <coroutine>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <queue>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "weft/context/context.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/future/future.hpp"
#include "weft/manager/task_manager.hpp"
#include "weft/poll/waker.hpp"
#include "weft/run/run.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"
#include "weft/stack/overflow.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/condition_variable.hpp"
#include "weft/sync/manual_reset_event.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/sync/once.hpp"
#include "weft/sync/oneshot.hpp"
#include "weft/task/eager_task.hpp"
#include "weft/task/task.hpp"
#include "weft/wheel/wheel_node.hpp"

namespace weft::example {

using namespace std::chrono_literals;

// What a fragment returns, whatever that is.
struct anything {
    anything() = default;
    template <class T>
    anything(T&&) {}
};

// Functions that take whatever they are given.
template <class... T>
void use(T&&...) {}
template <class... T>
void log(T&&...) {}
template <class... T>
void serve(T&&...) {}
template <class... T>
void show(T&&...) {}
template <class... T>
void finish(T&&...) {}
template <class... T>
void handle(T&&...) {}

struct reply {
    int value;
};
struct request {};
struct config {
    int port;
};
using url = std::string;
using page = std::string;

inline std::array<std::byte, 512> buffer;

}  // namespace weft::example

// What is not compiled with a header alone, since it needs weft's own headers.
namespace weft::example {

struct job : weft::forward_node<> {
    void run();
};

}  // namespace weft::example

// For one header each.
namespace weft::example {

namespace base_assert {
extern bool is_over;
extern std::uint64_t id;
extern const char* name;
}  // namespace base_assert
namespace base_atomic {
extern unsigned bit;
}
namespace base_block_cache {
extern std::size_t bytes;
}
namespace base_pages {
extern std::size_t bytes;
}
namespace base_errc {
extern weft::channel<int> channel;
}
namespace base_result {
enum class refusal { busy };
}
namespace coroutine_options {
void body();
}
namespace coroutine_shared_stack_group {
void body();
void session();
}  // namespace coroutine_shared_stack_group
namespace stack_stack_pool {
void body();
}
namespace stack_growable_stack {
extern void* sp;
}
namespace stack_high_water {
extern weft::stack s;
}
namespace stack_overflow {
extern weft::describe_overflow describe;
}
namespace stack_stack {
void run_on(weft::stack&);
}
namespace fiber_nursery {
page fetch(const url&);
page render(const page&, const page&);
}  // namespace fiber_nursery
namespace fiber_spawn {
int compute();
}
namespace io_stream_transfer {
extern weft::tcp_stream s;
}
namespace wait_nursery {
page fetch(const url&);
weft::task<page> fetch_task(url);
page render(const page&, const page&);
}  // namespace wait_nursery
namespace future_async {
extern weft::pool pool;
int checksum(const std::string&);
int parse(const std::string&);
extern std::string text;
}  // namespace future_async
namespace future_future {
extern weft::loop loop;
}
namespace future_poll_event {
extern int stock;
}
namespace future_promise {
template <class F>
void sdk_call(F&&) {}
}  // namespace future_promise
namespace future_select_case {
struct order {};
struct ledger {
    void apply(order);
};
extern ledger book;
extern weft::channel<order> orders;
extern weft::future<int> answer;
void show(int);
void give_up();
}  // namespace future_select_case
namespace future_shared_future {
weft::future<config> load();
}
namespace future_when {
struct vote {
    bool yes;
};
extern weft::future<int> f, g;
extern std::vector<weft::future<int>> replicas, others;
extern std::vector<weft::future<vote>> votes;
}  // namespace future_when
namespace io_descriptor {
extern int fd;
extern std::error_code error;
extern struct ::stat about;
}  // namespace io_descriptor
namespace io_given_descriptors {
extern weft::tcp_listener http;
}
namespace io_fd_watch {
extern weft::time_point deadline;
extern int fd;
struct PGconn;
extern PGconn* connection;
int PQsocket(PGconn*);
int PQisBusy(PGconn*);
int PQconsumeInput(PGconn*);
}  // namespace io_fd_watch
namespace io_select_case {
struct order {};
struct ledger {
    void apply(order);
};
extern ledger book;
extern weft::channel<order> orders;
void read_a_line();
}  // namespace io_select_case
namespace io_passed_numbers {
extern weft::unix_stream theirs;
}
namespace io_process {
extern std::span<const std::byte> text;
}
namespace io_relay {
extern weft::tcp_stream client, server;
}
namespace io_transfer_result {
extern weft::tcp_stream stream;
extern std::span<const std::byte> bytes;
}  // namespace io_transfer_result
namespace io_stream_halves {
extern weft::tcp_stream stream;
extern std::span<const std::byte> answer;
extern weft::nursery nursery;
}  // namespace io_stream_halves
namespace io_tls_tls_context {
extern weft::tls_context b;
}
namespace io_udp_socket {
extern weft::udp_socket s;
std::span<std::byte> next_buffer();
void use(const weft::endpoint& from, std::span<const std::byte> text);
extern weft::endpoint server;
}  // namespace io_udp_socket
namespace posix_poll_many {
extern weft::time_point deadline;
extern ::pollfd* fds;
extern ::nfds_t count;
}  // namespace posix_poll_many
namespace queue_inbox {
extern job& j;
void wake_owner();
}  // namespace queue_inbox
namespace queue_ring {
extern std::coroutine_handle<> h;
}
namespace queue_steal_deque {
extern job& j;
}
namespace sched_blocking {
struct store {
    int query(int);
};
extern store database;
extern int q;
extern std::string path;
std::string read_whole_file(const std::string&);
}  // namespace sched_blocking
namespace sched_strand {
template <class... T>
void book(T&&...) {}
extern weft::pool pool;
extern int a, b, c, requests;
weft::task<> transfer(int, int);
}  // namespace sched_strand
namespace sched_timer {
extern weft::loop loop;
void flush();
void report();
}  // namespace sched_timer
namespace sched_virtual_loop {
extern std::uint64_t seed, expected;
void EXPECT_EQ(std::uint64_t, std::uint64_t);
}  // namespace sched_virtual_loop
namespace sched_watchdog {
extern weft::loop loop;
}
namespace run_run_scope {
int compute();
}
namespace stop_stop_node {
extern weft::stop_token token;
}
namespace stop_stop_token {
extern weft::stop_token token;
void work();
}  // namespace stop_stop_token
namespace stop_stop_callback {
extern weft::stop_token token;
extern weft::manual_reset_event event;
}  // namespace stop_stop_callback
namespace sync_auto_reset_event {
extern std::queue<int> queue;
extern int item;
void drain(std::queue<int>&);
void push(std::queue<int>&, int);
}  // namespace sync_auto_reset_event
namespace sync_barrier {
extern std::vector<int> front, back;
void work();
}  // namespace sync_barrier
namespace sync_broadcast {
struct tick {};
extern tick t;
}  // namespace sync_broadcast
namespace sync_channel {
template <class... T>
void book(T&&...) {}
struct order {};
extern order o;
}  // namespace sync_channel
namespace sync_condition_variable {
extern std::queue<int> queue;
extern weft::condition_variable changed;
extern std::unique_lock<weft::mutex> lock;
extern weft::mutex m;
}  // namespace sync_condition_variable
namespace sync_condition_variable_any {
extern weft::shared_mutex m;
extern weft::condition_variable_any changed;
extern bool is_ready;
extern std::shared_lock<weft::shared_mutex> reads;
}  // namespace sync_condition_variable_any
namespace sync_mutex {
extern weft::mutex m;
}
namespace sync_scoped_lock_operation {
extern weft::mutex m;
}
namespace sync_shared_mutex {
extern weft::shared_mutex m;
}
namespace sync_timed {
extern weft::mutex m;
extern weft::time_point t;
}  // namespace sync_timed
namespace sync_once {
extern weft::once_flag loaded;
extern int table;
int load();
weft::task<int> async_load();
}  // namespace sync_once
namespace sync_oneshot {
extern int q;
void ask(int, weft::oneshot<reply>&);
}  // namespace sync_oneshot
namespace manager_any_data {
struct player {
    int id;
};
}  // namespace manager_any_data
namespace manager_end_error {
extern weft::task_manager<> manager;
extern weft::task_manager<>::id id;
}  // namespace manager_end_error
namespace manager_expected_reply {
struct load_reply {};
struct message {
    std::uint64_t sequence;
};
extern weft::task_manager<> manager;
extern message header;
extern int db;
template <class... T>
void send(T&&...) {}
}  // namespace manager_expected_reply
namespace manager_managed_handle {
extern weft::task_manager<> manager;
extern weft::task_manager<>::id id;
}  // namespace manager_managed_handle
namespace manager_manager_errc {
struct given {};
extern given move;
extern weft::task_manager<> m;
extern weft::task_manager<>::id id;
template <class T>
void forget(T&&) {}
}  // namespace manager_manager_errc
namespace manager_suspension {
struct move {};
extern weft::task_manager<> manager;
extern weft::task_manager<>::id id;
}  // namespace manager_suspension
namespace manager_task_manager {
struct load_reply {};
struct packet_of {};
extern weft::loop loop;
extern int player, db;
extern packet_of packet;
template <class... T>
void send(T&&...) {}
extern weft::task_manager<> m;
}  // namespace manager_task_manager
namespace poll_poll {
extern reply* arrived_;
reply take();
}  // namespace poll_poll
namespace poll_boxed {
extern std::string text;
}
namespace poll_poll_task {
int computes();
void draw_a_frame();
}  // namespace poll_poll_task
namespace poll_poll_future {
// A map from numbers to contexts of a type that the example itself declares.
struct calls_by_number {
    struct place {
        template <class T>
        void operator=(T*) {}
    };
    place operator[](int);
    void erase(int);
};
extern calls_by_number calls;
void turn_of_a_loop();
}  // namespace poll_poll_future
namespace poll_waker {
extern weft::waker& context;
}
namespace context_fp_environment {
extern weft::context here, there;
extern void* word;
}  // namespace context_fp_environment
namespace context_context {
void body(weft::context*, weft::context*, void*);
void escaped(weft::context*) noexcept;
void left(weft::context*) noexcept;
extern void* stack_top;
extern void* word;
}  // namespace context_context
namespace sync_select {
struct order {};
void on_order(order);
struct ledger {
    void apply(order);
    void flush();
};
extern ledger book;
extern weft::channel<order> orders;
extern bool run;
}  // namespace sync_select
namespace sync_unbounded_channel {
struct event {};
extern event e;
}  // namespace sync_unbounded_channel
namespace sync_wait_group {
extern std::vector<void (*)()> jobs;
}
namespace task_as_task {
extern weft::channel<int> channel;
}
namespace task_async_generator {
using line = std::string;
struct stream {
    weft::task<std::optional<line>> async_read_line();
};
extern stream s;
}  // namespace task_async_generator
namespace task_eager_task {
using bytes = std::vector<std::byte>;
extern int file;
weft::eager_task<bytes> read_ahead(int);
void prepare();
}  // namespace task_eager_task
namespace task_event_source {
struct reading {};
reading read();
template <class F>
void on_interrupt(F&&) {}
}  // namespace task_event_source
namespace task_generator {
struct node {
    node *left, *right;
};
}  // namespace task_generator
namespace task_schedule_on {
using bytes = std::vector<std::byte>;
extern weft::pool pool;
extern weft::loop loop;
extern std::string text;
weft::task<bytes> compress(std::string);
}  // namespace task_schedule_on
namespace task_shared_task {
weft::task<config> read(const char*);
}
namespace task_sync_wait {
weft::task<int> price(const char*);
}
namespace task_task {
weft::task<> main_task();
}
namespace task_task_handle {
using bytes = std::vector<std::byte>;
extern weft::nursery nursery;
extern url a;
weft::task<bytes> fetch(url);
}  // namespace task_task_handle
namespace task_when_all {
weft::task<int> price(const char*);
extern weft::channel<int> channel;
extern std::vector<weft::task<int>> tasks;
weft::task<int> a();
weft::task<int> b();
}  // namespace task_when_all
namespace task_when_all_ready {
weft::task<int> price(const char*);
extern weft::channel<int> channel;
}  // namespace task_when_all_ready
namespace task_when_any {
extern int k;
weft::task<int> from_cache(int);
weft::task<int> from_disk(int);
extern std::vector<weft::task<int>> replicas;
}  // namespace task_when_any
namespace task_with_timeout {
extern int db;
weft::task<reply> ask(int);
}  // namespace task_with_timeout
namespace task_with_nursery {
extern weft::tcp_listener listener;
weft::task<> session(weft::tcp_stream);
}  // namespace task_with_nursery
namespace wait_await {
extern weft::channel<int> channel;
weft::task<int> some_task();
}  // namespace wait_await
namespace wait_from_callback {
struct location {};
extern std::string ip;
template <class F>
void sdk_locate_async(const std::string&, F&&) {}
extern int query;
void c_sdk_start(int, void (*)(void*, int), void*);
}  // namespace wait_from_callback
namespace wait_scheduler {
extern weft::loop loop;
void serve();
}  // namespace wait_scheduler
namespace wait_sleep {
extern weft::time_point t;
}
namespace wait_timeout_scope {
extern int k;
weft::result<reply> query(int);
}  // namespace wait_timeout_scope
namespace wheel_wheel {
extern std::uint64_t now;
extern weft::wheel_node node;
void sleep_until(std::uint64_t);
}  // namespace wheel_wheel
namespace io_borrowed_buffer {
extern weft::tcp_stream s;
}  // namespace io_borrowed_buffer
namespace io_buffer_list {
extern weft::tcp_stream stream;
extern std::span<const std::byte> head, body;
}  // namespace io_buffer_list
namespace io_datagram_batch {
extern weft::udp_socket s;
std::span<std::byte> next_buffer();
}  // namespace io_datagram_batch
namespace io_listener {
extern weft::tcp_listener listener;
}  // namespace io_listener
namespace io_peer_credentials {
extern weft::unix_stream s;
}  // namespace io_peer_credentials
namespace io_stream {
extern weft::tcp_stream s;
}  // namespace io_stream
namespace io_stream_options {
extern weft::tcp_stream s;
}  // namespace io_stream_options
namespace manager_managed_join {
extern weft::task_manager<> manager;
extern weft::task_manager<>::id id;
}  // namespace manager_managed_join
namespace manager_managed_status {
extern weft::managed_handle<> h;
}  // namespace manager_managed_status
namespace manager_manager_options {
extern weft::loop loop;
}  // namespace manager_manager_options
namespace poll_poll_context {
extern std::optional<int> next_number;
extern weft::waker* interested;
}  // namespace poll_poll_context
namespace run_run {
weft::task<int> main_task();
}  // namespace run_run
namespace wait_runnable {
extern std::coroutine_handle<> suspended;
extern weft::executor& executor;
}  // namespace wait_runnable
namespace wait_shield {
struct peer {
    void send_goodbye();
};
extern peer connection;
}  // namespace wait_shield
namespace wait_stopped {
void work();
}  // namespace wait_stopped
namespace wait_wait_queue {
extern weft::wait_queue queue;
extern bool free_;
extern weft::wait_node& node_;
using weft::wait_node;
}  // namespace wait_wait_queue
namespace wait_waiter {
extern weft::waiter* interested;
}  // namespace wait_waiter
namespace wheel_wheel_node {
extern weft::wheel w;
}  // namespace wheel_wheel_node
}  // namespace weft::example
