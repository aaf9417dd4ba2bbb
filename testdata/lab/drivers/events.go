package drivers

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// read takes events until the stream ends, and gives their number. Its error is what
// ended it: nil, what the API said, or what became of the connection.
func (w *watcher) read(from io.Reader) (events int, err error) {
	stream := json.NewDecoder(from)
	for {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := stream.Decode(&event); err != nil {
			if err == io.EOF {
				return events, nil
			}
			return events, err
		}
		now := time.Now()
		if event.Type == "ERROR" {
			status := &refused{}
			if err := json.Unmarshal(event.Object, status); err != nil {
				return events, fmt.Errorf("an error event: %w", err)
			}
			return events, status
		}
		var m configMap
		if err := json.Unmarshal(event.Object, &m); err != nil {
			return events, fmt.Errorf("a %s event: %w", event.Type, err)
		}
		events++
		w.version = m.Metadata.ResourceVersion
		if event.Type == "ADDED" || event.Type == "MODIFIED" {
			m.writes(func(n int) { w.arrive(n, now) })
		}
	}
}
