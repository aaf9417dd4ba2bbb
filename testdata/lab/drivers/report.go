package drivers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Baseline is the first phase, in which nothing is done to the cluster.
const Baseline = "baseline"

// Report is what the drivers measured.
type Report struct {
	Phases []*Phase
	Acked  int  // writes that the API acknowledged
	Read   bool // whether they were read back; without that, Lost says nothing
	Cores  int  // of the machine
}

// Phase is a part of a run. What takes time counts in each phase that it touches, with
// the length that it had by that phase's end; a request counts where it ended.
type Phase struct {
	Name  string
	Began time.Time
	Took  time.Duration
	Ways  map[string]*Count // Writes, Kept, New, NodePort, Service
	Lost  int               // writes acknowledged in this phase that are not in the store
	Watch Watch
	Stock Watch         // of the second watch; zero without one
	Stall time.Duration // the most that the drivers themselves were late: the machine was busy
	Load  float64       // the highest load average of the machine, over a minute
}

// Count counts the requests of one way.
type Count struct {
	Requests, Failed int
	Gap              time.Duration // the longest time without a success
	Errors           map[string]int
}

// Watch is what the watcher saw.
type Watch struct {
	Events  int
	Breaks  int           // streams that ended before their time
	Silence time.Duration // the longest time from a write's acknowledgement to the arrival of its event
	Back    time.Duration // the longest time from a break, as the client notices it, to the next stream
	Missed  int           // acknowledged writes whose event never arrived
}

// Phase gives the phase of a name.
func (r *Report) Phase(name string) (*Phase, error) {
	for _, p := range r.Phases {
		if p.Name == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("the report has no phase %q", name)
}

// Lost is the number of acknowledged writes that are not in the store.
func (r *Report) Lost() (n int) {
	for _, p := range r.Phases {
		n += p.Lost
	}
	return n
}

// String is the report as people read it.
func (r *Report) String() string {
	var b strings.Builder
	lost := fmt.Sprintf("%d of %d acknowledged writes are lost", r.Lost(), r.Acked)
	if !r.Read {
		lost = fmt.Sprintf("%d acknowledged writes were NOT read back", r.Acked)
	}
	fmt.Fprintf(&b, "drivers: %s\n", lost)
	for _, p := range r.Phases {
		p.write(&b, r.Cores)
	}
	return b.String()
}

func (p *Phase) write(b *strings.Builder, cores int) {
	fmt.Fprintf(b, "\n%s: %s, load %.1f of %d cores, the drivers were late by %s at most\n", p.Name, seconds(p.Took), p.Load, cores, seconds(p.Stall))
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "requests\tfailed\tlongest gap\t  ")
	for _, way := range ways() {
		n := p.Ways[way]
		fmt.Fprintf(w, "%d\t%d\t%s\t  %s%s\n", n.Requests, n.Failed, seconds(n.Gap), way, n.why())
	}
	_ = w.Flush() // into memory
	fmt.Fprintf(b, "  watch: %s; lost writes: %d\n", p.Watch, p.Lost)
	if p.Stock != (Watch{}) {
		fmt.Fprintf(b, "  watch with client-go's own health checks: %s\n", p.Stock)
	}
}

func (w Watch) String() string {
	return fmt.Sprintf("%d events, %d missed, the latest after %s; %d breaks, back after %s", w.Events, w.Missed, seconds(w.Silence), w.Breaks, seconds(w.Back))
}

// why lists the errors of a way, the most frequent first.
func (n *Count) why() string {
	names := slices.SortedFunc(maps.Keys(n.Errors), func(a, b string) int {
		if d := n.Errors[b] - n.Errors[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var all []string
	for _, name := range names[:min(len(names), 8)] {
		all = append(all, fmt.Sprintf("%d %s", n.Errors[name], name))
	}
	if len(names) > 8 {
		all = append(all, "…")
	}
	if len(all) == 0 {
		return ""
	}
	return ": " + strings.Join(all, ", ")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
