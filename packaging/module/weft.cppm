// weft: the module. `import weft;` gives the names that `#include "weft/weft.hpp"` gives.
//
// Design: the header is compiled once, and each of its public names is exported. A new one needs a
// line here: `tools/module_names.py --write` adds it, and `make tidy` refuses a module without it.
//
// Limits: a module exports no macros, so WEFT_ASSERT and WEFT_VERSION are the headers' alone; and
// the parts that the header leaves out (hook, tls) are included beside the import. Includes come
// first.
//
//   import weft;
//   int main() {
//       return weft::run([] { return 0; });
//   }
module;

#include "weft/weft.hpp"

export module weft;

// base
export namespace weft {
using weft::after;
using weft::agent_info;
using weft::bad_result;
using weft::cache_line_bytes;
using weft::category;
using weft::clock;
using weft::cpu_pause;
using weft::duration;
using weft::errc;
using weft::errno_here;
using weft::fail;
using weft::fail_with;
using weft::failure;
using weft::forward_node;
using weft::forward_queue;
using weft::get_errno;
using weft::kept_errno;
using weft::make_error_code;
using weft::never;
using weft::no_timeout;
using weft::prefetch;
using weft::prefetch_around;
using weft::result;
using weft::saturated;
using weft::set_errno;
using weft::steady_now;
using weft::time_left;
using weft::time_limit;
using weft::time_point;
using weft::unknown_caller;
}  // namespace weft

// context
export namespace weft {
using weft::arrival;
using weft::entry_point;
using weft::fp_environment;
}  // namespace weft

// stack
export namespace weft {
using weft::buffer_stack;
using weft::default_stack_bytes;
using weft::default_stack_pool;
using weft::default_stacks;
using weft::describe_overflow;
using weft::growable_stack;
using weft::high_water_bytes;
using weft::install_overflow_report;
using weft::largest_default_stack_bytes;
using weft::malloc_stack;
using weft::mapped_stack;
using weft::overflow_info;
using weft::prepare_thread_for_overflow_report;
using weft::reset_high_water;
using weft::slab_stack;
using weft::smallest_default_stack_bytes;
using weft::stack;
using weft::stack_allocator;
using weft::stack_allocator_ref;
using weft::stack_pool;
using weft::stack_pool_options;
using weft::stack_pool_stats;
using weft::trim_default_stacks;
}  // namespace weft

// stop
export namespace weft {
using weft::from_std_stop;
using weft::stop_callback;
using weft::stop_reason;
using weft::stop_root;
using weft::stop_source;
using weft::stop_token;
using weft::to_std_stop;
}  // namespace weft

// wheel
export namespace weft {
using weft::tick;
using weft::tick_after;
using weft::tick_never;
using weft::wheel;
using weft::wheel_node;
}  // namespace weft

// coroutine
export namespace weft {
using weft::coroutine;
using weft::coroutine_options;
using weft::coroutine_state;
using weft::shared_stack_group;
using weft::shared_stack_stats;
}  // namespace weft

export namespace weft::this_coroutine {
using weft::this_coroutine::exists;
using weft::this_coroutine::id;
using weft::this_coroutine::private_data;
using weft::this_coroutine::yield;
}  // namespace weft::this_coroutine

// wait
export namespace weft {
using weft::await;
using weft::await_callback;
using weft::await_result_t;
using weft::awaitable;
using weft::callable_with_a_completion;
using weft::callable_without_arguments;
using weft::callback_operation;
using weft::completion;
using weft::context_local;
using weft::current_executor;
using weft::current_flow;
using weft::executor;
using weft::flow;
using weft::flow_kind;
using weft::from_callback;
using weft::now;
using weft::nursery;
using weft::operation;
using weft::operator co_await;
using weft::ready_turn;
using weft::runnable;
using weft::scheduler;
using weft::scheduler_ref;
using weft::shield;
using weft::sleep_for;
using weft::sleep_operation;
using weft::sleep_until;
using weft::spawn_options_for;
using weft::stopped;
using weft::sync_wait;
using weft::timeout_scope;
using weft::timer_node;
using weft::wait_list;
using weft::wait_node;
using weft::wait_queue;
using weft::wait_status;
using weft::waiter;
using weft::when_any_result;
}  // namespace weft

