package installer

import "testing"

// TestAJournalTellsOfTheLead by the plan's word for it, and on which host it was; also
// where a later run took it over.
func TestAJournalTellsOfTheLead(t *testing.T) {
	t.Parallel()
	_, done, err := readJournal([]byte(`{"head":{"run":"r"}}
{"node":"m/t/x","step":"x","host":"m2","as":"lead","outcome":"resumed"}
{"node":"m/t/x","step":"x","host":"lead","outcome":"resumed"}
{"node":"m/t/y","step":"y","host":"m2","as":"lead","outcome":"ran"}
{"node":"m/t/z","step":"z","host":"m2","as":"lead","outcome":"ran"}
{"node":"m/t/z","step":"z","host":"m3","as":"lead","outcome":"started"}
`))
	if err != nil || len(done) != 2 || done["m/t/x@lead"] != "m2" || done["m/t/y@lead"] != "m2" {
		t.Errorf("%v, %v", done, err)
	}
}
