package versions

import "sync"

var m sync.Mutex
