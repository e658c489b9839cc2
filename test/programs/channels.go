// What Go's channels do, as a trace that is the same in every run. channels.cpp is the same program
// in weft, function by function; channels_test.py compares what they print.
package main

import (
	"fmt"
	"sort"
	"time"
)

// Each prime that comes out of the chain gets a filter of its own at the chain's end.
func sieve() {
	filter := func(in <-chan int, out chan<- int, prime int) {
		for n := range in {
			if n%prime != 0 {
				out <- n
			}
		}
		close(out)
	}
	numbers := make(chan int)
	go func() {
		for n := 2; n < 300; n++ {
			numbers <- n
		}
		close(numbers)
	}()
	in := numbers
	for prime := <-in; prime < 150; prime = <-in {
		fmt.Println("sieve", prime)
		out := make(chan int)
		go filter(in, out, prime)
		in = out
	}
	for n := range in {
		fmt.Println("sieve", n, "is left")
	}
}

// Ten stages take an item each when the one before has had its own.
func fifo(capacity int) {
	numbers := make(chan int, capacity)
	turn := make(chan int)
	first := turn
	for stage := 0; stage < 10; stage++ {
		next := make(chan int)
		go func(before <-chan int, after chan<- int) {
			seen := <-before
			after <- seen*10%9973 + <-numbers
		}(turn, next)
		turn = next
	}
	go func() {
		for n := 0; n < 10; n++ {
			numbers <- n
		}
	}()
	first <- 1
	fmt.Println("fifo", capacity, <-turn)
}

func tryRecv(c chan int) {
	select {
	case n, ok := <-c:
		fmt.Println("recv", n, ok)
	default:
		fmt.Println("recv would wait")
	}
}

// Sends to a closed one are what panics in Go, and is an error in weft.
func trySend(c chan int, n int) {
	defer func() {
		if recover() != nil {
			fmt.Println("send", n, "is refused: closed")
		}
	}()
	select {
	case c <- n:
		fmt.Println("send", n)
	default:
		fmt.Println("send", n, "would wait")
	}
}

// What does not wait, by the state of the channel.
func nonblock() {
	for capacity := 0; capacity < 4; capacity++ {
		c := make(chan int, capacity)
		fmt.Println("nonblock", len(c), cap(c))
		tryRecv(c)
		for n := 1; n < 4; n++ {
			trySend(c, n)
		}
		tryRecv(c)
		trySend(c, 4)
		close(c)
		trySend(c, 5)
		fmt.Println("holds", len(c))
		for n := 0; n < 4; n++ {
			tryRecv(c)
		}
	}
}

// One case at a time can happen; which one goes round.
func selectOne() {
	a, b, c := make(chan int, 1), make(chan int, 1), make(chan int)
	full, nobody, done := make(chan int, 1), make(chan int), make(chan int)
	full <- 0
	go func() {
		for n := range c {
			fmt.Println("select other side", n)
			done <- n
		}
		close(done)
	}()
	for round := 0; round < 8; round++ {
		toC, limit := nobody, time.Minute
		switch round % 4 {
		case 0:
			a <- round
		case 1:
			b <- round
		case 2:
			toC = c
		case 3:
			limit = time.Millisecond
		}
		select {
		case n := <-a:
			fmt.Println("select a", n)
		case n := <-b:
			fmt.Println("select b", n)
		case full <- round:
			fmt.Println("select sent to what is full")
		case toC <- round:
			fmt.Println("select c", <-done)
		case <-time.After(limit):
			fmt.Println("select after")
		}
	}
	close(c)
	_, open := <-done
	fmt.Println("select done", open)
}

// What is closed is drained first, in order.
func drains() {
	c := make(chan int, 5)
	for n := 0; n < 5; n++ {
		c <- n * n
	}
	close(c)
	for open := true; open; {
		select {
		case n, ok := <-c:
			if ok {
				fmt.Println("drains", n)
			} else {
				fmt.Println("drains no more")
			}
			open = ok
		case <-time.After(time.Minute):
			fmt.Println("drains too slowly")
		}
	}
}

// A select that may send to four sends each item to one.
func doubleselect() {
	const count = 400
	var to [4]chan int
	all := make(chan int)
	for i := range to {
		to[i] = make(chan int)
		go func(c chan int) {
			for n := range c {
				all <- n
			}
			all <- -1
		}(to[i])
	}
	go func() {
		for n := 0; n < count; n++ {
			select {
			case to[0] <- n:
			case to[1] <- n:
			case to[2] <- n:
			case to[3] <- n:
			}
		}
		for _, c := range to {
			close(c)
		}
	}()
	var got []int
	for ended := 0; ended < 4; {
		if n := <-all; n < 0 {
			ended++
		} else {
			got = append(got, n)
		}
	}
	sort.Ints(got)
	sum, twice := 0, 0
	for i, n := range got {
		sum += n
		if i > 0 && got[i-1] == n {
			twice++
		}
	}
	fmt.Println("doubleselect", len(got), sum, twice)
}

type node struct {
	left, right *node
	key         int
}

func grown(from, to, turn int) *node {
	if from == to {
		return nil
	}
	at := from + turn*7919%(to-from)
	return &node{grown(from, at, turn+1), grown(at+1, to, turn+2), at}
}

func walk(n *node, to chan<- int) {
	if n != nil {
		walk(n.left, to)
		to <- n.key
		walk(n.right, to)
	}
}

// Two trees of different forms, walked at once, have the same keys in the same order until one that
// is missing at the end.
func sameFringe() {
	walked := func(root *node) <-chan int {
		c := make(chan int)
		go func() {
			walk(root, c)
			close(c)
		}()
		return c
	}
	a, b := walked(grown(0, 60, 1)), walked(grown(0, 59, 5))
	same := 0
	for {
		x, inA := <-a
		y, inB := <-b
		if !inA || !inB {
			fmt.Println("fringe", same, inA, inB, x)
			return
		}
		if x == y {
			same++
		}
	}
}

func main() {
	sieve()
	fifo(0)
	fifo(3)
	fifo(10)
	nonblock()
	selectOne()
	drains()
	doubleselect()
	sameFringe()
}
