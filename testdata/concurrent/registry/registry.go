package registry

import "sync"

var m sync.Mutex
