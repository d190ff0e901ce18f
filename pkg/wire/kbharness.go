package wire

import (
	"errors"
	"fmt"
)

// The knowledge base in the harness's API. The harness calls nobody: its
// supervisor takes what the trials ask, and hands back what control answered;
// and it takes the files of its outbox, and says which control keeps.
//
//	GET  /v1/kb/asks?wait=20s     KBAsks: those that no call took yet, once there are some
//	POST /v1/kb/answers           KBAnswered in
//	GET  /v1/kb/files             KBOutbox
//	GET  /v1/kb/files/{sha256}    the file's bytes
//	POST /v1/kb/kept              KBKept in: they leave the outbox
const (
	HarnessKBAsksPath    = "/v1/kb/asks"
	HarnessKBAnswersPath = "/v1/kb/answers"
	HarnessKBFilesPath   = "/v1/kb/files"
	HarnessKBKeptPath    = "/v1/kb/kept"
)

// KBAsks are what trials ask of the knowledge base.
type KBAsks struct {
	Asks []KBAsk `json:"asks"`
}

// KBAsk is one of them, a search or a read.
type KBAsk struct {
	// Number counts the asks of this harness since its start.
	Number uint64 `json:"number"`
	// Run is the run of the trial that asks.
	Run    string   `json:"run"`
	Search *KBQuery `json:"search,omitzero"`
	Read   *KBRead  `json:"read,omitzero"`
}

// KBRead says what to read.
type KBRead struct {
	ID     string `json:"id"`
	Offset uint64 `json:"offset,omitzero"`
}

// KBAnswered is the answer to one of them: as it was asked, or why there is
// none.
type KBAnswered struct {
	Number uint64  `json:"number"`
	Hits   *KBHits `json:"hits,omitzero"`
	Item   *KBText `json:"item,omitzero"`
	// Refused is control's refusal, in its words; Failed says why control gave
	// no answer.
	Refused string `json:"refused,omitzero"`
	Failed  string `json:"failed,omitzero"`
}

// KBOutbox are files that control is not known to keep, the oldest first, at
// most MaxKBFilesAsked.
type KBOutbox struct {
	Files []KBOutFile `json:"files"`
}

// KBOutFile is one of them.
type KBOutFile struct {
	SHA256 string `json:"sha256"`
	Size   uint64 `json:"size"`
}

// KBKept are files that control keeps.
type KBKept struct {
	Files []string `json:"files"`
}

// KBWrite is an item as a trial's worker writes it. Its slot is the trial's.
type KBWrite struct {
	Key   string   `json:"key"`
	Title string   `json:"title"`
	Text  string   `json:"text,omitzero"`
	Tags  []string `json:"tags,omitempty"`
	// File names a file that the worker put before.
	File *KBWriteFile `json:"file,omitzero"`
}

// KBWriteFile names a file that was put.
type KBWriteFile struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// KBWritten says where the item is.
type KBWritten struct {
	Slot string `json:"slot"`
	Key  string `json:"key"`
	// Event is its event in the rig's ledger.
	Event uint64 `json:"event"`
}

// EncodeKBAsks gives a as JSON.
func EncodeKBAsks(a KBAsks) ([]byte, error) { return Canonical(a) }

// DecodeKBAsks reads what trials ask, and checks each.
func DecodeKBAsks(b []byte) (KBAsks, error) {
	var a KBAsks
	if err := decodeHarness(b, &a); err != nil {
		return KBAsks{}, fmt.Errorf("reading what trials ask of the knowledge base: %w", err)
	}
	for _, ask := range a.Asks {
		if err := ask.check(); err != nil {
			return KBAsks{}, fmt.Errorf("reading what trials ask of the knowledge base: ask %d: %w", ask.Number, err)
		}
	}
	return a, nil
}

func (a KBAsk) check() error {
	if (a.Search == nil) == (a.Read == nil) {
		return errors.New("one of search and read is given")
	}
	if err := first(number("number", a.Number), CheckName("run", a.Run)); err != nil {
		return err
	}
	if a.Search != nil {
		return a.Search.Check()
	}
	return a.Read.Check()
}

// Check says what is wrong with the read, by its field.
func (r KBRead) Check() error {
	if !IsKBID(r.ID) {
		return fmt.Errorf("id %q is no item's", clip(r.ID))
	}
	return count("offset", r.Offset)
}

// EncodeKBAnswered gives a as JSON.
func EncodeKBAnswered(a KBAnswered) ([]byte, error) { return Canonical(a) }

// MaxKBAnswered is the largest answer that a supervisor hands its harness.
const MaxKBAnswered = maxKBAnswer

// DecodeKBAnswered reads an answer and checks that it is one.
func DecodeKBAnswered(b []byte) (KBAnswered, error) {
	var a KBAnswered
	if len(b) > MaxKBAnswered {
		return a, fmt.Errorf("reading an answer of the knowledge base: it has %d bytes, at most %d", len(b), MaxKBAnswered)
	}
	if err := DecodeStrict(b, &a); err != nil {
		return KBAnswered{}, fmt.Errorf("reading an answer of the knowledge base: %w", err)
	}
	has := 0
	for _, is := range []bool{a.Hits != nil, a.Item != nil, a.Refused != "", a.Failed != ""} {
		if is {
			has++
		}
	}
	if err := number("number", a.Number); err != nil || has != 1 {
		return KBAnswered{}, errors.New("reading an answer of the knowledge base: number, and one of hits, item, refused and failed, are given")
	}
	return a, nil
}

// EncodeKBOutbox gives o as JSON.
func EncodeKBOutbox(o KBOutbox) ([]byte, error) { return Canonical(o) }

// DecodeKBOutbox reads an outbox and checks it.
func DecodeKBOutbox(b []byte) (KBOutbox, error) {
	var o KBOutbox
	err := decodeHarness(b, &o)
	if err == nil && len(o.Files) > MaxKBFilesAsked {
		err = fmt.Errorf("files has %d entries, at most %d", len(o.Files), MaxKBFilesAsked)
	}
	for _, f := range o.Files {
		if err == nil {
			err = KBFile{Name: "f", Size: f.Size, SHA256: f.SHA256}.Check()
		}
	}
	if err != nil {
		return KBOutbox{}, fmt.Errorf("reading the knowledge base's outbox: %w", err)
	}
	return o, nil
}

// EncodeKBKept gives k as JSON.
func EncodeKBKept(k KBKept) ([]byte, error) { return Canonical(k) }

// DecodeKBKept reads which files control keeps.
func DecodeKBKept(b []byte) (KBKept, error) {
	var k KBKept
	if err := first(decodeHarness(b, &k), checkSums("files", k.Files)); err != nil {
		return KBKept{}, fmt.Errorf("reading which files control keeps: %w", err)
	}
	return k, nil
}

// Item is the item that a trial's worker writes, in its slot, with the size of
// its file.
func (w KBWrite) Item(slot string, size uint64) KBItem {
	i := KBItem{Slot: slot, Key: w.Key, Title: w.Title, Text: w.Text, Tags: w.Tags}
	if w.File != nil {
		i.File = &KBFile{Name: w.File.Name, SHA256: w.File.SHA256, Size: size}
	}
	return i
}
