package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// The result of one measurement.
type meter struct {
	wall, cpu, operations float64
	wallStarted           float64
	cpuStarted            float64
	began, ended          float64 // of the first start and the last stop
	err                   string
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return seconds(u.Utime) + seconds(u.Stime)
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)*1e-6 }

// Seconds of the system's monotonic clock, which package time does not give.
func monotonic() float64 {
	const clock = 1 // CLOCK_MONOTONIC
	var t syscall.Timespec
	if _, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock,
		uintptr(unsafe.Pointer(&t)), 0); err != 0 {
		panic(err)
	}
	return float64(t.Sec) + float64(t.Nsec)*1e-9
}

func (m *meter) start() {
	m.cpuStarted = cpuSeconds()
	m.wallStarted = monotonic()
	if m.began == 0 {
		m.began = m.wallStarted
	}
}

func (m *meter) stop(operations int) {
	m.ended = monotonic()
	m.wall += m.ended - m.wallStarted
	m.cpu += cpuSeconds() - m.cpuStarted
	m.operations += float64(operations)
}

// Undoes the pinning of the program: of each thread that it has, and so of the threads they start.
func useAllProcessors() {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		panic(err)
	}
	var all [128]byte
	for i := range all {
		all[i] = 0xff
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			panic(err)
		}
		syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(id), unsafe.Sizeof(all),
			uintptr(unsafe.Pointer(&all)))
	}
}

// A checksum: a difference makes the case an error, with a message.
func (m *meter) expectEqual(found, wanted int, what string) {
	if found != wanted && m.err == "" {
		m.err = fmt.Sprintf("checksum: %s is %d, not %d", what, found, wanted)
	}
}

// Runs a case and returns it as an object of Google Benchmark's JSON.
func runCase(group string, subject func(*meter)) (string, bool) {
	m := &meter{}
	subject(m)
	name := group + "/go"
	tail := ""
	if m.err != "" {
		fmt.Fprintf(os.Stderr, "go_bench: ERROR: %s: %s\n", name, m.err)
		tail = fmt.Sprintf(`, "error_occurred": true, "error_message": "%s"`,
			strings.ReplaceAll(m.err, `"`, "'"))
	}
	scale, unit := 1e9, "ns"
	if strings.HasPrefix(group, "fork_") { // an operation is a whole tree
		scale, unit = 1e3, "ms"
	}
	share := 1.0
	if m.wall > 0 {
		share = m.cpu / m.wall
	}
	return fmt.Sprintf(`{"name": "%s", "run_name": "%s", "run_type": "iteration", `+
		`"iterations": 1, "real_time": %g, "time_unit": "%s", "cpu_share": %g, `+
		`"began": %.6f, "ended": %.6f%s}`,
		name, name, m.wall/m.operations*scale, unit, share, m.began, m.ended, tail), m.err == ""
}
