package main

import (
	"math/rand"
	"runtime"
	"sync"
	"time"
)

var subjects = []struct {
	name string
	run  func(*meter)
}{
	{"yield/2", yields(2, 500_000)},
	{"yield/1000", yields(1000, 1000)},
	{"yield_shuffled/30000", shuffledYields(30_000, 20)},
	{"create/1000x128K", spawned(1000)},
	{"create/5000x128K", spawned(5000)},
	{"create/1000x2M", spawned(1000)},
	{"create/30000x64K", spawned(30_000)},
	{"switch/1x16K", yields(1, 1_000_000)},
	{"switch/1000x128K", yields(1000, 1000)},
	{"switch/5000x128K", yields(5000, 100)},
	{"switch/1000x2M", yields(1000, 1000)},
	{"switch/30000x64K", yields(30_000, 20)},
	{"mutex_handoff/2", handoffs(200_000)},
	{"channel_pingpong/0", pingPong(200_000)},
	{"channel_1p1c/1024", oneToOne(1024, 2_000_000)},
	{"spawn_join/1", spawns(200_000)},
	{"timer_add_cancel/1000", addsAndCancels(1000, 200_000)},
	{"timer_add_cancel/1M", addsAndCancels(1_000_000, 200_000)},
	{"fork_fib/30x1", parallel(1, func() int { return fibOf(30) }, 832_040, "fib")},
	{"fork_fib/30x2", parallel(2, func() int { return fibOf(30) }, 832_040, "fib")},
	{"fork_skynet/1Mx1", parallel(1, func() int { return sumOf(0, 1_000_000) }, 499_999_500_000, "sum")},
	{"fork_skynet/1Mx2", parallel(2, func() int { return sumOf(0, 1_000_000) }, 499_999_500_000, "sum")},
}

// A stage runs goroutines to their ends.
type stage struct{ running sync.WaitGroup }

func (s *stage) spawn(f func()) {
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		f()
	}()
}

// The body of each yielding goroutine; lead is the first in the queue.
func takeTurns(count, rounds int, lead bool, turns *int, m *meter) {
	runtime.Gosched()
	if lead {
		m.start()
	}
	for round := 0; round < rounds; round++ {
		*turns++
		runtime.Gosched()
	}
	if lead {
		m.stop(count * rounds)
	}
}

func yields(count, rounds int) func(*meter) {
	return func(m *meter) {
		var s stage
		turns := 0
		for i := 0; i < count; i++ {
			lead := i == 0
			s.spawn(func() { takeTurns(count, rounds, lead, &turns, m) })
		}
		s.running.Wait()
		m.expectEqual(turns, count*rounds, "turns")
	}
}

// Stacks grow as they are used: the stack size in the name of the case is that of the other peers.
func spawned(count int) func(*meter) {
	return func(m *meter) {
		var s stage
		ran := 0
		s.spawn(func() { ran++ })
		s.running.Wait()
		m.start()
		for i := 0; i < count; i++ {
			s.spawn(func() { ran++ })
		}
		m.stop(count)
		s.running.Wait()
		m.expectEqual(ran, count+1, "goroutines that ran")
	}
}

// Each goroutine waits at a gate of its own; the gates are opened in a shuffled order, which is from
// then on the order of the queue.
func shuffledYields(count, rounds int) func(*meter) {
	return func(m *meter) {
		var s stage
		order := rand.New(rand.NewSource(20240229)).Perm(count)
		gates := make([]sync.Mutex, count)
		for i := range gates {
			gates[i].Lock()
		}
		turns := 0
		for i := 0; i < count; i++ {
			i := i
			s.spawn(func() {
				gates[i].Lock()
				gates[i].Unlock()
				takeTurns(count, rounds, i == order[0], &turns, m)
			})
		}
		for i := 0; i < 3; i++ {
			runtime.Gosched() // all have come to their gates
		}
		for _, i := range order {
			gates[i].Unlock()
		}
		s.running.Wait()
		m.expectEqual(turns, count*rounds, "turns")
	}
}

