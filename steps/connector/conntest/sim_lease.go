package conntest

import (
	"context"
	"io"

	"github.com/mensylisir/kubexm/steps/connector"
)

// hold gives a lease to who asks first, until the end of its input. Alone of all
// commands it lasts while others run.
func (s *Sim) hold(ctx context.Context, c connector.Cmd) (connector.Result, error) {
	args := c.Args()
	path, holder := args[0], args[1]
	s.mu.Lock()
	who, taken := s.leases[path]
	if !taken {
		if s.leases == nil {
			s.leases = map[string]string{}
		}
		s.leases[path] = holder
	}
	s.mu.Unlock()
	if taken {
		return connector.Result{Exit: 49, Stdout: []byte(who + "\n")}, nil
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.leases, path)
	}()
	if c.Stdout != nil {
		if _, err := io.WriteString(c.Stdout, "held\n"); err != nil {
			return connector.Result{}, err
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, c.Stdin) // signs of life
	}()
	select {
	case <-ended:
		return connector.Result{}, nil
	case <-ctx.Done():
		return connector.Result{}, ctx.Err()
	}
}
