// Brittle is a file system that keeps no more than it has to, and fails where it is told
// to:
//
//	brittle [-eager]
//
// It is mounted by FUSE, as root, and lives in the memory of this program. Standard input
// and output take its requests, as net/rpc/jsonrpc writes them; see Control. When the
// input ends, the file system is unmounted and the program ends.
//
// When it loses power, a file has what was there when it was synced last; of what was
// written since it has nothing, all, a part from the front, or some of the pages. Of the
// changes to folders (create, link, rename, remove) those are kept whose folder was synced,
// with those before them in the same folders, and of the others any number from the
// oldest on. That is as little as POSIX promises, and less than most disks keep: a
// program that outlasts it does not lean on what ext4 does about a rename.
//
// One write, sync, rename or close can be made to fail with EIO. As on Linux, a sync that
// failed has thrown the dirty pages away: the next one succeeds, and they are not there.
//
// It is a module of its own, so that FUSE is not among the modules of kubexm.
package main
