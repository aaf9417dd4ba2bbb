package lab

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab/components"
)

//go:embed smoke.yaml
var smokePods []byte

// Smoke is a cluster's test by its users: a pod on every worker, and a Service.
type Smoke struct {
	Lab        *Lab
	Cache      string
	Kubeconfig string
	Nodes      int          // that pods run on at least; 0 means two
	Say        func(string) // told of each thing that works
}

// smokePod is one pod of the test.
type smokePod struct {
	Metadata struct{ Name string }
	Spec     struct{ NodeName string }
	Status   struct {
		PodIP  string
		HostIP string
		Phase  string
	}
}

// Run starts the pods from the workdir host, and has each of them reach every
// other one by address and the Service by name, and the workdir host reach the
// Service at a port of each node. The pods stay. A path that was open once has
// to stay open; until then it has the time of settles.
func (s *Smoke) Run(ctx context.Context) error {
	apply := s.kubectl(ctx, "apply", "-f", "-")
	apply.Stdin = bytes.NewReader(smokePods)
	if _, err := output(apply); err != nil {
		return err
	}
	within := 2 * time.Minute * time.Duration(s.Lab.slowness())
	if _, err := output(s.kubectl(ctx, "rollout", "status", "daemonset/smoke", "--timeout="+within.String())); err != nil {
		seen, _ := s.kubectl(ctx, "describe", "pods", "-l", "app=smoke").CombinedOutput() // the first error says enough
		return fmt.Errorf("%w\n%s", err, seen)
	}
	var pods []smokePod
	if _, err := s.settled(ctx, func() (_ string, err error) {
		pods, err = s.pods(ctx)
		return "", err
	}); err != nil {
		seen, _ := s.kubectl(ctx, "describe", "pods", "-l", "app=smoke").CombinedOutput() // the first error says enough
		return fmt.Errorf("%w\n%s", err, seen)
	}
	if nodes := cmp.Or(s.Nodes, 2); len(pods) < nodes {
		return fmt.Errorf("%d pods run; one on each of %d workers at least was asked for", len(pods), nodes)
	}
	if err := s.byAddress(ctx, pods); err != nil {
		return err
	}
	if err := s.byName(ctx, pods); err != nil {
		return err
	}
	return s.byNodePort(ctx, pods)
}

func (s *Smoke) pods(ctx context.Context) ([]smokePod, error) {
	out, err := output(s.kubectl(ctx, "get", "pods", "-l", "app=smoke", "-o", "json"))
	if err != nil {
		return nil, err
	}
	var list struct{ Items []smokePod }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, err
	}
	nodes := map[string]bool{}
	for _, p := range list.Items {
		if nodes[p.Spec.NodeName] || p.Status.Phase != "Running" || p.Status.PodIP == "" {
			return nil, fmt.Errorf("pod %s on %s is %s, with the address %q", p.Metadata.Name, p.Spec.NodeName, p.Status.Phase, p.Status.PodIP)
		}
		nodes[p.Spec.NodeName] = true
	}
	slices.SortFunc(list.Items, func(a, b smokePod) int { return strings.Compare(a.Spec.NodeName, b.Spec.NodeName) })
	return list.Items, nil
}

// byAddress has every pod ask every pod at its address. After its node has started
// again a pod has the address that it had before until the kubelet says otherwise, so
// pods are looked up anew where one did not answer.
func (s *Smoke) byAddress(ctx context.Context, pods []smokePod) error {
	for i := range pods {
		for j := range pods {
			said, err := s.settled(ctx, func() (string, error) {
				said, err := s.ask(ctx, pods[i], "http://"+net.JoinHostPort(pods[j].Status.PodIP, "8080"))
				if err == nil && !strings.HasPrefix(said, pods[j].Metadata.Name+" ") {
					err = fmt.Errorf("%q answered", said)
				}
				if err != nil {
					if now, lerr := s.pods(ctx); lerr == nil && len(now) == len(pods) {
						copy(pods, now)
					}
				}
				return said, err
			})
			if err != nil {
				return fmt.Errorf("from %s to the pod on %s: %w", pods[i].Spec.NodeName, pods[j].Spec.NodeName, err)
			}
			s.Say(fmt.Sprintf("pod on %s → pod on %s at %s: %s", pods[i].Spec.NodeName, pods[j].Spec.NodeName, pods[j].Status.PodIP, said))
		}
	}
	return nil
}

