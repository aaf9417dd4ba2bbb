package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/mensylisir/kubexm/manifest"
)

// Options configures a Client. Cache is required; other fields have defaults.
type Options struct {
	Cache    *Cache
	Base     string           // folder that paths in a lock are relative to: the config's
	Sources  manifest.Sources // replacements for upstream, certificates and credentials
	Helm     string           // Helm's repositories.yaml, for its logins; not used if Sources has credentials
	Log      *slog.Logger     // nil discards logs
	Progress Progress         // nil reports no progress
	Note     func(string)     // receives notes for the user about pinned packages; nil logs them
	Etc      string           // folder with this machine's package repository configuration; default /etc

	Parallel  int    // connections per host; default 8
	UserAgent string // default "kubexm"

	Stall      time.Duration // how long a source may send almost nothing; default 30 s
	Attempts   int           // attempts without progress before giving up; default 6
	Backoff    time.Duration // pause before the second attempt, doubled for each further one; default 500 ms
	MaxBackoff time.Duration // longest pause without a request by the server; default 30 s
	MaxWait    time.Duration // longest pause that a server may request; default 2 min
}

// Client downloads pinned artifacts into a cache. It is safe for concurrent use; the caller
// limits the number of concurrent calls.
type Client struct {
	cache   *Cache
	options Options
	log     *slog.Logger
	http    *http.Client
	base    *transport
	limits  limits
	keys    authn.Keychain
	helm    []helmRepository

	noted sync.Map // notes that Note has received
	read  sync.Map // sha256 of an address of package metadata → sha256 of its content in this run

	mu           sync.Mutex
	repositories map[string]*http.Client // by registry/repository
	entering     keyedMutex              // repositories with a login in progress
}

// New returns a Client with these options.
func New(o Options) (*Client, error) {
	if o.Cache == nil {
		return nil, errors.New("a fetch client needs a cache")
	}
	o.setDefaults()
	var pool *x509.CertPool // nil: the system's certificates
	if o.Sources.CAFile != "" {
		var err error
		if pool, err = certificates(o.Sources.CAFile); err != nil {
			return nil, err
		}
	}
	keys, err := keychain(o.Sources.DockerConfig)
	if err != nil {
		return nil, err
	}
	var helm []helmRepository
	if o.Sources.DockerConfig == "" {
		if helm, err = helmRepositories(o.Helm); err != nil {
			return nil, err
		}
	}
	base := newTransport(o, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
	return &Client{
		cache:        o.Cache,
		options:      o,
		log:          o.Log,
		http:         &http.Client{Transport: base, CheckRedirect: checkRedirect},
		base:         base,
		limits:       defaultLimits(),
		keys:         keys,
		helm:         helm,
		repositories: map[string]*http.Client{},
	}, nil
}

func (o *Options) setDefaults() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = silent{}
	}
	if o.Note == nil {
		o.Note = func(text string) { o.Log.Warn("pinned packages", "note", text) }
	}
	orInt(&o.Parallel, 8)
	orInt(&o.Attempts, 6)
	orDuration(&o.Stall, 30*time.Second)
	orDuration(&o.Backoff, 500*time.Millisecond)
	orDuration(&o.MaxBackoff, 30*time.Second)
	orDuration(&o.MaxWait, 2*time.Minute)
	if o.UserAgent == "" {
		o.UserAgent = "kubexm"
	}
}

func orInt(n *int, d int) {
	if *n <= 0 {
		*n = d
	}
}

func orDuration(n *time.Duration, d time.Duration) {
	if *n <= 0 {
		*n = d
	}
}

// certificates returns the system's certificates and those in file.
func certificates(file string) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's certificates: %w", err)
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read certificates: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read certificates: %s contains none in PEM form", file)
	}
	return pool, nil
}

// plainKey is the context key that allows requests over plain http.
type plainKey struct{}

func allowPlainHTTP(ctx context.Context, plain bool) context.Context {
	if !plain {
		return ctx
	}
	return context.WithValue(ctx, plainKey{}, true)
}

func plainHTTPAllowed(ctx context.Context) bool {
	allowed, _ := ctx.Value(plainKey{}).(bool)
	return allowed
}
