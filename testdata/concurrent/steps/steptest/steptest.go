package steptest

import "sync"

var m sync.Mutex
