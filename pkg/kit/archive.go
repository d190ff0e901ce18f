package kit

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
)

// An archive is a tar of a tree: first a record of how many files follow, so
// that a part of one is none, then the files in their order. What is no plain
// file has no data, and its mode is in a record, so that who reads the
// archive refuses it by what it was.
const (
	archiveCount = "THERMITE.files"
	archiveMode  = "THERMITE.mode"
)

// maxArchive bounds an archive: what a tree may hold, and each file's headers.
const maxArchive = MaxTreeBytes + 4096*MaxFiles

// Archive writes the tree as an archive. It writes what ReadDir gave,
// whatever may be taken of it.
func (t Tree) Archive(w io.Writer) error {
	tw := tar.NewWriter(w)
	head := &tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{archiveCount: strconv.Itoa(len(t))}, Format: tar.FormatPAX}
	if err := tw.WriteHeader(head); err != nil {
		return fmt.Errorf("writing an archive: %w", err)
	}
	for _, f := range t {
		if err := writeArchived(tw, f); err != nil {
			return fmt.Errorf("writing an archive: %s: %w", clip(f.Path), err)
		}
	}
	if err := tw.Close(); err != nil {
		return fmt.Errorf("writing an archive: %w", err)
	}
	return nil
}

func writeArchived(tw *tar.Writer, f File) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Mode: int64(f.Mode.Perm()), Size: int64(len(f.Data)), Format: tar.FormatPAX}
	if f.Mode != f.Mode.Perm() {
		h.PAXRecords = map[string]string{archiveMode: strconv.FormatUint(uint64(f.Mode), 8)}
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err := tw.Write(f.Data)
	return err
}

// ReadArchive reads an archive. It takes no more than a tree may hold, and
// nothing that Archive does not write; what of its files no tree may hold is
// for Overlay and Write to refuse.
func ReadArchive(r io.Reader) (Tree, error) {
	tree, err := readArchive(tar.NewReader(io.LimitReader(r, maxArchive)))
	if err != nil {
		return nil, fmt.Errorf("reading an archive: %w", err)
	}
	tree.sort()
	return tree, nil
}

func readArchive(tr *tar.Reader) (Tree, error) {
	h, err := tr.Next()
	if err != nil {
		return nil, wholeOrNot(err)
	}
	n, err := strconv.Atoi(h.PAXRecords[archiveCount])
	if h.Typeflag != tar.TypeXGlobalHeader || err != nil || n < 0 {
		return nil, errors.New("it does not say how many files it has")
	}
	if n > 2*MaxFiles {
		return nil, fmt.Errorf("it has %d files, at most %d", n, MaxFiles)
	}
	var tree Tree
	total := 0
	for range n {
		f, err := readArchived(tr, MaxTreeBytes-total)
		if err != nil {
			return nil, err
		}
		total += len(f.Data)
		tree = append(tree, f)
	}
	if _, err := tr.Next(); err != io.EOF {
		return nil, errors.New("it has more files than it says")
	}
	return tree, nil
}

func readArchived(tr *tar.Reader, left int) (File, error) {
	h, err := tr.Next()
	if err != nil {
		return File{}, wholeOrNot(err)
	}
	f := File{Path: h.Name, Mode: fs.FileMode(h.Mode)}
	if h.Typeflag != tar.TypeReg || f.Mode != f.Mode.Perm() {
		return File{}, fmt.Errorf("%s is no file of an archive", clip(h.Name))
	}
	if special, ok := h.PAXRecords[archiveMode]; ok {
		mode, err := strconv.ParseUint(special, 8, 32)
		if f.Mode = fs.FileMode(mode); err != nil || f.Mode == f.Mode.Perm() {
			return File{}, fmt.Errorf("%s has the mode %q", clip(h.Name), clip(special))
		}
	}
	if h.Size > MaxFileBytes || h.Size > int64(left) {
		return File{}, fmt.Errorf("%s is too large: a file has at most %d bytes, all have %d", clip(h.Name), MaxFileBytes, MaxTreeBytes)
	}
	if f.Data, err = io.ReadAll(io.LimitReader(tr, h.Size+1)); err != nil {
		return File{}, wholeOrNot(err)
	}
	if int64(len(f.Data)) != h.Size {
		return File{}, fmt.Errorf("%s has other bytes than it says", clip(h.Name))
	}
	return f, nil
}

// wholeOrNot says of an end before the end that it is one.
func wholeOrNot(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
