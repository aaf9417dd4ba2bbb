package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
)

// private serves a chart repository with a password. The archives are on another server,
// which must not receive the password.
func private(t *testing.T) (repository, store *upstream) {
	t.Helper()
	content := packedChart(t, "db", "2.1.0", "")
	store = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || strings.Contains(r.URL.String(), "hunter2") {
			t.Errorf("another server is told the login: %s, %s", r.URL, r.Header.Get("Authorization"))
		}
		served(content, "")(w, r)
	})
	repository = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "hunter2" {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch r.URL.Path {
		case "/charts/index.yaml":
			fmt.Fprintf(w, "entries: {db: [{name: db, version: 2.1.0, urls: [db.tgz]}, {name: db, version: 2.0.0, urls: [broken.tgz]}]}\n")
		case "/charts/db.tgz":
			http.Redirect(w, r, store.URL+"/db.tgz?sig=secret", http.StatusFound)
		default:
			w.WriteHeader(http.StatusTeapot)
		}
	})
	return repository, store
}

// TestChartRepositoriesWithAPassword: the login of docker's file or of Helm's list
// goes to the repository, and nowhere else, whatever it redirects to.
func TestChartRepositoriesWithAPassword(t *testing.T) {
	u, _ := private(t)
	helm := func(lines ...string) string {
		path := filepath.Join(t.TempDir(), "repositories.yaml")
		write(t, path, []byte("repositories:\n"+strings.Join(lines, "\n")))
		return path
	}
	host := u.Listener.Addr().String()
	for name, c := range map[string]struct {
		docker, helm string
		works        bool
	}{
		"none":                         {"", "", false},
		"no list":                      {"", filepath.Join(t.TempDir(), "none.yaml"), false},
		"docker's":                     {dockerConfig(t, host, "me", "hunter2"), "", true},
		"docker's for the folder":      {dockerConfig(t, host+"/charts", "me", "hunter2"), "", true},
		"docker's for another":         {dockerConfig(t, "other.test", "me", "hunter2"), "", false},
		"docker's, wrong":              {dockerConfig(t, host, "me", "hunter3"), "", false},
		"Helm's":                       {"", helm("- {name: a, url: '" + u.URL + "/charts/', username: me, password: hunter2}"), true},
		"Helm's, of two":               {"", helm("- {url: '"+u.URL+"', username: me, password: x}", "- {url: '"+u.URL+"/charts', username: me, password: hunter2}"), true},
		"Helm's for another folder":    {"", helm("- {url: '" + u.URL + "/others', username: me, password: hunter2}"), true},
		"Helm's for other folders":     {"", helm("- {url: '"+u.URL+"/a', username: me, password: hunter2}", "- {url: '"+u.URL+"/b', username: me, password: hunter2}"), false},
		"Helm's for another port":      {"", helm("- {url: 'http://127.0.0.1:1/charts', username: me, password: hunter2}"), false},
		"Helm's for https":             {"", helm("- {url: 'https://" + host + "/charts', username: me, password: hunter2}"), false},
		"Helm's beside a named config": {dockerConfig(t, "other.test", "me", "hunter2"), helm("- {url: '" + u.URL + "/charts', username: me, password: hunter2}"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DOCKER_CONFIG", t.TempDir())
			o := options(t, u)
			var log bytes.Buffer
			o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			o.Sources.DockerConfig, o.Helm = c.docker, c.helm
			cl := client(t, o)
			a, err := cl.PinArtifact(t.Context(), manifest.Artifact{ID: "chart/db", Kind: manifest.Chart, Name: "db", Version: "2.1.0", Repository: "https://upstream.test/charts"})
			if err == nil {
				err = cl.FetchArtifact(t.Context(), a)
			}
			if (err == nil) != c.works {
				t.Errorf("%v", err)
			}
			if e, ok := errors.AsType[*StatusError](err); !c.works && (!ok || e.Code != http.StatusUnauthorized || !strings.Contains(err.Error(), "helm repo add --username")) {
				t.Errorf("%v", err)
			}
			_, broken := cl.PinArtifact(t.Context(), manifest.Artifact{Kind: manifest.Chart, Name: "db", Version: "2.0.0", Repository: "https://upstream.test/charts"})
			if said := fmt.Sprint(err, broken, a) + log.String(); broken == nil || strings.Contains(said, "hunter") || strings.Contains(said, "sig=") {
				t.Errorf("told: %s", said)
			}
		})
	}
}

// TestALoginIsForOnePlace: scheme, host and port.
func TestALoginIsForOnePlace(t *testing.T) {
	for _, address := range []string{"https://charts.example/x", "https://charts.example:8443/x", "http://charts.example/x", "https://sub.charts.example/x", "https://evil.example/charts.example"} {
		var got string
		login := &basicLogin{login: login{"me", "hunter2"}, scheme: "https", host: "charts.example", base: roundTrip(func(r *http.Request) { got = r.Header.Get("Authorization") })}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		req := &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}
		if _, err := login.RoundTrip(req); err == nil || (got != "") != (address == "https://charts.example/x") || len(req.Header) > 0 {
			t.Errorf("%s: %q, %v, %v", address, got, req.Header, err)
		}
	}
}

type roundTrip func(*http.Request)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r)
	return nil, errors.New("nobody there")
}

// TestPasswordsInAddressesAreRefused: without printing them, because they would be written
// to the lock.
func TestPasswordsInAddressesAreRefused(t *testing.T) {
	w := newChartWorld(t)
	w.index = "entries: {db: [{name: db, version: 2.1.0, urls: ['https://me:hunter2@upstream.test/charts/files/db.tgz']}]}"
	u := serve(t, func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte(w.index)) })
	_, index := client(t, options(t, u)).PinArtifact(t.Context(), manifest.Artifact{Kind: manifest.Chart, Name: "db", Version: "2.1.0", Repository: "https://upstream.test/charts"})
	errs := map[string]error{"index": index}
	for _, repository := range []string{"https://me:hunter2@upstream.test/charts", "oci://me:hunter2@upstream.test/charts", "s3://me:hunter2@upstream.test"} {
		w.folder(t, map[string]string{"c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies: [{name: db, version: 2.1.0, repository: '" + repository + "'}]\n"})
		_, errs[repository] = w.client.PinArtifact(t.Context(), manifest.Artifact{Kind: manifest.Chart, Name: "c", Address: "c", Version: "config"})
	}
	for name, err := range errs {
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "would go into the bundle") {
			t.Errorf("%s: %v", name, err)
		}
	}
	list := filepath.Join(t.TempDir(), "repositories.yaml")
	write(t, list, []byte("repositories: hunter2"))
	o := options(t, u)
	o.Helm = list
	if _, err := New(o); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), list) {
		t.Errorf("%v", err)
	}
}
