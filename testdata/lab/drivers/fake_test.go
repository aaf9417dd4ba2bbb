package drivers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeAPI answers what the drivers ask an API server, and does wrong what a test asks for.
type fakeAPI struct {
	web     string // host:port of what the Service leads to
	stopWeb func()
	token   string // that the watcher's account gets

	mu      sync.Mutex
	exists  bool // the namespace
	kinds   []string
	version uint64
	maps    map[string]configMap
	events  []fakeEvent // in the order of versions
	changed chan struct{}

	lose     func(n int) bool // acknowledges a write and does not keep it
	lost     []int
	hide     func(n int) bool // shows a write to no watch
	oldest   uint64           // what was before is gone: 410
	status   int              // that all but the administrator's reading is answered by; 0 is none
	waiting  int              // requests that were held
	held     chan struct{}    // requests wait until it is closed; nil is open
	cuts     chan struct{}    // closed, and made anew, where all watches end
	abruptly bool             // and with a connection that is cut, or not
	relists  int
	streams  int
}

type fakeEvent struct {
	version uint64
	n       int
	text    []byte
}

func newFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "web-1 answers") }))
	t.Cleanup(web.Close)
	return &fakeAPI{web: web.Listener.Addr().String(), stopWeb: web.Close, token: "watcher", version: 100, maps: map[string]configMap{}, changed: make(chan struct{}), cuts: make(chan struct{})}
}

// serve has the API listen once more: at an address, or with "" at any.
func (f *fakeAPI) serve(t *testing.T, address string) *httptest.Server {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", cmp.Or(address, "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	ending := make(chan struct{}) // a graceful end ends watches too
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.answer(w, r, ending) }))
	s.Listener.Close()
	s.Listener, s.EnableHTTP2 = l, true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	end := sync.OnceFunc(func() { close(ending) })
	s.Config.RegisterOnShutdown(end)
	s.StartTLS()
	t.Cleanup(func() {
		end()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// config reaches the API at a server, with everything faster than in a cluster.
func (f *fakeAPI) config(s *httptest.Server) Config {
	return Config{
		Endpoint: s.URL, CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), Token: "admin",
		ServiceDial: f.reaches((&net.Dialer{}).DialContext),
		Settle:      time.Minute, WriteTimeout: time.Minute, ProbeTimeout: time.Minute, // on a busy machine too
	}
}

// reaches dials what the Service leads to, whatever it is asked for.
func (f *fakeAPI) reaches(dial Dial) Dial {
	return func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, f.web) }
}

// with changes what the fake does.
func (f *fakeAPI) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// cut ends all watches.
func (f *fakeAPI) cut(abruptly bool) {
	f.with(func() {
		f.abruptly = abruptly
		close(f.cuts)
		f.cuts = make(chan struct{})
	})
}

func (f *fakeAPI) answer(w http.ResponseWriter, r *http.Request, ending chan struct{}) {
	f.mu.Lock()
	held, status := f.held, f.status
	if held != nil {
		f.waiting++
	}
	f.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
	}
	path := strings.TrimPrefix(r.URL.Path, inside)
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	reads := strings.HasPrefix(path, "/configmaps") && r.Method == http.MethodGet
	switch {
	case token != "admin" && (token != "watcher" || !reads):
		refuse(w, http.StatusForbidden, "Forbidden")
	case status != 0 && (token == "watcher" || r.Method == http.MethodPatch):
		refuse(w, status, "Broken")
	case reads && r.URL.Query().Get("watch") == "true":
		f.watch(w, r, ending)
	case reads:
		f.list(w, r)
	case strings.HasPrefix(path, "/configmaps"):
		f.write(w, r, strings.TrimPrefix(path, "/configmaps/"))
	default:
		f.other(w, r, path)
	}
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", plainJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "code": code, "reason": reason, "message": "the fake refuses"})
}

