package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// shown is the effect of a scenario when it last passed.
type shown struct {
	Effect  string            `json:"effect"`
	Parts   map[string]string `json:"parts"`
	Seconds int               `json:"seconds"`
	At      time.Time         `json:"at"`
}

// record is shown.json: scenarios by name.
type record map[string]shown

func readRecord(root string) (record, error) {
	b, err := os.ReadFile(filepath.Join(root, shownFile))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	r := record{}
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("%s: %w", shownFile, err)
	}
	return r, nil
}

func (r record) write(root string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(root, shownFile)
	if err := os.WriteFile(path+".part", append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// The states of a scenario.
const (
	isShown = "shown"
	isDue   = "due"
	isNever = "never shown"
)

// standing is a scenario with its state.
type standing struct {
	scenario
	effect effect
	was    shown
	state  string
	why    []string // why it is due
}

// standings returns the state of each scenario, in the table's order.
func standings(t *table, all map[string]effect, r record) []standing {
	var out []standing
	for _, s := range t.Scenarios {
		x := standing{scenario: s, effect: all[s.Name], state: isShown}
		was, ok := r[s.Name]
		x.was = was
		switch {
		case !ok:
			x.state = isNever
		case was.Effect != x.effect.Sum:
			x.state, x.why = isDue, x.effect.changed(was)
		}
		out = append(out, x)
	}
	return out
}

// of selects those in one of the states; the least recently shown comes first.
func of(all []standing, states ...string) []standing {
	out := slices.DeleteFunc(slices.Clone(all), func(x standing) bool { return !slices.Contains(states, x.state) })
	slices.SortStableFunc(out, func(a, b standing) int { return a.was.At.Compare(b.was.At) })
	return out
}

// expected returns how long a run is expected to take: the duration of the last one, or the
// table's estimate.
func (x standing) expected() time.Duration {
	if x.was.Seconds > 0 {
		return time.Duration(x.was.Seconds) * time.Second
	}
	return time.Duration(x.Minutes) * time.Minute
}

// command returns the command that shows it.
func (x standing) command() string { return "make shown SCENARIO=" + x.Name }

// patienceDays is how long a scenario may stay due whose effect on hosts is the one that was
// shown: a change of texts all over the tree, or of the order in which all clusters are made,
// makes more of them due than one run has time for.
const patienceDays = 7

// mayWait reports whether the scenario does to hosts what it did when it was last shown, by the
// same components, and that was within patienceDays: only the order of its steps, its test or
// the source that it covers has changed. The walk shows an order on every run.
func (x standing) mayWait(now time.Time) bool {
	for _, part := range []string{"hosts", "components"} {
		if x.effect.Parts[part] != x.was.Parts[part] {
			return false
		}
	}
	return now.Sub(x.was.At) < patienceDays*24*time.Hour
}
