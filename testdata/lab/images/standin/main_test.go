package main

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
)

// TestAStandInAnswersProbesOfBothKinds at one port.
func TestAStandInAnswersProbesOfBothKinds(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config, err := certificate()
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })}
	go func() { _ = s.Serve(&either{Listener: l, config: config}) }()
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	silent, err := net.Dial("tcp", l.Addr().String()) // and holds nobody up
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // as a kubelet's probe
	for _, scheme := range []string{"http", "https"} {
		for range 2 {
			r, err := c.Get(scheme + "://" + l.Addr().String() + "/healthz")
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r.Body)
			_ = r.Body.Close()
			if err != nil || string(b) != "ok" || r.StatusCode != http.StatusOK {
				t.Errorf("%s: %d %q, %v", scheme, r.StatusCode, b, err)
			}
		}
	}
	c.CloseIdleConnections()
}
