package bundle

import (
	"errors"
	"testing"

	"github.com/mensylisir/kubexm/bundle/fetch"
)

func TestErrorSubjectIsStatedOnce(t *testing.T) {
	wrong := &fetch.SizeError{Name: "binary/helm/v3", Want: 2, Got: 1}
	for _, c := range []struct {
		what string
		err  error
		want string
	}{
		{"binary/helm/v3", errors.New("no disk"), "binary/helm/v3: no disk"},
		{"binary/helm/v3", wrong, wrong.Error()},
		{"binary/helm/v3", errors.New("binary/helm/v3: gone"), "binary/helm/v3: gone"},
		{"binary/helm/v3", errors.New("binary/helm/v33 is gone"), "binary/helm/v3: binary/helm/v33 is gone"},
	} {
		got := named(c.what, c.err)
		if got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
