// The comparison's Go peer: goroutines on one processor, measured as bench/fibers.cpp and
// bench/timers.cpp measure the other peers, once per run.
//
//	go_bench [subject/variant[/go] ...]      all, unless some are named
//
// prints the cases as Google Benchmark's JSON; tools/bench_report.py merges them.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

func main() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400) // fewer collections, which is in Go's favour
	wanted := map[string]bool{}
	for _, name := range os.Args[1:] {
		wanted[name] = true
	}
	var lines []string
	good := true
	for _, s := range subjects {
		if len(wanted) != 0 && !wanted[s.name] && !wanted[s.name+"/go"] {
			continue
		}
		line, ok := runCase(s.name, s.run)
		lines = append(lines, line)
		good = good && ok
	}
	fmt.Printf("{\"context\": {\"go\": \"%s\"}, \"benchmarks\": [\n%s\n]}\n",
		runtime.Version(), strings.Join(lines, ",\n"))
	if !good {
		os.Exit(1)
	}
}
