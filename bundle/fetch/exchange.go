package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// errStale: a partial file cannot be continued, because the file at the address has changed
// or the server does not support it.
var errStale = errors.New("the partial download cannot be continued")

// exchange is the HTTP client for grab. grab accepts any 2xx response to a range request,
// and requests by HEAD what the meta file knows. exchange checks each response against its
// request before a byte of it is written.
type exchange struct {
	client   doer
	part     *part
	job      *job
	source   string
	transfer Transfer
}

type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Do answers a HEAD from the meta file and sends other requests.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodHead {
		return &http.Response{
			StatusCode: http.StatusOK, Request: req, Body: http.NoBody,
			Header:        http.Header{"Accept-Ranges": {"bytes"}},
			ContentLength: x.part.meta.total(x.job),
		}, nil
	}
	resp, err := x.client.Do(req)
	if err != nil {
		return nil, err
	}
	if req.Header.Get("Range") != "" {
		err = continues(resp, x.job, x.source, x.part.have, x.part.meta)
	} else {
		var m partMeta
		if m, err = begins(resp, x.job, x.source); err == nil {
			err = x.part.begin(m)
		}
	}
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	resp.Body = &received{ReadCloser: resp.Body, part: x.part, job: x.job, transfer: x.transfer}
	return resp, nil
}

// begins checks the response to a request for the complete file of j, and returns the
// server's description of it.
func begins(resp *http.Response, j *job, source string) (partMeta, error) {
	if resp.StatusCode != http.StatusOK {
		return partMeta{}, statusError(resp)
	}
	if resp.ContentLength >= 0 && j.size >= 0 && resp.ContentLength != j.size {
		return partMeta{}, j.sizeError(resp.ContentLength)
	}
	return partMeta{
		Source:       source,
		ETag:         resp.Header.Get("ETag"),
		LastModified: resp.Header.Get("Last-Modified"),
		Size:         resp.ContentLength,
	}, nil
}

// continues checks the response to a request for the rest of j's file, of which have bytes
// are there; known describes them.
func continues(resp *http.Response, j *job, source string, have int64, known partMeta) error {
	switch resp.StatusCode {
	case http.StatusPartialContent:
	case http.StatusOK, http.StatusRequestedRangeNotSatisfiable:
		return errStale
	default:
		return statusError(resp)
	}
	begin, end, total, err := contentRange(resp.Header.Get("Content-Range"))
	if err != nil || begin != have || (total >= 0 && end != total-1) {
		return errStale
	}
	if want := known.total(j); want >= 0 && total >= 0 && total != want {
		return errStale
	}
	if total >= 0 && resp.ContentLength >= 0 && begin+resp.ContentLength != total {
		return errStale
	}
	if tag := resp.Header.Get("ETag"); known.Source == source && tag != "" && known.ETag != "" && tag != known.ETag {
		return errStale
	}
	return nil
}

// contentRange parses "bytes 100-199/200"; total is -1 for "*".
func contentRange(s string) (begin, end, total int64, err error) {
	bad := fmt.Errorf("content range %q is not of the form bytes 0-9/10", s)
	s, isBytes := strings.CutPrefix(s, "bytes ")
	span, size, hasSize := strings.Cut(s, "/")
	first, last, isSpan := strings.Cut(span, "-")
	if !isBytes || !hasSize || !isSpan {
		return 0, 0, 0, bad
	}
	begin, err1 := strconv.ParseInt(first, 10, 64)
	end, err2 := strconv.ParseInt(last, 10, 64)
	total = -1
	var err3 error
	if size != "*" {
		total, err3 = strconv.ParseInt(size, 10, 64)
	}
	if err1 != nil || err2 != nil || err3 != nil || begin < 0 || end < begin || (size != "*" && end >= total) {
		return 0, 0, 0, bad
	}
	return begin, end, total, nil
}
