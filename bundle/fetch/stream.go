package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest"
)

// Sink receives the content of one download in order, without the cache. It may have the
// beginning of the content from an earlier, interrupted download.
type Sink interface {
	// ReadFrom adds content. When the reader fails, what was read before counts.
	io.ReaderFrom
	Have() int64    // bytes received
	Digest() string // sha256 of these bytes in hex
	Reset() error   // discards them
}

// Stream downloads pinned content into a sink and checks it. Content that does not match its
// pin is a *DigestError or a *SizeError.
type Stream func(ctx context.Context, to Sink) error

// StreamArtifact returns the stream of a's file; nil if a must be fetched into the cache,
// because its parts are extracted, generated or on this machine.
func (c *Client) StreamArtifact(a manifest.Artifact) Stream {
	if a.Kind == manifest.Packages || a.Kind == manifest.Chart || a.Archive != "" || a.Local() || !isHexDigest(a.SHA256) {
		return nil
	}
	return func(ctx context.Context, to Sink) error {
		j, err := c.fileJob(a, a.Size)
		if err != nil {
			return err
		}
		return c.stream(ctx, j, to)
	}
}

// StreamMember returns the stream of a file of a package repository; nil if the file is
// generated or on this machine.
func (c *Client) StreamMember(a manifest.Artifact, m manifest.Member) Stream {
	u, err := url.Parse(m.Address)
	if err != nil || m.Package == "" || u.Scheme == "file" || !isHexDigest(m.SHA256) {
		return nil
	}
	return func(ctx context.Context, to Sink) error {
		name := m.Package + " of " + a.Name
		j, err := c.packageJob(name, u)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		j.sha256, j.size = m.SHA256, m.Size
		return adviseReplaced(name, c.stream(ctx, j, to))
	}
}

// StreamContent returns the stream of a layer of im; nil for documents, which are small and
// are read again by later builds.
func (c *Client) StreamContent(im manifest.ImagePin, ct Content) Stream {
	d, err := digest.Parse(ct.Digest)
	if err != nil || d.Algorithm() != digest.SHA256 || ct.Role != LayerRole {
		return nil
	}
	return func(ctx context.Context, to Sink) error {
		r, err := c.repository(im.Reference)
		if err != nil {
			return err
		}
		return c.stream(ctx, r.blobJob(ct), to)
	}
}

// stream downloads j into a sink. Its digest and size must be known.
func (c *Client) stream(ctx context.Context, j *job, to Sink) error {
	t := c.options.Progress.Start(j.name, j.size)
	t.Add(to.Have())
	err := c.complete(ctx, j, &streaming{job: j, to: to, transfer: t, meta: partMeta{Size: -1}})
	t.Done(err)
	return err
}

// streaming receives a job into a sink.
type streaming struct {
	job      *job
	to       Sink
	transfer Transfer
	meta     partMeta // of what this process received; without Source before its first response
}

func (s *streaming) received() int64 { return s.to.Have() }

func (s *streaming) digest() string { return s.to.Digest() }

func (s *streaming) drop() error {
	s.transfer.Add(-s.to.Have())
	s.meta = partMeta{Size: -1}
	return s.to.Reset()
}

// attempt requests the missing part once. A beginning of which only the digest at the end
// can tell whether it is right is continued too: it is checked then.
func (s *streaming) attempt(ctx context.Context) error {
	have := s.to.Have()
	if have == s.job.size {
		return nil
	}
	client, address, err := s.job.open(ctx)
	if err != nil {
		return err
	}
	source := hexOf(address.String())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return err
	}
	if have > 0 {
		req.Header.Set("Range", "bytes="+strconv.FormatInt(have, 10)+"-")
		if v := s.meta.validator(); v != "" && s.meta.Source == source {
			req.Header.Set("If-Range", v)
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if have > 0 {
		err = continues(resp, s.job, source, have, s.meta)
	} else {
		s.meta, err = begins(resp, s.job, source)
	}
	if err != nil {
		return err
	}
	if _, err := s.to.ReadFrom(&counted{s: s, body: resp.Body}); err != nil {
		return err
	}
	if s.to.Have() < s.job.size {
		return errShort
	}
	return nil
}

// counted is the body of a response that is read into the sink.
type counted struct {
	s    *streaming
	body io.Reader
}

// Read fails where the content is longer than it should be.
func (r *counted) Read(p []byte) (int, error) {
	left := r.s.job.size - r.s.to.Have()
	if left > 0 {
		n, err := r.body.Read(p[:min(int64(len(p)), left)])
		r.s.transfer.Add(int64(n))
		return n, err
	}
	n, err := r.body.Read(p[:min(len(p), 1)])
	if n > 0 {
		return 0, r.s.job.sizeError(r.s.job.size + int64(n))
	}
	return 0, err
}
