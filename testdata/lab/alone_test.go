package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock", "of-labs")
	var log bytes.Buffer
	beside := &Options{Name: "beside", Log: slog.New(slog.NewTextHandler(&log, nil))}
	alone := &Options{Name: "alone", Alone: true, Log: beside.Log}
	hold := func(o *Options, within time.Duration) (func(), error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return hold(ctx, file, o)
	}
	first, err := hold(beside, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	second, err := hold(beside, time.Minute)
	if err != nil {
		t.Fatalf("two labs side by side: %v", err)
	}
	if log.Len() > 0 {
		t.Errorf("it waited: %s", &log)
	}
	this := fmt.Sprintf("process %d ", os.Getpid())
	if _, err := hold(alone, 50*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), this) {
		t.Errorf("alone, where two are: %v", err)
	}
	if !strings.Contains(log.String(), this) || !strings.Contains(log.String(), "lab=alone") {
		t.Errorf("it does not say for whom it waits: %s", &log)
	}
	first()
	time.AfterFunc(100*time.Millisecond, second)
	third, err := hold(alone, time.Minute)
	if err != nil {
		t.Fatalf("alone, after the others: %v", err)
	}
	if _, err := hold(beside, 50*time.Millisecond); err == nil {
		t.Error("a lab went up beside one that is alone")
	}
	if free, err := hold(&Options{held: true}, time.Second); err != nil {
		t.Errorf("a caller that has it: %v", err)
	} else {
		free()
	}
	third()
}
