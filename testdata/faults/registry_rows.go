package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	memory "github.com/google/go-containerregistry/pkg/registry"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
)

// registryFault is a way for a site's registry to misbehave while a bundle's
// images are sent to it.
type registryFault struct {
	name  string
	words []string // what the error says; none wants all images whole
	quick bool
	// strike answers a request in the registry's stead and tells that it did. It
	// is told how many requests of this kind came before, and are under way.
	strike func(w http.ResponseWriter, r *http.Request, s *faultyRegistry) bool
}

func registryRows() []row {
	var rows []row
	for _, f := range []registryFault{
		{name: "429, Retry-After 1, every third question", strike: answers(asks, 429, thirds, "Retry-After", "1")},
		{name: "429 to the start of an upload, once", strike: answers(starts, 429, once)},
		{name: "429 to an upload, once", quick: true, strike: answers(sends, 429, once)},
		{name: "503 to an upload, once", strike: answers(sends, 503, once)},
		{name: "429 above two requests at once", strike: throttles},
		{name: "429 for ever", words: []string{"429"}, strike: answers("", 429, always)},
		{name: "an upload session forgotten, once", quick: true, strike: answers(sends, 404, once)},
		{name: "an upload session forgotten, always", words: []string{"404"}, strike: answers(sends, 404, always)},
		{name: "an upload forgotten that was taken", quick: true, words: []string{"manifest blob unknown"}, strike: forgets},
		{name: "cut within an upload", quick: true, strike: cuts},
		{name: "mounting refused with 400", strike: answers(mounts, 400, always)},
		{name: "mounting refused with 405", strike: answers(mounts, 405, always)},
		{name: "a manifest refused", words: []string{"403"}, strike: answers(putting, 403, always)},
		{name: "503 to a manifest, once", strike: answers(putting, 503, once)},
	} {
		expect := "every image whole"
		if f.words != nil {
			expect = "an error: " + strings.Join(f.words, ", ") + "; whole when sent again"
		}
		rows = append(rows, row{group: "registry", fault: f.name, expect: expect, waits: true, quick: f.quick, run: f.run})
	}
	return rows
}

// run sends the images of the whole archive to a registry with the fault, and
// once more without it where that failed.
func (f registryFault) run(ctx context.Context, l *lab) (string, error) {
	b, err := bundle.Open(ctx, l.whole, bundle.Policy{AllowUnsigned: true})
	if err != nil {
		return "", err
	}
	defer b.Close()
	s := &faultyRegistry{inner: memory.New(memory.Logger(silent())), fault: f, count: map[string]int{}, kept: map[string]document{}}
	s.Server = httptest.NewServer(s)
	defer s.Close()
	t := registry.Target{Mapper: registry.Mapper{Host: strings.TrimPrefix(s.URL, "http://")}, PlainHTTP: true}
	images := l.pinned.Images
	err = send(ctx, t, b, images)
	came := "every image whole"
	if err != nil {
		came = strings.ReplaceAll(err.Error(), t.Host, "REGISTRY")
	}
	s.mu.Lock()
	s.fine = true
	s.mu.Unlock()
	// Whatever happened: what is tagged is whole.
	if err := s.tagged(ctx, t, b, images); err != nil {
		return came, err
	}
	if f.words == nil {
		if err != nil {
			return came, errors.New("a transfer that had to succeed")
		}
		return came, missesNone(ctx, t, b, images)
	}
	if err == nil {
		return came, errors.New("it says that all is well")
	}
	for _, w := range f.words {
		if !strings.Contains(came, w) {
			return came, fmt.Errorf("the error does not say %q", w)
		}
	}
	if err := send(ctx, t, b, images); err != nil {
		return came, fmt.Errorf("sent again without the fault: %w", err)
	}
	return came, errors.Join(missesNone(ctx, t, b, images), s.tagged(ctx, t, b, images))
}

// send compares and fills, as an installation does.
func send(ctx context.Context, t registry.Target, b *bundle.Bundle, images []manifest.ImagePin) error {
	has, err := registry.Compare(ctx, t, b, images, 8)
	if err != nil {
		return err
	}
	_, _, err = registry.Fill(ctx, t, b, has, registry.Options{Parallel: 8})
	return err
}

func missesNone(ctx context.Context, t registry.Target, b *bundle.Bundle, images []manifest.ImagePin) error {
	has, err := registry.Compare(ctx, t, b, images, 1)
	if err == nil && has.Missing() > 0 {
		err = fmt.Errorf("MISSING: %d images", has.Missing())
	}
	return err
}
