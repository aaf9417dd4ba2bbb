package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// object is an object of the API as JSON.
type object = map[string]any

// client sends requests to the API server with the token of a service account.
type client struct {
	base, token string
	http        *http.Client
}

func (c *client) send(ctx context.Context, method, path string, in object) (object, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+c.token)
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 16<<20))
	if err != nil {
		return nil, err
	}
	out := object{}
	if err := json.Unmarshal(text, &out); err != nil || answer.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %v", method, path, answer.Status, out["message"])
	}
	return out, nil
}

// lead takes the Lease of the provisioner, by its name in sig-storage-lib-external-provisioner. The
// lab has one provisioner, so that nobody contends for it.
func (c *client) lead(ctx context.Context, namespace, provisioner string) error {
	leases, name := "/apis/coordination.k8s.io/v1/namespaces/"+namespace+"/leases", strings.ReplaceAll(provisioner, "/", "-")
	spec := object{"holderIdentity": "localpv", "leaseDurationSeconds": 15, "renewTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")}
	is, err := c.send(ctx, http.MethodGet, leases+"/"+name, nil)
	if err != nil {
		_, err = c.send(ctx, http.MethodPost, leases, object{
			"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": object{"name": name}, "spec": spec,
		})
		return err
	}
	is["spec"] = spec
	_, err = c.send(ctx, http.MethodPut, leases+"/"+name, is)
	return err
}

// at returns the value at a path of fields; nil if there is none.
func at(o object, fields ...string) any {
	var v any = o
	for _, f := range fields {
		m, ok := v.(object)
		if !ok {
			return nil
		}
		v = m[f]
	}
	return v
}

// list returns the objects of a list.
func list(o object) []object {
	items, _ := o["items"].([]any)
	var out []object
	for _, i := range items {
		if m, ok := i.(object); ok {
			out = append(out, m)
		}
	}
	return out
}
