package drivers

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	namespace  = "kubexm-drivers"
	inside     = "/api/v1/namespaces/" + namespace
	configMaps = inside + "/configmaps"
	label      = "kubexm-driver"
	ours       = "labelSelector=" + label + "%3Dwriter"
)

// writer writes ConfigMaps, every other time over a new connection.
type writer struct {
	kept, fresh *client
	book        *book
	acked       func(n int, w write)
	timeout     time.Duration
	run         string // tells this run's values from others'
}

func (w *writer) write(ctx context.Context, n int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.timeout) // a stop is no failed request
	defer cancel()
	by, way := w.kept, Kept
	if n%2 == 1 {
		by, way = w.fresh, New
	}
	value := fmt.Sprintf("%s-%d", w.run, n)
	version, err := put(ctx, by, n, value)
	at := time.Now()
	w.book.ended(at, err, Writes, way)
	if err == nil {
		w.acked(n, write{value: value, version: version, at: at})
	}
}

// put adds a write to its ConfigMap, which the first one of each makes.
func put(ctx context.Context, by *client, n int, value string) (version uint64, err error) {
	name, key := mapName(n), keyName(n)
	data := map[string]any{"data": map[string]string{key: value}}
	var got configMap
	patch := func() error { return by.ask(ctx, http.MethodPatch, configMaps+"/"+name, mergePatch, data, &got) }
	err = patch()
	if code(err) == http.StatusNotFound {
		err = by.ask(ctx, http.MethodPost, configMaps, plainJSON, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": data["data"],
			"metadata": map[string]any{"name": name, "labels": map[string]string{label: "writer"}},
		}, &got)
		if code(err) == http.StatusConflict { // another write has made it meanwhile
			err = patch()
		}
	}
	if err != nil {
		return 0, err
	}
	if got.Data[key] != value {
		return 0, fmt.Errorf("the answer lacks what was written")
	}
	return got.version()
}

// readBack lists what the store has of the writer's, past every cache of the API.
func readBack(ctx context.Context, by *client) ([]configMap, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var list struct {
		Items []configMap `json:"items"`
	}
	err := by.ask(ctx, http.MethodGet, configMaps+"?"+ours, "", nil, &list)
	return list.Items, err
}
