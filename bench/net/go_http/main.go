// go_http PORT: net/http answering every request with the same plain text.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
)

var body = []byte("Hello, World!")

func answer(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = []string{"text/plain"}
	w.Write(body)
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("go_http: ")
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go_http PORT")
		os.Exit(2)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:"+os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	log.Fatal(http.Serve(listener, http.HandlerFunc(answer)))
}
