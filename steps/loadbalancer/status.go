package loadbalancer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
)

// stateFile is where keepalived's last state and its time in seconds since 1970 are written,
// by the script of templates/state.
const stateFile = "/run/kubexm-endpoint"

// Status is what a load balancer host reports.
type Status struct {
	Holds   bool      // a network interface has the virtual IP
	State   string    // of keepalived: MASTER, BACKUP, FAULT or STOP; "" if none was recorded since the host booted
	Since   time.Time // when keepalived entered State, by the host's clock; zero without a State
	Stopped []string  // services of the load balancer that do not run
	Servers []Server  // nil where the program checks no API server: nginx
}

// Server is one API server as a load balancer sees it.
type Server struct {
	Name  string    // of the master
	Up    bool      // the load balancer forwards connections to it
	State string    // in the program's words: "UP", "DOWN 1/2"
	Since time.Time // when State last changed, by this machine's clock
	Check string    // result of the last check: "L7OK/200", "L4CON"
}

// StatusOf reads the status of a load balancer host. It changes nothing. Network interfaces
// are those of h.Facts.
func StatusOf(ctx context.Context, h *steps.Host, c *manifest.Cluster) (Status, error) {
	var s Status
	var err error
	if s.Holds, err = holdsVIP(h, c); err != nil {
		return s, err
	}
	text, err := h.ReadFile(ctx, stateFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if state, at, ok := strings.Cut(strings.TrimSpace(string(text)), " "); ok {
		if seconds, err := strconv.ParseInt(at, 10, 64); err == nil {
			s.State, s.Since = state, time.Unix(seconds, 0).UTC()
		}
	}
	p := programOf(c)
	for _, name := range []string{p.unit, keepalivedUnit} {
		u, err := h.Unit(ctx, name)
		if err != nil {
			return s, err
		}
		if !u.IsActive() {
			s.Stopped = append(s.Stopped, name)
		}
	}
	if !ChecksReady(c) || slices.Contains(s.Stopped, p.unit) {
		return s, nil
	}
	s.Servers, err = serversOf(ctx, h)
	return s, err
}

// holdsVIP reports whether a network interface of h.Facts has the virtual IP.
func holdsVIP(h *steps.Host, c *manifest.Cluster) (holds bool, err error) {
	vip, err := netip.ParseAddr(part.EndpointOf(c).VIP)
	if err != nil {
		return false, fmt.Errorf("virtual IP: %w", err)
	}
	for _, i := range h.Facts.Interfaces {
		holds = holds || slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool { return p.Addr() == vip })
	}
	return holds, nil
}

// WorkerStatus is what the load balancer on a worker reports.
type WorkerStatus struct {
	Runs    bool     // the program answers
	Servers []Server // nil where the program checks no API server: nginx
}

// WorkerStatusOf reads the status of the load balancer on a worker. It changes nothing.
func WorkerStatusOf(ctx context.Context, h *steps.Host, c *manifest.Cluster) (s WorkerStatus, err error) {
	status, err := ask(ctx, h, "")
	if s.Runs = status != ""; err != nil || !s.Runs || !ChecksReadyOnWorkers(c) {
		return s, err
	}
	s.Servers, err = serversOf(ctx, h)
	return s, err
}

// serversOf reads the API servers from haproxy's statistics.
func serversOf(ctx context.Context, h *steps.Host) ([]Server, error) {
	out, err := h.Exec(ctx, "bash", "-c", scriptStats, "bash", strconv.Itoa(part.BalancerHealthPort))
	if err != nil {
		return nil, err
	}
	return parseStats(out, time.Now())
}

// scriptStats takes PORT: it prints haproxy's statistics as an HTTP response.
const scriptStats = `exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
printf 'GET /stats;csv HTTP/1.0\r\n\r\n' >&3
cat <&3`

// parseStats reads the servers of the backend "ready" from haproxy's statistics
// (https://docs.haproxy.org/2.6/management.html, section 9.1). lastchg counts the seconds since
// a server's state changed.
func parseStats(response []byte, now time.Time) ([]Server, error) {
	answer, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(response)), nil)
	if err != nil {
		return nil, fmt.Errorf("haproxy's statistics: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("haproxy's statistics: status %s", answer.Status)
	}
	body, err := io.ReadAll(answer.Body) // it is chunked
	if err != nil {
		return nil, fmt.Errorf("haproxy's statistics: %w", err)
	}
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(body, []byte("# "))))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("haproxy's statistics: %w", err)
	}
	if len(rows) == 0 {
		return nil, errors.New("haproxy's statistics are empty")
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	var out []Server
	for _, row := range rows[1:] {
		field := func(name string) string {
			if i, ok := column[name]; ok && i < len(row) {
				return row[i]
			}
			return ""
		}
		if name := field("svname"); field("pxname") == "ready" && name != "BACKEND" {
			s := Server{Name: name, State: field("status"), Up: strings.HasPrefix(field("status"), "UP"), Check: field("check_status")}
			if code := field("check_code"); code != "" {
				s.Check += "/" + code
			}
			if seconds, err := strconv.ParseInt(field("lastchg"), 10, 64); err == nil {
				s.Since = now.Add(-time.Duration(seconds) * time.Second).UTC().Truncate(time.Second)
			}
			out = append(out, s)
		}
	}
	if out == nil {
		return nil, errors.New(`haproxy's statistics have no server of the backend "ready"`)
	}
	return out, nil
}
