package wire

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// KBItem is something that a run learned, as its writer puts it into the
// knowledge base: the body of a kb_item event, whose actor is the writer.
type KBItem struct {
	// Slot is where its writer's items are: see KBSlot. Control takes an item
	// in its writer's own slot only.
	Slot string `json:"slot"`
	// Key names it in its slot; an item written again with the same key takes
	// the place of the one before.
	Key string `json:"key"`
	// Title is one line, and Text what was learned.
	Title string `json:"title"`
	Text  string `json:"text"`
	// Tags are words to find it by.
	Tags []string `json:"tags,omitempty"`
	// File goes with it, if there is one.
	File *KBFile `json:"file,omitzero"`
}

// KBFile is the file of an item. Its bytes travel apart, on KB_FILES.
type KBFile struct {
	// Name is what its writer calls it: one name, no path.
	Name string `json:"name"`
	// Size is in bytes.
	Size uint64 `json:"size"`
	// SHA256 is its bytes' SHA-256, in hex.
	SHA256 string `json:"sha256"`
}

// KBRecords is the slot of Thermite's own records of a run.
const KBRecords = "records"

// KBSlot is the slot of an event's actor: records for Thermite's code,
// planner, trial-<n> or advisor-<name>; empty for one who writes none.
func KBSlot(actor string) string {
	switch actor {
	case "controller", "judge", "supervisor":
		return KBRecords
	case "planner":
		return actor
	}
	switch who, which, _ := strings.Cut(actor, ":"); who {
	case "trial", "advisor":
		return who + "-" + which
	}
	return ""
}

// Bounds of an item, in bytes, and of its tags.
const (
	maxKBKey      = 80
	maxKBFileName = 120
	maxKBTags     = 20
	maxKBTag      = 40
)

// Kind implements Body.
func (KBItem) Kind() string { return KindKBItem }

// Check implements Body.
func (b KBItem) Check() error {
	err := first(some("slot", b.Slot, maxName), CheckKBKey(b.Key), line("title", b.Title, maxTitle), text("text", b.Text, MaxKBTextBytes), checkTags(b.Tags))
	if err == nil && b.File != nil {
		err = b.File.Check()
	}
	return err
}

// CheckKBKey says whether s can name an item: 1 to 80 of a-z, 0-9, ".", "_"
// and "-", beginning with a letter or digit.
func CheckKBKey(s string) error {
	ok := made(s, 1, maxKBKey, func(c byte) bool { return isLetter(c) || isDigit(c) || c == '-' || c == '_' || c == '.' })
	if !ok || s[0] == '-' || s[0] == '.' || s[0] == '_' {
		return fmt.Errorf("key %q: use 1 to %d of a-z, 0-9, ., _ and -, starting with a letter or digit", clip(s), maxKBKey)
	}
	return nil
}

func checkTags(tags []string) error {
	if len(tags) > maxKBTags {
		return fmt.Errorf("tags has %d entries, at most %d", len(tags), maxKBTags)
	}
	for i, tag := range tags {
		if err := line("tags["+strconv.Itoa(i)+"]", tag, maxKBTag); err != nil {
			return err
		}
	}
	return nil
}

// Check says what is wrong with the file, by its field.
func (f KBFile) Check() error {
	if err := line("file.name", f.Name, maxKBFileName); err != nil {
		return err
	}
	if strings.ContainsAny(f.Name, "/\\") || f.Name == "." || f.Name == ".." {
		return fmt.Errorf("file.name %q: one name, no path", clip(f.Name))
	}
	if f.Size == 0 || f.Size > MaxKBFileBytes {
		return fmt.Errorf("file.size is %d, where it may be 1 to %d", f.Size, uint64(MaxKBFileBytes))
	}
	if !IsSHA256(f.SHA256) {
		return fmt.Errorf("file.sha256 %q is no SHA-256 in hex", clip(f.SHA256))
	}
	return nil
}

// IsSHA256 says whether s is a SHA-256 as it is written here: 64 digits of
// hex, in lower case.
func IsSHA256(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32 && strings.ToLower(s) == s
}

// line is a text of one line that must be there.
func line(field, s string, most int) error {
	switch {
	case strings.TrimSpace(s) == "":
		return fmt.Errorf("%s is missing", field)
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("%s has more than one line, or a control character", field)
	}
	return text(field, s, most)
}

// text is a text that may be empty.
func text(field, s string, most int) error {
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return fmt.Errorf("%s is no text", field)
	}
	return atMost(field, s, most)
}

// Headers of a message in KB_FILES, which holds one chunk of a file: the
// file's SHA-256, its size in bytes, and the chunk's number from 0. Each chunk
// but the last has MaxKBChunkBytes.
const (
	HeaderKBFile  = "Thermite-File"
	HeaderKBSize  = "Thermite-File-Size"
	HeaderKBChunk = "Thermite-File-Chunk"
)

// KBChunk says which part of which file a message in KB_FILES holds.
type KBChunk struct {
	SHA256 string
	Size   uint64
	Number uint64
}

// KBChunks is how many chunks a file of that size has.
func KBChunks(size uint64) uint64 { return (size + MaxKBChunkBytes - 1) / MaxKBChunkBytes }

// Bytes is how many bytes the chunk has.
func (c KBChunk) Bytes() uint64 {
	return min(MaxKBChunkBytes, c.Size-c.Number*MaxKBChunkBytes)
}

// Last says whether it is the file's last.
func (c KBChunk) Last() bool { return c.Number+1 == KBChunks(c.Size) }

// Headers are the chunk's headers.
func (c KBChunk) Headers() map[string]string {
	return map[string]string{HeaderKBFile: c.SHA256, HeaderKBSize: strconv.FormatUint(c.Size, 10), HeaderKBChunk: strconv.FormatUint(c.Number, 10)}
}

// DecodeKBChunk reads what a message in KB_FILES says that it holds, by its
// headers, and checks that it has so many bytes.
func DecodeKBChunk(header func(string) string, bytes int) (KBChunk, error) {
	c := KBChunk{SHA256: header(HeaderKBFile)}
	wrong := func(format string, args ...any) (KBChunk, error) {
		return KBChunk{}, fmt.Errorf("reading a chunk of a file: %w", fmt.Errorf(format, args...))
	}
	if !IsSHA256(c.SHA256) {
		return wrong("%s %q is no SHA-256 in hex", HeaderKBFile, clip(c.SHA256))
	}
	var err error
	if c.Size, err = strconv.ParseUint(header(HeaderKBSize), 10, 64); err != nil || c.Size == 0 || c.Size > MaxKBFileBytes {
		return wrong("%s %q is no size from 1 to %d", HeaderKBSize, clip(header(HeaderKBSize)), uint64(MaxKBFileBytes))
	}
	if c.Number, err = strconv.ParseUint(header(HeaderKBChunk), 10, 64); err != nil || c.Number >= KBChunks(c.Size) {
		return wrong("%s %q: a file of %d bytes has %d chunks, numbered from 0", HeaderKBChunk, clip(header(HeaderKBChunk)), c.Size, KBChunks(c.Size))
	}
	if uint64(bytes) != c.Bytes() {
		return wrong("chunk %d of a file of %d bytes has %d bytes, not %d", c.Number, c.Size, c.Bytes(), bytes)
	}
	return c, nil
}
