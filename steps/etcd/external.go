package etcd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/op"
)

// requestTimeout is the timeout of a request to one endpoint.
const requestTimeout = 10 * time.Second

// maxResponse limits the size of a response, in bytes.
const maxResponse = 1 << 20

// CheckExternal checks an existing etcd through connections from a master: each endpoint is
// healthy and has a leader. Before the first master is created, the etcd must contain no
// objects of another cluster under the same key prefix.
func CheckExternal(c *manifest.Cluster) steps.Step {
	return op.Check("etcd.check-external", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		client, err := clientFrom(c, h)
		if err != nil {
			return nil, err
		}
		defer client.CloseIdleConnections()
		var out steps.Findings
		answers := ""
		for _, at := range c.Spec.Etcd.External.Endpoints {
			if err := healthy(ctx, client, at); err != nil {
				out = append(out, steps.Finding{What: fmt.Sprintf("etcd at %s: %v", at, err),
					Advice: "check that it runs and that this host reaches it: etcdctl --endpoints=" + at + " endpoint health"})
				continue
			}
			answers = at
		}
		if answers == "" || ctx.Err() != nil {
			return out, ctx.Err()
		}
		begun, err := begun(ctx, h)
		if err != nil || begun {
			return out, err
		}
		prefix := keyPrefix(c)
		n, err := count(ctx, client, answers, prefix)
		if err != nil { // an etcd with authentication enabled rejects the request; its health is known
			h.Log.InfoContext(ctx, "the number of keys in etcd is unknown", "endpoint", answers, "err", err)
			return out, nil
		}
		if n != "" && n != "0" {
			out = append(out, steps.Finding{What: fmt.Sprintf("etcd at %s has %s keys under %s, of another or a deleted cluster", answers, n, prefix),
				Advice: "if they are no longer needed: etcdctl --endpoints=" + answers + " del --prefix " + prefix + "; otherwise set spec.kubernetes.apiServer.extraArgs: {etcd-prefix: /another}"})
		}
		return out, nil
	})
}

// ReportRemaining reports the objects that a removal leaves in an external etcd.
func ReportRemaining(c *manifest.Cluster) steps.Step {
	return op.Check("etcd.note-left", func(_ context.Context, _ *steps.Host) (steps.Findings, error) {
		prefix := keyPrefix(c)
		return steps.Findings{{
			Warning: true, What: "the cluster's objects remain in the etcd at " + strings.Join(c.Spec.Etcd.External.Endpoints, ", ") + ", under " + prefix,
			Advice: "when they are no longer needed: etcdctl del --prefix " + prefix,
		}}, nil
	})
}

// begun reports whether kubexm has begun to make the host part of this cluster.
func begun(ctx context.Context, h *steps.Host) (bool, error) {
	return h.Exists(ctx, op.RecordDir(h))
}

// keyPrefix returns the prefix of the keys of the cluster's objects.
func keyPrefix(c *manifest.Cluster) string {
	prefix := "/registry"
	for _, a := range c.Spec.Kubernetes.APIServer.ExtraArgs {
		if a.Name == "etcd-prefix" {
			prefix = a.Value
		}
	}
	return "/" + strings.Trim(prefix, "/") + "/"
}

// clientFrom returns a client whose connections are opened from h.
func clientFrom(c *manifest.Cluster, h *steps.Host) (*http.Client, error) {
	f, ok := h.Conn().(connector.Forwarder)
	if !ok {
		return nil, errors.New("the connection to this host cannot forward TCP")
	}
	conf, err := clientConfig(c.Spec.Etcd.External)
	if err != nil {
		return nil, err
	}
	return &http.Client{Timeout: cmp.Or(h.Timeouts.Header, requestTimeout), Transport: &http.Transport{
		TLSClientConfig: conf,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return f.Dial(ctx, network, address)
		},
	}}, nil
}

// healthy queries /health of one endpoint, which includes whether the member has a leader.
func healthy(ctx context.Context, client *http.Client, at string) error {
	var answer struct{ Health, Reason string }
	if err := request(ctx, client, http.MethodGet, strings.TrimSuffix(at, "/")+"/health", nil, &answer); err != nil {
		return err
	}
	if answer.Health != "true" {
		return errors.New("not healthy: " + answer.Reason)
	}
	return nil
}

// count returns the number of keys with a prefix, as text, as etcd's gRPC gateway does.
func count(ctx context.Context, client *http.Client, at, prefix string) (string, error) {
	end := []byte(prefix)
	end[len(end)-1]++ // the first key after all of them
	body, err := json.Marshal(map[string]any{
		"key": base64.StdEncoding.EncodeToString([]byte(prefix)), "range_end": base64.StdEncoding.EncodeToString(end), "count_only": true,
	})
	if err != nil {
		return "", err
	}
	var answer struct{ Count string }
	err = request(ctx, client, http.MethodPost, strings.TrimSuffix(at, "/")+"/v3/kv/range", body, &answer)
	return answer.Count, err
}

func request(ctx context.Context, client *http.Client, method, address string, body []byte, answer any) error {
	q, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r, err := client.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, maxResponse))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, answer); err != nil || r.StatusCode != http.StatusOK && r.StatusCode != http.StatusServiceUnavailable {
		return fmt.Errorf("unexpected response %s", r.Status)
	}
	return nil
}
