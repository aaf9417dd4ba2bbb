package drivers

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// started starts drivers against a fake, and stops them at the latest when the test ends.
func started(t *testing.T, c Config) *Drivers {
	t.Helper()
	d, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = d.Stop(context.Background()) })
	return d
}

// stopped gives the report, and the phase of a name.
func stopped(t *testing.T, d *Drivers, phase string) (*Report, *Phase) {
	t.Helper()
	r, err := d.Stop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + r.String())
	r.Cores = math.MaxInt // on a busy machine too limits are what they are
	p, err := r.Phase(phase)
	if err != nil {
		t.Fatal(err)
	}
	return r, p
}

// eventually waits for something that takes no certain time.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a minute, and not: %s", what)
		}
	}
}

// counted is the number of requests that a way has had in the last phase.
func (d *Drivers) counted(way string) (n int) {
	d.book.note(time.Now(), func(p *Phase) { n = p.Ways[way].Requests })
	return n
}

// passes waits until so many writes more have ended, and a quarter as many probes each way.
func (d *Drivers) passes(t *testing.T, writes int) {
	t.Helper()
	w, n, s := d.counted(Writes)+writes, d.counted(NodePort)+writes/4, d.counted(Service)+writes/4
	eventually(t, "requests end", func() bool { return d.counted(Writes) >= w && d.counted(NodePort) >= n && d.counted(Service) >= s })
}

// TestQuiet: a cluster that does nothing wrong passes the strictest limit, and nothing
// stays in it.
func TestQuiet(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	f.exists, f.maps["w-0000"] = true, configMap{Data: map[string]string{"n000001": "of an earlier run"}}
	c := f.config(f.serve(t, ""))
	c.Writes, c.StockWatch = 100, true
	d := started(t, c)
	var kinds []string
	f.with(func() { kinds = slices.Clone(f.kinds) })
	if want := []string{"serviceaccounts", "roles", "rolebindings", "poddisruptionbudgets", "services", "deployments"}; !slices.Equal(kinds, want) {
		t.Errorf("created %q, want %q", kinds, want)
	}
	d.passes(t, 60)
	d.Mark("nothing happens")
	if took, back := d.StockBack(t.Context(), time.Now(), time.Minute); !back || took <= 0 {
		t.Errorf("the second watch shows a write after %s: %v", took, back)
	}
	d.passes(t, 60)
	r, p := stopped(t, d, "nothing happens")
	if err := r.Check(p.Name, Limit{Gap: time.Minute, Watch: time.Minute}); err != nil {
		t.Error(err)
	}
	if sum := r.Phases[0].Watch.Events + p.Watch.Events; r.Acked < 120 || sum != r.Acked {
		t.Errorf("%d writes, %d events", r.Acked, sum)
	}
	if p.Stock.Events == 0 || p.Stock.Breaks > 0 || !strings.Contains(r.String(), "watch with client-go's own health checks") {
		t.Errorf("the second watch: %+v", p.Stock)
	}
	if p.Ways[Kept].Requests == 0 || p.Ways[Kept].Requests+p.Ways[New].Requests != p.Ways[Writes].Requests {
		t.Errorf("writes %+v are not the sum of %+v and %+v", p.Ways[Writes], p.Ways[Kept], p.Ways[New])
	}
	if f.exists || p.Load <= 0 {
		t.Errorf("the namespace is there: %v; load %v", f.exists, p.Load)
	}
}

// TestLoses: a write that was acknowledged and is not there, and one that was put back to
// an older value, are lost; they count where they were acknowledged.
func TestLoses(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	c := f.config(f.serve(t, ""))
	c.Writes = 100
	d := started(t, c)
	d.passes(t, 10)
	d.Mark("loses")
	f.with(func() { f.lose = func(n int) bool { return n%7 == 3 } })
	d.passes(t, 20)
	f.with(func() { f.lose = nil })
	d.passes(t, 10)
	r, p := stopped(t, d, "loses")
	if len(f.lost) < 2 || p.Lost != len(f.lost) || r.Phases[0].Lost > 0 {
		t.Errorf("%d writes are lost, %d before, and should be %v", p.Lost, r.Phases[0].Lost, f.lost)
	}
	if err := r.Check("loses", Limit{Gap: time.Minute, Watch: time.Minute, Failed: Unlimited, NewFailed: Unlimited}); err == nil || !strings.Contains(err.Error(), "lost writes") {
		t.Errorf("the check says %v", err)
	}
}

// TestRestored: a store that goes back to what it was loses all that came later.
func TestRestored(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	c := f.config(f.serve(t, ""))
	c.Writes = 100
	d := started(t, c)
	d.passes(t, 10)
	d.stopTraffic()
	d.traffic.Wait()
	f.with(func() {
		for name, m := range f.maps {
			m.Metadata.ResourceVersion = "1" // values are there, and the object is from before them
			f.maps[name] = m
		}
	})
	if r, p := stopped(t, d, Baseline); p.Lost != r.Acked || r.Acked == 0 {
		t.Errorf("%d of %d writes are lost", p.Lost, r.Acked)
	}
}

// TestHangs: a server that answers late fails nothing, and leaves a gap.
func TestHangs(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	d := started(t, f.config(f.serve(t, "")))
	d.passes(t, 4)
	d.Mark("hangs")
	held := make(chan struct{})
	f.with(func() { f.held = held })
	time.Sleep(time.Second)
	eventually(t, "requests are sent while none is answered", func() (more bool) {
		f.with(func() { more = f.waiting >= 3 })
		return more
	})
	f.with(func() { f.held = nil })
	close(held)
	d.passes(t, 10)
	r, p := stopped(t, d, "hangs")
	for _, way := range []string{Writes, Kept, New} {
		if p.Ways[way].Failed > 0 || p.Ways[way].Gap < 500*time.Millisecond {
			t.Errorf("%s: %+v", way, p.Ways[way])
		}
	}
	if err := r.Check("hangs", Limit{Gap: time.Millisecond, Watch: time.Minute}); err == nil || !strings.Contains(err.Error(), "longest gap") {
		t.Errorf("the check says %v", err)
	}
}

// TestRefuses: failed requests are counted with their reason.
func TestRefuses(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	c := f.config(f.serve(t, ""))
	c.Writes = 50
	d := started(t, c)
	d.passes(t, 10)
	d.Mark("refuses")
	f.with(func() { f.status = 503 })
	d.passes(t, 20)
	f.with(func() { f.status = 0 })
	d.passes(t, 10)
	r, p := stopped(t, d, "refuses")
	if n := p.Ways[Writes]; n.Failed < 10 || n.Errors["503 Broken"] != n.Failed || p.Ways[New].Failed == 0 || p.Ways[Kept].Failed == 0 {
		t.Errorf("%+v", n)
	}
	if p.Lost > 0 {
		t.Errorf("%d refused writes count as lost", p.Lost)
	}
	err := r.Check("refuses", Limit{Gap: time.Minute, Watch: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "failed requests: ") || !strings.Contains(err.Error(), "on new connections") {
		t.Errorf("the check says %v", err)
	}
	if !strings.Contains(r.String(), "503 Broken") {
		t.Error("the report does not name the error")
	}
}
