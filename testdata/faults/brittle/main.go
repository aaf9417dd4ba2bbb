package main

import (
	"flag"
	"fmt"
	"io"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	eager := flag.Bool("eager", false, "a sync of any file takes the changes of all folders along, as a journal does")
	flag.Parse()
	// An interrupt goes to all programs of a terminal. This one ends after the one that
	// has files open here.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	if err := run(*eager, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run answers requests until in ends.
func run(eager bool, in io.ReadCloser, out io.Writer) error {
	c := &Control{disk: New(eager)}
	s := rpc.NewServer()
	if err := s.Register(c); err != nil {
		return err
	}
	s.ServeCodec(jsonrpc.NewServerCodec(stdio{in, out}))
	if c.mount == nil {
		return nil
	}
	return c.mount.Unmount()
}

// stdio is both directions as one.
type stdio struct {
	io.ReadCloser
	io.Writer
}
