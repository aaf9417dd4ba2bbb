package cmd

import "sync/atomic"

var n atomic.Int64