// fiber
export namespace weft {
using weft::fiber;
using weft::fiber_handle;
using weft::fiber_local;
using weft::fiber_options;
using weft::join_handle;
using weft::join_result;
using weft::launch;
using weft::on_unhandled;
using weft::spawn;
using weft::spawn_into;
using weft::unhandled_handler;
}  // namespace weft

export namespace weft::this_fiber {
using weft::this_fiber::exists;
using weft::this_fiber::get_id;
using weft::this_fiber::get_stop_token;
using weft::this_fiber::name;
using weft::this_fiber::set_name;
using weft::this_fiber::sleep_for;
using weft::this_fiber::sleep_until;
using weft::this_fiber::stack_usage_bytes;
using weft::this_fiber::throw_if_stopped;
using weft::this_fiber::yield;
}  // namespace weft::this_fiber

// sched
export namespace weft {
using weft::async_run_blocking;
using weft::blocking_operation;
using weft::blocking_pool;
using weft::blocking_pool_options;
using weft::default_blocking_pool;
using weft::driver;
using weft::loop;
using weft::pool;
using weft::pool_options;
using weft::pool_stats;
using weft::run_blocking;
using weft::schedule_policy;
using weft::stall_info;
using weft::steal_source;
using weft::strand;
using weft::timer;
using weft::turn_watch;
using weft::watchdog;
}  // namespace weft

export namespace weft::testing {
using weft::testing::explore;
using weft::testing::seed_from_environment;
using weft::testing::virtual_loop;
}  // namespace weft::testing

// sync
export namespace weft {
using weft::async_select;
using weft::auto_reset_event;
using weft::barrier;
using weft::binary_semaphore;
using weft::broadcast;
using weft::call_once;
using weft::channel;
using weft::condition_variable;
using weft::condition_variable_any;
using weft::counting_semaphore;
using weft::latch;
using weft::manual_reset_event;
using weft::mutex;
using weft::on_closed;
using weft::on_recv;
using weft::on_send;
using weft::on_stop;
using weft::on_timeout;
using weft::once_flag;
using weft::once_guard;
using weft::oneshot;
using weft::otherwise;
using weft::recursive_mutex;
using weft::select;
using weft::select_none;
using weft::shared_mutex;
using weft::unbounded_channel;
using weft::wait_group;
}  // namespace weft

// io
export namespace weft {
using weft::async_make_directory;
using weft::async_relay;
using weft::async_remove;
using weft::async_rename;
using weft::async_stat;
using weft::borrowed_buffer;
using weft::buffers_of;
using weft::bytes_of;
using weft::child_group;
using weft::child_io;
using weft::datagram_socket;
using weft::direction;
using weft::directory;
using weft::directory_entry;
using weft::directory_watch;
using weft::endpoint;
using weft::environment;
using weft::exit_status;
using weft::fd_events;
using weft::fd_watch;
using weft::file;
using weft::file_event;
using weft::file_events;
using weft::file_options;
using weft::file_status;
using weft::given_descriptor;
using weft::given_descriptors;
using weft::has;
using weft::incoming_datagram;
using weft::io_driver;
using weft::io_kind;
using weft::ip_address;
using weft::links;
using weft::listen_options;
using weft::listener;
using weft::local_end;
using weft::make_directory;
using weft::make_driver_kqueue;
using weft::make_driver_uring;
using weft::make_io_driver;
using weft::most_passed_numbers;
using weft::on_ready;
using weft::operator|;
using weft::outgoing_datagram;
using weft::owned_number;
using weft::peer_credentials;
using weft::pipe;
using weft::pipe_end;
using weft::pipe_reader;
using weft::pipe_writer;
using weft::process;
using weft::process_limits;
using weft::process_options;
using weft::recv_from_result;
using weft::recv_numbers_result;
using weft::recv_result;
using weft::relay;
using weft::relay_result;
using weft::remove;
using weft::rename;
using weft::resize_terminal;
using weft::resolve;
using weft::resolver;
using weft::resolver_backend;
using weft::resolver_category;
using weft::resolver_options;
using weft::resource_limit;
using weft::send_many_result;
using weft::serial_flow;
using weft::serial_line;
using weft::serial_options;
using weft::serial_parity;
using weft::signal_info;
using weft::signal_set;
using weft::size_of_terminal;
using weft::standard_error;
using weft::standard_input;
using weft::standard_output;
using weft::stat;
using weft::stream;
using weft::stream_halves;
using weft::stream_options;
using weft::stream_reader;
using weft::stream_writer;
using weft::tcp_listener;
using weft::tcp_stream;
using weft::terminal_mode;
using weft::terminal_scope;
using weft::terminal_size;
using weft::transfer_result;
using weft::udp_options;
using weft::udp_socket;
using weft::unix_datagram;
using weft::unix_listener;
using weft::unix_seqpacket;
using weft::unix_seqpacket_listener;
using weft::unix_stream;
using weft::wait_fd;
}  // namespace weft