// Go's mutex does not pass ownership: whether the owners alternate is up to Go, and not checked.
func handoffs(rounds int) func(*meter) {
	return func(m *meter) {
		var s stage
		var mutex sync.Mutex
		locks := 0
		body := func() {
			for round := 0; round < rounds; round++ {
				mutex.Lock()
				locks++
				runtime.Gosched()
				mutex.Unlock()
				runtime.Gosched()
			}
		}
		m.start()
		s.spawn(body)
		s.spawn(body)
		s.running.Wait()
		m.stop(2 * rounds)
		m.expectEqual(locks, 2*rounds, "locks")
	}
}

func pingPong(rounds int) func(*meter) {
	return func(m *meter) {
		var s stage
		there, back := make(chan int), make(chan int)
		sum := 0
		s.spawn(func() {
			m.start()
			for round := 0; round < rounds; round++ {
				there <- round
				sum += <-back
			}
			m.stop(rounds)
		})
		s.spawn(func() {
			for round := 0; round < rounds; round++ {
				back <- <-there + 1
			}
		})
		s.running.Wait()
		m.expectEqual(sum, rounds*(rounds+1)/2, "sum")
	}
}

func oneToOne(capacity, items int) func(*meter) {
	return func(m *meter) {
		var s stage
		channel := make(chan int, capacity)
		sum := 0
		m.start()
		s.spawn(func() {
			for i := 0; i < items; i++ {
				channel <- i
			}
			close(channel)
		})
		s.spawn(func() {
			for i := range channel {
				sum += i
			}
			m.stop(items)
		})
		s.running.Wait()
		m.expectEqual(sum, items*(items-1)/2, "sum")
	}
}

// A goroutine for each call, as the other peers have a task.
func fibOf(n int) int {
	if n < 2 {
		return n
	}
	var a, b int
	var both sync.WaitGroup
	both.Add(2)
	go func() { a = fibOf(n - 1); both.Done() }()
	go func() { b = fibOf(n - 2); both.Done() }()
	both.Wait()
	return a + b
}

func sumOf(number, leaves int) int {
	if leaves == 1 {
		return number
	}
	var sums [10]int
	var all sync.WaitGroup
	all.Add(10)
	for i := range sums {
		i := i
		go func() { sums[i] = sumOf(number+i*(leaves/10), leaves/10); all.Done() }()
	}
	all.Wait()
	sum := 0
	for _, s := range sums {
		sum += s
	}
	return sum
}

// On so many processors, whatever the program is pinned to.
func parallel(threads int, tree func() int, wanted int, what string) func(*meter) {
	return func(m *meter) {
		before := runtime.GOMAXPROCS(threads)
		defer runtime.GOMAXPROCS(before)
		if threads > 1 {
			useAllProcessors()
		}
		m.expectEqual(tree(), wanted, what)
		m.start()
		value := tree()
		m.stop(1)
		m.expectEqual(value, wanted, what)
	}
}

func spawns(rounds int) func(*meter) {
	return func(m *meter) {
		ran := 0
		var one sync.WaitGroup
		spawn := func() {
			one.Add(1)
			go func() {
				ran++
				one.Done()
			}()
			one.Wait()
		}
		for round := 0; round < 1000; round++ {
			spawn()
		}
		m.start()
		for round := 0; round < rounds; round++ {
			spawn()
		}
		m.stop(rounds)
		m.expectEqual(ran, rounds+1000, "goroutines that ran")
	}
}

func addsAndCancels(others, rounds int) func(*meter) {
	return func(m *meter) {
		random := rand.New(rand.NewSource(20240229))
		delay := func() time.Duration {
			return time.Duration(1000+random.Intn(3_600_000)) * time.Millisecond
		}
		for i := 0; i < others; i++ {
			time.AfterFunc(delay(), func() { panic("a timer fired") })
		}
		run := func() {
			for round := 0; round < rounds; round++ {
				time.AfterFunc(delay(), func() { panic("a timer fired") }).Stop()
			}
		}
		run()
		m.start()
		run()
		m.stop(rounds)
	}
}
