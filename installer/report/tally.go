package report

import "github.com/mensylisir/kubexm/installer/engine"

// Tally counts how steps on hosts ended.
type Tally struct {
	Total   int `json:"total"`   // steps on hosts that the plan has
	Ran     int `json:"ran"`     // changed something
	Done    int `json:"done"`    // passed over: the host was in the wanted state
	Checked int `json:"checked"` // only looked, and found all well
	Would   int `json:"would"`   // would run, in a dry run
	Failed  int `json:"failed"`
}

// Add counts one outcome; those that end no step count for nothing.
func (t *Tally) Add(o engine.Outcome) {
	switch o {
	case engine.Skipped, engine.Resumed:
		t.Done++
	case engine.Ran:
		t.Ran++
	case engine.Looked:
		t.Checked++
	case engine.Would:
		t.Would++
	case engine.Failed, engine.Interrupted:
		t.Failed++
	}
}

// Ended is how many steps have ended, one way or another.
func (t *Tally) Ended() int { return t.Ran + t.Done + t.Checked + t.Would + t.Failed }
