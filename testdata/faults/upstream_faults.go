package main

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"time"
)

// times strikes the first n requests, and every request where n is 0.
func times(n int, a answer) fault {
	return func(at int) answer {
		if n == 0 || at <= n {
			return a
		}
		return nil
	}
}

// inTurn strikes one request with each answer, then no more.
func inTurn(all ...answer) fault {
	return func(at int) answer {
		if at <= len(all) {
			return all[at-1]
		}
		return nil
	}
}

// half sends the first half of the content and cuts.
func half(c *call) {
	c.head(http.StatusOK, len(c.body))
	c.write(c.body[:len(c.body)/2])
	c.cut()
}

// halfOfOther is half of another content under another tag.
func halfOfOther(c *call) {
	c.etag = `"before"`
	c.head(http.StatusOK, len(c.body))
	c.write(c.other()[:len(c.body)/2])
	c.cut()
}

// upstreamFaults is every fault with what has to come of it.
func upstreamFaults() []upstreamFault {
	all := ranges()
	all = append(all, lengths()...)
	all = append(all, redirects()...)
	all = append(all, refusals()...)
	all = append(all, slowness()...)
	return append(all, contents()...)
}

// ranges are the faults of a download that is continued.
func ranges() []upstreamFault {
	whole := func(c *call) { c.head(http.StatusOK, len(c.body)); c.write(c.body) }
	return []upstreamFault{
		{name: "cut, then continued", quick: 4, answer: inTurn(half)},
		{name: "cut before the first byte, 3 times", answer: times(3, (*call).cut)},
		{name: "cut, then 200 to the Range", quick: 1, answer: inTurn(half, whole)},
		{name: "cut, then 416", quick: 2, answer: inTurn(half, status(http.StatusRequestedRangeNotSatisfiable))},
		{name: "cut and 416, for ever", waits: true, code: 1, words: []string{"gave up after 6 attempts"}, answer: func(int) answer {
			return func(c *call) {
				if c.r.Header.Get("Range") == "" {
					half(c)
				}
				status(http.StatusRequestedRangeNotSatisfiable)(c)
			}
		}},
		{name: "ETag changes mid-way, If-Range kept", quick: 3, answer: inTurn(halfOfOther)},
		{name: "ETag changes mid-way, 206 all the same", quick: 1, answer: inTurn(halfOfOther, func(c *call) { c.part(c.body) })},
		{name: "other bytes continued, no ETag", answer: inTurn(
			func(c *call) {
				c.etag = ""
				c.head(http.StatusOK, len(c.body))
				c.write(c.other()[:len(c.body)/2])
				c.cut()
			},
			func(c *call) { c.etag = ""; c.part(c.body) })},
		{name: "206 from the wrong place", answer: inTurn(half, func(c *call) { c.from = 5; c.part(c.body) })},
		{name: "206 of another total", answer: inTurn(half, func(c *call) { c.part(append(c.body, 1, 2, 3)) })},
		{name: "cut for ever", waits: true, answer: times(0, (*call).cut), code: 1, words: []string{"gave up after 6 attempts"}},
	}
}

// lengths are the lies about how long it is.
func lengths() []upstreamFault {
	announce := func(more int) answer {
		return func(c *call) {
			c.head(http.StatusOK, len(c.body)+more)
			c.write(c.body[:min(len(c.body), len(c.body)+more)])
			c.cut()
		}
	}
	chunked := func(first, more int) answer {
		return func(c *call) {
			c.head(http.StatusOK, -1)
			c.write(append(bytes.Clone(c.body[:len(c.body)*first/100]), make([]byte, more)...))
		}
	}
	return []upstreamFault{
		{name: "length too long", quick: 3, answer: times(0, announce(100)), code: 4, words: []string{"bytes, expected"}},
		{name: "length too short", answer: times(0, announce(-100)), code: 4, words: []string{"bytes, expected"}},
		{name: "length too short once", answer: times(1, announce(-100))},
		{name: "no length", answer: times(0, chunked(100, 0))},
		{name: "no length, ends early once", quick: 1, answer: times(1, chunked(40, 0))},
		{name: "no length, too much", answer: times(0, chunked(100, 7)), code: 4, words: []string{"expected"}},
		{name: "nothing at all", waits: true, answer: times(0, chunked(0, 0)), code: 1, words: []string{"ended before the transfer was complete"}},
	}
}

