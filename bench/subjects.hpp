// The subjects, one file each; main calls them in the order of the table.
#pragma once

namespace bench {

void add_create();       // create, create_enter, both cold and warm
void add_switch();       // switch, switch_hetero, switch_shuffled
void add_finish();       // last_switch, destroy
void add_kill();         // kill, kill_empty
void add_skynet();       // skynet
void add_memory();       // rss, guarded
void add_fibers();       // yield, yield_shuffled, mutex_handoff, channel_*, spawn_join
void add_await();        // await_ready, await_task
void add_poll_future();  // poll_future_wake, _value, _create, _create_enter
void add_timers();       // timer_add_cancel, event
void add_parallel();     // fork_fib, fork_skynet
void add_future();       // then, poll
void add_value();        // value, value_create, of numbers and of objects
void add_manager();      // managed_resume, _spawn_join, _timeout, _tick, _live

}  // namespace bench
