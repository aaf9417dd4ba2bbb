// Command labtool is what the lab's smoke pods run: "serve :8080" answers every
// request with the host's name and who asked; "get URL" prints what is there;
// "resolve NAME" prints a name's addresses.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("use: labtool serve ADDRESS | labtool get URL | labtool resolve NAME")
	}
	switch args[0] {
	case "serve":
		return serve(args[1])
	case "get":
		return get(args[1])
	case "resolve":
		return resolve(args[1])
	}
	return fmt.Errorf("no command %q", args[0])
}

func serve(addr string) error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	s := &http.Server{Addr: addr, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s seen-from=%s\n", name, r.RemoteAddr) })}
	return s.ListenAndServe()
}

func resolve(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(addresses, " "))
	return nil
}

func get(url string) error {
	c := http.Client{Timeout: 4 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get(url) //nolint:noctx // it has a timeout
	if err != nil {
		return err
	}
	defer r.Body.Close()
	_, err = io.Copy(os.Stdout, r.Body)
	return err
}
