package patches

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"thermite/pkg/files"
)

// The index says which run each patch was submitted in: a line each, beside
// the folder. It only labels what is kept; a line that is lost costs a label.

func (s *Store) index() string { return s.dir + ".runs" }

// Note says that a patch is of the run, before the patch is put.
func (s *Store) Note(run, sum string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := os.OpenFile(s.index(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(f, "%s %s\n", sum, run)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("noting whose patch %s is: %w", sum, err)
	}
	return nil
}

// Runs gives the runs that each patch was submitted in, the newest last.
func (s *Store) Runs() (map[string][]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readIndex()
}

func (s *Store) readIndex() (map[string][]string, error) {
	f, err := os.Open(s.index())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading whose the patches are: %w", err)
	}
	defer f.Close()
	of := map[string][]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if sum, run, ok := strings.Cut(lines.Text(), " "); ok {
			of[sum] = append(of[sum], run)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading whose the patches are: %w", err)
	}
	return of, nil
}

// compact writes the index anew without the patches that are gone.
func (s *Store) compact() error {
	of, err := s.readIndex()
	if err != nil || len(of) == 0 {
		return err
	}
	all, err := s.List()
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, p := range all {
		for _, run := range of[p.Sum] {
			fmt.Fprintf(&b, "%s %s\n", p.Sum, run)
		}
	}
	return files.Write(s.index(), []byte(b.String()), 0o600)
}
