package registry

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A registry that is busy, breaks off or forgets an upload once gets the blob
// again; what it says for good is not asked again.
func TestUploadsAreSentAgain(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(http.ResponseWriter)
		again  bool
	}{
		"busy":      {func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) }, true},
		"not now":   {func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, true},
		"forgotten": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, true},
		"cut":       {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, true},
		"refused":   {func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			src, images := newMemorySource()
			site := newSite(t)
			inner, n := site.Config.Handler, 0
			var mu sync.Mutex
			site.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut && r.URL.Query().Has("digest") {
					mu.Lock()
					n++
					strike := n == 2
					mu.Unlock()
					if strike {
						_, _ = io.CopyN(io.Discard, r.Body, 10)
						test.answer(w)
						return
					}
				}
				inner.ServeHTTP(w, r)
			})
			_, err := send(t.Context(), site.target(), src, images, Options{Parallel: 2})
			if (err == nil) != test.again {
				t.Fatalf("send: %v", err)
			}
			if test.again && missing(t, site.target(), src, images) > 0 {
				t.Error("images are missing")
			}
		})
	}
}

// slowly answers after a while, and 429 to requests above its limit.
type slowly struct {
	mu             sync.Mutex
	now, room, bad int
}

func (s *slowly) RoundTrip(*http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.now++
	code := http.StatusOK
	if s.now > s.room {
		code = http.StatusTooManyRequests
		s.bad++
	}
	s.mu.Unlock()
	time.Sleep(time.Millisecond)
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
	return &http.Response{StatusCode: code, Header: http.Header{}}, nil
}

// Many requests at once to a registry that accepts two soon become two or three.
func TestPaceFindsTheRoom(t *testing.T) {
	s := &slowly{room: 2}
	p := newPace(s, 16)
	var wg sync.WaitGroup
	const all = 400
	work := make(chan int, all)
	for i := range all {
		work <- i
	}
	close(work)
	for range 16 {
		wg.Go(func() {
			for range work {
				if _, err := p.RoundTrip((&http.Request{}).WithContext(t.Context())); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if s.bad > all*2/5 { // each try for one more is refused once
		t.Errorf("%d of %d were refused", s.bad, all)
	}
	if s.bad == 0 {
		t.Error("nothing was refused: this test tries nothing")
	}
}

// Good answers let as many through again as at the beginning, one more for each
// full round, and no more than that.
func TestPaceGrowsAgain(t *testing.T) {
	p := newPace(nil, 4)
	answer := func(code int) int {
		p.now++
		p.leave(&http.Response{StatusCode: code, Header: http.Header{}})
		return p.limit
	}
	var got []int
	for _, code := range []int{503, 429, 429, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200} {
		got = append(got, answer(code))
	}
	if want := []int{2, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Nothing is sent before the time that the registry asks for, and who waits
// can be interrupted.
func TestPaceWaitsAsAsked(t *testing.T) { synctest.Test(t, paceWaitsAsAsked) }

func paceWaitsAsAsked(t *testing.T) {
	p := newPace(nil, 4)
	p.now = 1
	p.leave(&http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"1"}}})
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if err := p.enter(ctx); err == nil {
		t.Error("it did not wait")
	}
	begin := time.Now()
	if err := p.enter(t.Context()); err != nil || time.Since(begin) != 900*time.Millisecond {
		t.Errorf("waited %s, %v", time.Since(begin), err)
	}
}
