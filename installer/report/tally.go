package report

import "github.com/mensylisir/kubexm/installer/engine"

// Tally counts how steps on hosts ended.
type Tally struct {
	Total    int `json:"total"`   // steps on hosts in the plan
	Ran      int `json:"ran"`     // changed something
	Done     int `json:"done"`    // skipped: the host was in the desired state
	Checked  int `json:"checked"` // checks and waits without findings
	WouldRun int `json:"would"`   // would run, in a dry run
	Failed   int `json:"failed"`
}

// Add counts one outcome; outcomes that do not end a step are not counted.
func (t *Tally) Add(o engine.Outcome) {
	switch o {
	case engine.Skipped, engine.Resumed:
		t.Done++
	case engine.Ran:
		t.Ran++
	case engine.Checked:
		t.Checked++
	case engine.WouldRun:
		t.WouldRun++
	case engine.Failed, engine.Interrupted:
		t.Failed++
	}
}

// Ended returns how many steps have ended, with or without success.
func (t *Tally) Ended() int { return t.Ran + t.Done + t.Checked + t.WouldRun + t.Failed }
