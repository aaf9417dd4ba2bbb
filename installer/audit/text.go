package audit

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps/connector"
)

// String returns the line in a form for people.
func (x *Line) String() string {
	when := x.Time.Local().Format("2006-01-02 15:04:05.000")
	switch x.Type {
	case TypeHead:
		return fmt.Sprintf("%s  log of cluster %s started by %s, kubexm %s", when, x.Cluster, x.Who, x.Kubexm)
	case TypeRun, TypeEnd:
		return fmt.Sprintf("%s  %s, by %s, kubexm %s%s", when, x.Message, x.Who, x.Kubexm, colon(x.Error))
	case TypeTorn:
		torn := "1 line"
		if len(x.Torn) != 1 {
			torn = fmt.Sprintf("%d lines", len(x.Torn))
		}
		return fmt.Sprintf("%s  %s before this one truncated while being written: kubexm was killed, or the machine lost power", when, torn)
	}
	how := "end not recorded"
	switch {
	case x.Exit != nil:
		how = fmt.Sprintf("exit %d", *x.Exit)
	case x.Error != "":
		how = "error"
	case x.Type == TypeDid:
		how = "done"
	}
	var more []string
	if x.Sudo {
		more = append(more, "sudo")
	}
	if c := x.Stdin; c != nil && c.Bytes > 0 {
		sum := "sha256:" + c.SHA256
		switch {
		case c.Secret:
			sum = "contains a secret"
		case c.SHA256 == "":
			sum = "compared by the host"
		}
		more = append(more, fmt.Sprintf("stdin %d bytes %s", c.Bytes, sum))
	}
	line := fmt.Sprintf("%s  %s  %s  %s %s  (%s)", when, x.Host, how, x.Verb, connector.Quote(x.Argv), strings.Join(append([]string{stepName(x.Step)}, more...), ", "))
	return strings.ReplaceAll(line, "\n", "\\n") + colon(x.Error)
}

func stepName(id string) string {
	if id == "" {
		return "outside of a plan"
	}
	return id
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + strings.ReplaceAll(text, "\n", "; ")
}

// ParseSince parses the start of a period before now: 90m, 24h or a time; "" is the beginning
// of the log.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, &refusal.Error{Err: fmt.Errorf("--since %q is neither a time nor a duration", text), Kind: refusal.Usage, Advice: "write 90m, 24h or 2026-01-31T08:00:00Z"}
	}
	return t, nil
}

// ParseHeads parses heads from the command line, as LINES:SHA256.
func ParseHeads(texts []string) ([]Anchor, error) {
	var out []Anchor
	for _, text := range texts {
		n, sum, _ := strings.Cut(text, ":")
		lines, err := strconv.ParseInt(n, 10, 64)
		if b, bad := hex.DecodeString(sum); err != nil || bad != nil || len(b) != 32 || lines < 1 {
			return nil, &refusal.Error{Err: fmt.Errorf("--head %q is not a head of an audit log", text), Kind: refusal.Usage, Advice: "write it as `kubexm audit verify` prints it: LINES:SHA256"}
		}
		out = append(out, Anchor{Head: Head{Lines: lines, SHA256: strings.ToLower(sum)}, From: "--head " + n})
	}
	return out, nil
}
