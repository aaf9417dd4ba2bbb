package steps

import "context"

// Piece is one piece of a host's state as a look found it: a file, a unit, an object of
// the cluster.
type Piece struct {
	Name string // "file /etc/hosts"
	What string // what would mend it, "write /etc/hosts"; "" where it is as it should be
	Diff string // lines that come and go, where that can be shown
	Err  error  // why it could not be looked at
}

// Drifter is what a step offers that can look at each piece of its work by itself. A
// Differ says what a run would do: it restarts a unit whose file it writes. A Drifter
// says what differs: the file alone.
type Drifter interface {
	Drift(context.Context, *Host) []Piece
}