func redirects() []upstreamFault {
	to := func(address func(c *call) string) answer {
		return func(c *call) { http.Redirect(c.w, c.r, address(c), http.StatusTemporaryRedirect) }
	}
	return []upstreamFault{
		{name: "redirect, good", answer: inTurn(to(func(c *call) string { return c.r.URL.Path + "?again" }))},
		{name: "redirect to another host", answer: times(0, to(func(c *call) string { return c.p.other.URL + c.r.URL.Path }))},
		{name: "redirect to another host, after a cut", quick: 3, answer: inTurn(half, to(func(c *call) string { return c.p.other.URL + c.r.URL.Path }))},
		{name: "redirect in a circle", quick: 1, answer: times(0, to(func(c *call) string { return c.r.URL.Path })), code: 1, words: []string{"stopped after 10 redirects"}},
		{name: "redirect to nothing", answer: times(0, to(func(c *call) string { return c.p.other.URL + "/nothing" })), code: 1, words: []string{"404 Not Found"}},
	}
}

func refusals() []upstreamFault {
	all := []string{file, layer, index}
	return []upstreamFault{
		{name: "429, Retry-After 2, once", quick: 3, only: all, answer: times(1, status(429, "Retry-After", "2")), took: 2 * time.Second},
		{name: "429, Retry-After a date", only: all, answer: times(1, func(c *call) {
			status(429, "Retry-After", time.Now().Add(3*time.Second).UTC().Format(http.TimeFormat))(c)
		}), took: 2 * time.Second},
		{name: "429, Retry-After an hour", only: all, answer: times(0, status(429, "Retry-After", "3600")), code: 1, words: []string{"429 Too Many Requests", "wait"}},
		{name: "503 twice", only: all, answer: times(2, status(503))},
		{name: "503, then 500, then cut", quick: 2, only: all, answer: inTurn(status(503), status(500), (*call).cut)},
		{name: "503 for ever", only: all, waits: true, answer: times(0, status(503)), code: 1, words: []string{"gave up after 6 attempts", "503 Service Unavailable"}},
		{name: "404", only: all, answer: times(0, status(404)), code: 1, words: []string{"404 Not Found", "check that this version exists"}},
		{name: "404", quick: 1, only: []string{deb}, answer: times(0, status(404)), code: 1, words: []string{"404 Not Found", "lock again"}},
		{name: "403", only: all, answer: times(0, status(403)), code: 1, words: []string{"403 Forbidden"}},
	}
}

// slowness is what ends after a time or never.
func slowness() []upstreamFault {
	stall := func(share int) answer {
		return func(c *call) {
			if share >= 0 {
				c.head(http.StatusOK, len(c.body))
				c.write(c.body[:len(c.body)*share/100])
				c.flush()
			}
			<-c.r.Context().Done()
		}
	}
	drip := func(n int, pause time.Duration) answer {
		return func(c *call) {
			c.head(http.StatusOK, len(c.body))
			for b := c.body; len(b) > 0 && c.r.Context().Err() == nil; wait(c.r.Context(), pause) {
				k := min(n, len(b))
				if !c.write(b[:k]) {
					return
				}
				c.flush()
				b = b[k:]
			}
		}
	}
	two := []string{file, layer}
	return []upstreamFault{
		{name: "stalls mid-way, once", only: two, waits: true, answer: times(1, stall(50)), took: 30 * time.Second},
		{name: "stalls before it answers, once", only: two, waits: true, answer: times(1, stall(-1)), took: 30 * time.Second},
		{name: "stalls for ever", only: two, waits: true, answer: times(0, stall(-1)), code: 1, words: []string{"sent nothing for 30s"}},
		{name: "drips 4 KiB in 50 ms", only: two, answer: times(0, drip(4<<10, 50*time.Millisecond))},
		{name: "drips a byte a second", only: two, waits: true, answer: times(0, drip(1, time.Second)), code: 1, words: []string{"sent nothing for 30s"}},
	}
}

// contents are answers that are not what was asked for.
func contents() []upstreamFault {
	all := []string{file, packed, layer, index}
	send := func(b func(c *call) []byte) answer { return func(c *call) { c.part(b(c)) } }
	page := func(*call) []byte { return []byte("<html><body>Please log in to this network.</body></html>") }
	return []upstreamFault{
		{name: "one bit wrong, once", quick: 1, only: all, answer: times(1, send((*call).flipped))},
		{name: "one bit wrong, always", quick: 3, only: all, answer: times(0, send((*call).flipped)), code: 4, words: []string{"has sha256", "expected"}},
		{name: "a login page", only: all, answer: times(0, func(c *call) { c.typ = "text/html"; send(page)(c) }), code: 4, words: []string{"expected"}},
		{name: "compressed on the way", answer: times(0, func(c *call) {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write(c.body) // to memory
			_ = z.Close()
			c.w.Header().Set("Content-Encoding", "gzip")
			c.head(http.StatusOK, b.Len())
			c.write(b.Bytes())
		}), code: 4, words: []string{"expected"}},
		{name: "an answer that is no http, once", only: all, answer: times(1, func(c *call) {
			conn, _, err := http.NewResponseController(c.w).Hijack()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n")) // as far as it goes
			_ = conn.Close()
		})},
	}
}
