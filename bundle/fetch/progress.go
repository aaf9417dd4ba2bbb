package fetch

// Progress receives the progress of downloads. Its methods are called concurrently from
// many goroutines and must return quickly.
type Progress interface {
	// Start begins a transfer. name is the artifact's id or the image's reference; size is
	// in bytes, -1 if unknown. Start is not called for content that is already in the
	// cache.
	Start(name string, size int64) Transfer
}

// Transfer is one download in progress. Add and Done are called by one goroutine at a time.
type Transfer interface {
	// Add counts n bytes. The first call may count those of an earlier, interrupted
	// download; n is negative when downloaded bytes are discarded.
	Add(n int64)
	// Done ends the transfer, once; err is nil if it succeeded.
	Done(err error)
}

// silent is the default Progress, which ignores everything.
type silent struct{}

func (silent) Start(string, int64) Transfer { return silent{} }
func (silent) Add(int64)                    {}
func (silent) Done(error)                   {}