// other answers what sets up and cleans up.
func (f *fakeAPI) other(w http.ResponseWriter, r *http.Request, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	host, port, _ := net.SplitHostPort(f.web)
	number, _ := strconv.Atoi(port)
	var got any = map[string]any{}
	switch kind := path[strings.LastIndex(path, "/")+1:]; {
	case r.Method == http.MethodDelete && path == "":
		if !f.exists {
			refuse(w, http.StatusNotFound, "NotFound")
			return
		}
		f.exists, f.kinds, f.maps = false, nil, map[string]configMap{}
	case kind == "namespaces" && f.exists:
		refuse(w, http.StatusConflict, "AlreadyExists")
		return
	case kind == "namespaces":
		f.exists = true
	case kind == "nodes":
		got = map[string]any{"items": []any{map[string]any{"status": map[string]any{"addresses": []any{
			map[string]any{"type": "Hostname", "address": "h1"}, map[string]any{"type": "InternalIP", "address": host}}}}}}
	case kind == "web":
		got = map[string]any{"status": map[string]any{"availableReplicas": replicas}}
	case kind == "services":
		f.kinds = append(f.kinds, kind)
		got = map[string]any{"spec": map[string]any{"clusterIP": "192.0.2.1", "ports": []any{map[string]any{"port": 80, "nodePort": number}}}}
	case kind == "token":
		got = map[string]any{"status": map[string]any{"token": f.token}}
	case r.Method == http.MethodPost:
		f.kinds = append(f.kinds, kind)
	default:
		refuse(w, http.StatusNotFound, "NotFound")
		return
	}
	_ = json.NewEncoder(w).Encode(got)
}

// write creates or patches a ConfigMap.
func (f *fakeAPI) write(w http.ResponseWriter, r *http.Request, name string) {
	var sent configMap
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest")
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Method == http.MethodPost {
		name = sent.Metadata.Name
	}
	is, ok := f.maps[name]
	if r.Method == http.MethodPatch && !ok {
		refuse(w, http.StatusNotFound, "NotFound")
		return
	}
	if r.Method == http.MethodPost && ok {
		refuse(w, http.StatusConflict, "AlreadyExists")
		return
	}
	f.version++
	n := -1
	sent.writes(func(i int) { n = i })
	now := is
	now.Metadata.Name, now.Metadata.ResourceVersion = name, strconv.FormatUint(f.version, 10)
	now.Data = maps.Clone(is.Data)
	if now.Data == nil {
		now.Data = map[string]string{}
	}
	maps.Copy(now.Data, sent.Data)
	text, _ := json.Marshal(map[string]any{"type": "MODIFIED", "object": now})
	if f.lose == nil || !f.lose(n) {
		f.maps[name] = now
	} else {
		f.lost = append(f.lost, n)
	}
	if f.hide == nil || !f.hide(n) {
		f.events = append(f.events, fakeEvent{version: f.version, n: n, text: text})
		close(f.changed)
		f.changed = make(chan struct{})
	}
	_ = json.NewEncoder(w).Encode(now)
}

func (f *fakeAPI) list(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Header.Get("Authorization") == "Bearer watcher" {
		f.relists++
	}
	items := []configMap{}
	for _, m := range f.maps {
		items = append(items, m)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"resourceVersion": strconv.FormatUint(f.version, 10)}, "items": items})
}

func (f *fakeAPI) watch(w http.ResponseWriter, r *http.Request, ending chan struct{}) {
	from, _ := strconv.ParseUint(r.URL.Query().Get("resourceVersion"), 10, 64)
	f.mu.Lock()
	cuts, gone := f.cuts, from < f.oldest
	f.streams++
	f.mu.Unlock()
	w.Header().Set("Content-Type", plainJSON)
	w.WriteHeader(http.StatusOK)
	if gone {
		_, _ = io.WriteString(w, `{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}}`)
		return
	}
	for flush := http.NewResponseController(w).Flush; flush() == nil; {
		f.mu.Lock()
		changed := f.changed
		var text bytes.Buffer
		for _, e := range f.events {
			if e.version > from {
				from = e.version
				text.Write(e.text)
			}
		}
		f.mu.Unlock()
		if text.Len() > 0 {
			w.Write(text.Bytes())
			continue
		}
		select {
		case <-changed:
		case <-ending:
			return
		case <-r.Context().Done():
			return
		case <-cuts:
			if f.abruptly {
				panic(http.ErrAbortHandler)
			}
			return
		}
	}
}