// byName has every pod ask the Service by its name, until every pod has answered.
func (s *Smoke) byName(ctx context.Context, pods []smokePod) error {
	for _, from := range pods {
		ask := func() (string, error) { return s.ask(ctx, from, "http://smoke.default.svc") }
		if _, err := s.settled(ctx, ask); err != nil {
			return fmt.Errorf("from %s to the Service: %w", from.Spec.NodeName, err)
		}
		var answered []string
		for try := 0; len(answered) < len(pods); try++ {
			said, err := ask()
			if err != nil {
				return fmt.Errorf("from %s to the Service: %w", from.Spec.NodeName, err)
			}
			if name, _, _ := strings.Cut(said, " "); !slices.Contains(answered, name) {
				answered = append(answered, name)
			}
			if try > 100 {
				return fmt.Errorf("from %s to the Service: only %q answer", from.Spec.NodeName, answered)
			}
		}
		s.Say(fmt.Sprintf("pod on %s → Service smoke by name: %s answer", from.Spec.NodeName, strings.Join(answered, " and ")))
	}
	return nil
}

// byNodePort asks the Service from the workdir host, at each worker.
func (s *Smoke) byNodePort(ctx context.Context, pods []smokePod) error {
	port, err := output(s.kubectl(ctx, "get", "service", "smoke", "-o", "jsonpath={.spec.ports[0].nodePort}"))
	if err != nil {
		return err
	}
	tool, err := s.program("labtool", "labtool")
	if err != nil {
		return err
	}
	for _, p := range pods {
		at := net.JoinHostPort(p.Status.HostIP, port)
		said, err := s.settled(ctx, func() (string, error) { return output(s.Lab.Workdir().Command(ctx, tool, "get", "http://"+at)) })
		if err != nil {
			return fmt.Errorf("from the workdir host to %s: %w", at, err)
		}
		s.Say(fmt.Sprintf("workdir host → NodePort %s: %s", at, said))
	}
	return nil
}

// settles is how long a path through the cluster may take to open. A pod is
// ready before kube-proxy on every other node has heard of it: until then that
// node refuses calls to its Service.
const settles = 30 * time.Second

// settled asks until there is an answer, and says when that was not at once.
func (s *Smoke) settled(ctx context.Context, ask func() (string, error)) (string, error) {
	return settled(ctx, settles*time.Duration(s.Lab.slowness()), time.Second, s.Say, ask)
}

func settled(ctx context.Context, within, pause time.Duration, say func(string), ask func() (string, error)) (string, error) {
	began := time.Now()
	for tries := 1; ; tries++ {
		said, err := ask()
		if err == nil {
			if tries > 1 {
				say(fmt.Sprintf("answered at try %d, after %s", tries, time.Since(began).Round(100*time.Millisecond)))
			}
			return said, nil
		}
		if time.Since(began)+pause > within {
			return "", fmt.Errorf("no answer within %s: %w", within, err)
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (s *Smoke) ask(ctx context.Context, from smokePod, url string) (string, error) {
	return output(s.kubectl(ctx, "exec", from.Metadata.Name, "--", "labtool", "get", url))
}

// kubectl is a call of it on the workdir host.
func (s *Smoke) kubectl(ctx context.Context, args ...string) *exec.Cmd {
	program, err := s.program(components.Kubernetes, "kubectl")
	if err != nil {
		program = "kubectl" // and the call says that there is none
	}
	return s.Lab.Workdir().Command(ctx, program, append([]string{"--kubeconfig", s.Kubeconfig, "--request-timeout=20s"}, args...)...)
}

// program finds a program that the lab has built.
func (s *Smoke) program(component, name string) (string, error) {
	rows, err := components.Table("")
	if err != nil {
		return "", err
	}
	c, err := components.Find(rows, component)
	if err != nil {
		return "", err
	}
	return filepath.Join(c.Dir(s.Cache), name), nil
}

// output gives what a command prints; what it says when it fails is in the error.
func output(cmd *exec.Cmd) (string, error) {
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &said, 10*time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %s (%v)", strings.Join(cmd.Args[min(4, len(cmd.Args)-1):], " "), lastLines(said.Bytes(), 5), err) //nolint:errorlint // whose exit code it was is nobody's business
	}
	return strings.TrimSpace(out.String()), nil
}