// run
export namespace weft {
using weft::run;
using weft::run_scope;
}  // namespace weft

// task
export namespace weft {
using weft::async_generator;
using weft::eager_task;
using weft::elements_of;
using weft::event_source;
using weft::generator;
using weft::resume_on;
using weft::schedule_on;
using weft::schedule_operation;
using weft::shared_task;
using weft::task;
using weft::task_handle;
using weft::task_options;
using weft::task_result_operation;
using weft::task_status;
using weft::when_all;
using weft::when_all_operation;
using weft::when_all_range_operation;
using weft::when_all_ready;
using weft::when_all_ready_operation;
using weft::when_all_ready_range_operation;
using weft::when_all_ready_result;
using weft::when_any;
using weft::when_any_operation;
using weft::when_any_range_operation;
using weft::when_n;
using weft::when_n_operation;
using weft::when_n_range_operation;
using weft::with_nursery;
using weft::with_timeout;
}  // namespace weft

export namespace weft::this_task {
using weft::this_task::get_stop_token;
using weft::this_task::id;
using weft::this_task::status;
}  // namespace weft::this_task

// poll
export namespace weft {
using weft::boxed;
using weft::pending;
using weft::pending_t;
using weft::poll;
using weft::poll_context;
using weft::poll_future;
using weft::poll_task;
using weft::waker;
}  // namespace weft

// parallel
export namespace weft {
using weft::fork_join;
using weft::fork_operation;
using weft::fork_range_operation;
}  // namespace weft

// future
export namespace weft {
using weft::async;
using weft::future;
using weft::make_failed_future;
using weft::make_ready_future;
using weft::make_stopped_future;
using weft::packaged_task;
using weft::plain;
using weft::plain_t;
using weft::poll_event;
using weft::promise;
using weft::shared_future;
using weft::when_any_if;
using weft::when_n_if;
}  // namespace weft

// manager
export namespace weft {
using weft::any_data;
using weft::end_error;
using weft::expected_reply;
using weft::generated_ids;
using weft::is_final;
using weft::limited_suspend_operation;
using weft::make_error_of;
using weft::managed_end_operation;
using weft::managed_handle;
using weft::managed_status;
using weft::managed_value_operation;
using weft::manager_category;
using weft::manager_errc;
using weft::manager_options;
using weft::manager_stats;
using weft::name_of;
using weft::spawn_options;
using weft::suspend_operation;
using weft::task_manager;
using weft::unlimited;
using weft::user_ids;
}  // namespace weft

export namespace weft::this_managed {
using weft::this_managed::async_suspend;
using weft::this_managed::exists;
using weft::this_managed::id;
using weft::this_managed::private_data;
using weft::this_managed::suspend;
}  // namespace weft::this_managed

// The lookup from the namespace of an operation finds this one.
export namespace weft::detail {
using ::weft::operator co_await;
}
