package installer

import (
	"bytes"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzJournal reads any journal. A last line that was torn counts for nothing, and what
// was written is read the same however often.
func FuzzJournal(f *testing.F) {
	head := `{"head":{"run":"1","pipeline":"create","config":"sha256:00","skipped":["memory"]}}` + "\n"
	for _, text := range []string{
		"", head, head + `{"node":"a/b/c","host":"m1","outcome":"started"}` + "\n" + `{"node":"a/b/c","host":"m1","outcome":"ran"}` + "\n",
		head + `{"node":"a","host":"h","outcome":"ran"}` + "\n" + `{"node":"a","host":"h","outcome":"rolled back"}` + "\n",
		head + "{\n", head + "null\n", head + `{"audit":{"lines":1}}` + "\n", "null\n", `{"run":1}` + "\n",
	} {
		f.Add([]byte(text), []byte(`{"node":"a","ho`))
	}
	f.Fuzz(func(t *testing.T, text, torn []byte) {
		if i := bytes.IndexByte(torn, '\n'); i >= 0 {
			torn = torn[:i]
		}
		whole := text[:bytes.LastIndexByte(text, '\n')+1]
		head, done, err := readJournal(whole)
		tornHead, tornDone, tornErr := readJournal(append(bytes.Clone(whole), torn...))
		if (err == nil) != (tornErr == nil) || err == nil && (!cmp.Equal(head, tornHead) || !maps.Equal(done, tornDone)) {
			t.Fatalf("a torn line made %v, %v, %v of %v, %v, %v", tornHead, tornDone, tornErr, head, done, err)
		}
		if err == nil && head.Run == "" {
			t.Error("a journal of no run")
		}
	})
}
