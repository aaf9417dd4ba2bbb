package fetch

// Progress is told what is being downloaded. Its methods are called from many
// goroutines at once and must return quickly.
type Progress interface {
	// Start opens one transfer. name is the artifact's id or the image's
	// reference; size is in bytes, -1 where it is not known. What the cache
	// already holds never starts.
	Start(name string, size int64) Transfer
}

// Transfer is one download under way. Add and Done are called by one goroutine
// at a time.
type Transfer interface {
	// Add counts n bytes. The first call may count those of an earlier, broken
	// download; n is negative when what came so far is thrown away.
	Add(n int64)
	// Done closes the transfer, once; err is nil when it succeeded.
	Done(err error)
}

// silent is the Progress of a Client that was given none.
type silent struct{}

func (silent) Start(string, int64) Transfer { return silent{} }
func (silent) Add(int64)                    {}
func (silent) Done(error)                   {}
