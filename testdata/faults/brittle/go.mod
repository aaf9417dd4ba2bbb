module github.com/mensylisir/kubexm/testdata/faults/brittle

go 1.26.6

require github.com/hanwen/go-fuse/v2 v2.12.1

require golang.org/x/sys v0.49.0 // indirect
