package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// The baselines run as separate processes, as kubexm does.
const (
	fetchPlain  = "baseline-fetch"  // LIST BASE FOLDER: without hashing
	fetchHashed = "baseline-sha256" // the same, hashed while downloading
	hashFiles   = "baseline-hash"   // FOLDER: read and hashed by two workers
)

// baseline runs the baseline in args, if it is one.
func baseline(ctx context.Context, args []string) (code int, mine bool) {
	var err error
	switch {
	case len(args) == 4 && (args[0] == fetchPlain || args[0] == fetchHashed):
		err = fetchAll(ctx, args[1], args[2], args[3], args[0] == fetchHashed)
	case len(args) == 2 && args[0] == hashFiles:
		err = hashAll(args[1])
	case len(args) == 4 && args[0] == pushLayout:
		err = pushOne(ctx, args[1], args[2], args[3])
	case len(args) == 3 && args[0] == pushImages:
		err = pushAll(ctx, args[1], args[2])
	case len(args) == 3 && args[0] == seedImages:
		err = seedAll(ctx, args[1], args[2])
	case len(args) == 3 && args[0] == serveHost:
		err = beHost(ctx, args[1], args[2])
	case len(args) > 3 && args[0] == uploadFiles:
		err = uploadAll(ctx, args[1], args[2], places(args[3:]))
	case len(args) > 4 && args[0] == rawStreams:
		err = catAll(ctx, args[1], args[2], args[3], places(args[4:]))
	default:
		return 0, false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// fetchAll downloads the files in list, eight at a time.
func fetchAll(ctx context.Context, list, base, dir string, hashed bool) error {
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	t := &http.Transport{MaxIdleConnsPerHost: 16, ReadBufferSize: 256 << 10, DisableCompression: true}
	client := &http.Client{Transport: t}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, at := range strings.Fields(string(text)) {
		g.Go(func() error { return fetchOne(ctx, client, base+at, filepath.Join(dir, strconv.Itoa(i)), hashed) })
	}
	return g.Wait()
}

func fetchOne(ctx context.Context, client *http.Client, url, path string, hashed bool) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	var w io.Writer = struct{ io.Writer }{f}
	if hashed {
		w = io.MultiWriter(f, sha256.New())
	}
	_, err = io.CopyBuffer(w, struct{ io.Reader }{resp.Body}, make([]byte, 256<<10))
	return errors.Join(err, f.Close())
}

// hashAll hashes every file below dir on two workers.
func hashAll(dir string) error {
	var g errgroup.Group
	g.SetLimit(2)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		g.Go(func() error {
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.CopyBuffer(struct{ io.Writer }{sha256.New()}, struct{ io.Reader }{f}, make([]byte, 1<<20))
			return err
		})
		return nil
	})
	return errors.Join(err, g.Wait())
}
