// go_echo PORT: an echo server in Go, a goroutine a connection. Go itself raises the limit of open
// files, sets TCP_NODELAY and SO_REUSEADDR, and takes the number of its processors from GOMAXPROCS.
package main

import (
	"fmt"
	"log"
	"net"
	"os"
)

const bufferBytes = 512

func echo(connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, bufferBytes)
	for {
		n, err := connection.Read(buffer)
		if n > 0 {
			if _, err := connection.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("go_echo: ")
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go_echo PORT")
		os.Exit(2)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:"+os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go echo(connection)
	}
}
