package installer

import "golang.org/x/sync/errgroup"

var g errgroup.Group
