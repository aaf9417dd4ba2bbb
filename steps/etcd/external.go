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

// askFor is how long one endpoint has for an answer.
const askFor = 10 * time.Second

// mostAnswer is the most that is read of an answer, in bytes.
const mostAnswer = 1 << 20

// CheckExternal asks a store that stands already, the way that a master reaches
// it, how it is: each endpoint answers, and most of its members agree. Before the
// first master is made it holds no other cluster's objects.
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
					Advice: "see whether it runs and this host reaches it: etcdctl --endpoints=" + at + " endpoint health"})
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
		if err != nil { // one that tells its clients apart answers nobody here; its health is known
			h.Log.InfoContext(ctx, "the store does not say what it holds", "endpoint", answers, "err", err)
			return out, nil
		}
		if n != "" && n != "0" {
			out = append(out, steps.Finding{What: fmt.Sprintf("etcd at %s holds %s keys under %s: another cluster's, or one's that is gone", answers, n, prefix),
				Advice: "if nobody needs them: etcdctl --endpoints=" + answers + " del --prefix " + prefix + "; else set spec.kubernetes.apiServer.extraArgs: {etcd-prefix: /another}"})
		}
		return out, nil
	})
}

// NoteLeft says what a removal leaves in a store that is not kubexm's.
func NoteLeft(c *manifest.Cluster) steps.Step {
	return op.Check("etcd.note-left", func(_ context.Context, _ *steps.Host) (steps.Findings, error) {
		prefix := keyPrefix(c)
		return steps.Findings{{
			Warning: true, What: "the cluster's objects stay in the etcd at " + strings.Join(c.Spec.Etcd.External.Endpoints, ", ") + ", under " + prefix,
			Advice: "when nobody needs them any more: etcdctl del --prefix " + prefix,
		}}, nil
	})
}

// begun tells whether kubexm has begun to make the host part of this cluster.
func begun(ctx context.Context, h *steps.Host) (bool, error) {
	return h.Exists(ctx, op.RecordDir(h))
}

// keyPrefix is what the keys of the cluster's objects begin with.
func keyPrefix(c *manifest.Cluster) string {
	prefix := "/registry"
	for _, a := range c.Spec.Kubernetes.APIServer.ExtraArgs {
		if a.Name == "etcd-prefix" {
			prefix = a.Value
		}
	}
	return "/" + strings.Trim(prefix, "/") + "/"
}

// clientFrom is a client whose connections go out from h.
func clientFrom(c *manifest.Cluster, h *steps.Host) (*http.Client, error) {
	f, ok := h.Conn().(connector.Forwarder)
	if !ok {
		return nil, errors.New("the connection to this host carries no TCP")
	}
	conf, err := clientConfig(c.Spec.Etcd.External)
	if err != nil {
		return nil, err
	}
	return &http.Client{Timeout: cmp.Or(h.Waits.Header, askFor), Transport: &http.Transport{
		TLSClientConfig: conf,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return f.Dial(ctx, network, address)
		},
	}}, nil
}

// healthy asks one endpoint. Its answer tells whether there is a leader that it follows.
func healthy(ctx context.Context, client *http.Client, at string) error {
	var answer struct{ Health, Reason string }
	if err := ask(ctx, client, http.MethodGet, strings.TrimSuffix(at, "/")+"/health", nil, &answer); err != nil {
		return err
	}
	if answer.Health != "true" {
		return errors.New("it is not healthy: " + answer.Reason)
	}
	return nil
}

// count gives how many keys begin with a prefix, as etcd's gateway writes it.
func count(ctx context.Context, client *http.Client, at, prefix string) (string, error) {
	end := []byte(prefix)
	end[len(end)-1]++ // the first key behind all of them
	body, err := json.Marshal(map[string]any{
		"key": base64.StdEncoding.EncodeToString([]byte(prefix)), "range_end": base64.StdEncoding.EncodeToString(end), "count_only": true,
	})
	if err != nil {
		return "", err
	}
	var answer struct{ Count string }
	err = ask(ctx, client, http.MethodPost, strings.TrimSuffix(at, "/")+"/v3/kv/range", body, &answer)
	return answer.Count, err
}

func ask(ctx context.Context, client *http.Client, method, address string, body []byte, answer any) error {
	q, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r, err := client.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, mostAnswer))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, answer); err != nil || r.StatusCode != http.StatusOK && r.StatusCode != http.StatusServiceUnavailable {
		return fmt.Errorf("it answers with %s", r.Status)
	}
	return nil
}
