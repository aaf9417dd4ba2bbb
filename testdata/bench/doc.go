// Command bench measures the cost of a bundle relative to plain tools and to peers on the same
// machine, and prints each figure with its target.
//
// It creates a work set of about 32 images and 11 files, serves it on the loopback address,
// and runs complete processes in rounds: a figure is the median of ratios whose two sides were
// measured in the same round. Absolute times say little on a shared machine.
//
//   - floor: the files, downloaded in parallel to disk without hashing;
//   - floor that hashes: the same with hashing, which no build can omit;
//   - tar + zstd: these files, packed by tar and compressed by zstd -3 -T0;
//   - sha256: the same blobs, read from disk and hashed by two workers;
//   - oras: the bundle as a layout on disk, copied to a registry four blobs at a time.
//
// A peer that is not on the PATH is left out, with a message. Peers run without network
// access. The command is a tool of this repository and may import any package of the module.
package main
