package wire

import (
	"errors"
	"fmt"
	"strconv"
)

// KBSearchAsk is a search of the knowledge base by a run, on
// thermite.kb.search.<rig>. What the run may read is control's to know: no
// ask says it.
type KBSearchAsk struct {
	// Nonce is random and comes back in the answer.
	Nonce string `json:"nonce"`
	// Run is the run that the searching agent works on, as its rig's harness
	// has it.
	Run   string  `json:"run"`
	Query KBQuery `json:"query"`
}

// KBQuery is what an agent searches for.
type KBQuery struct {
	// Words are what to find: every word, or, when nothing has every one, any.
	// "Two words" in quotes stand side by side, and word* begins with it.
	Words string `json:"words"`
	// Limit is how many items to give at most, 1 to 50; 0 is 10.
	Limit uint64 `json:"limit,omitzero"`
}

// Bounds of a search.
const (
	// MaxKBWords is how long a query may be, in bytes.
	MaxKBWords  = 500
	maxKBHits   = 50
	defaultHits = 10
)

// Check says what is wrong with the query, by its field.
func (q KBQuery) Check() error {
	if q.Limit > maxKBHits {
		return fmt.Errorf("limit is %d, at most %d", q.Limit, maxKBHits)
	}
	return line("words", q.Words, MaxKBWords)
}

// Most is how many items to give at most.
func (q KBQuery) Most() int {
	if q.Limit == 0 {
		return defaultHits
	}
	return int(q.Limit)
}

// KBHits are the items that a search found, the best first.
type KBHits struct {
	Hits []KBHit `json:"hits"`
	// More says that there are others.
	More bool `json:"more,omitzero"`
	// Any says that no item has every word, and these have some.
	Any bool `json:"any,omitzero"`
}

// KBHit is one of them.
type KBHit struct {
	KBWhere
	// Snippet is the part of it that fits the query best.
	Snippet string `json:"snippet"`
}

// KBWhere says which item it is, and where it comes from.
type KBWhere struct {
	// ID names the item for a read.
	ID string `json:"id"`
	// Collection is the campaign of the run that it is of.
	Collection string `json:"collection"`
	Rig        string `json:"rig"`
	Run        string `json:"run"`
	Slot       string `json:"slot"`
	Key        string `json:"key"`
	// Kind is the kind of the event that it was made from.
	Kind  string   `json:"kind"`
	Title string   `json:"title"`
	Tags  []string `json:"tags,omitempty"`
	File  *KBFile  `json:"file,omitzero"`
	At    Time     `json:"at"`
}

// KBSearchAnswer is control's answer, or its refusal in words.
type KBSearchAnswer struct {
	Rig   string `json:"rig"`
	Nonce string `json:"nonce"`
	KBHits
	Refused string `json:"refused,omitzero"`
}

// KBReadAsk is a read of one item by a run, on thermite.kb.read.<rig>.
type KBReadAsk struct {
	Nonce string `json:"nonce"`
	Run   string `json:"run"`
	// ID is the item's, as a search gave it.
	ID string `json:"id"`
	// Offset is the byte of its text to begin at: the next of another part.
	Offset uint64 `json:"offset,omitzero"`
}

// KBText is an item with its text, or a part of that.
type KBText struct {
	KBWhere
	Text string `json:"text"`
	// Size is how many bytes the whole text has, and Next where the next part
	// begins; 0 after the last.
	Size uint64 `json:"size"`
	Next uint64 `json:"next,omitzero"`
}

// KBReadAnswer is control's answer, or its refusal in words.
type KBReadAnswer struct {
	Rig     string  `json:"rig"`
	Nonce   string  `json:"nonce"`
	Item    *KBText `json:"item,omitzero"`
	Refused string  `json:"refused,omitzero"`
}

// KBFilesAsk names files that the rig put on the bus and holds still.
type KBFilesAsk struct {
	Nonce string `json:"nonce"`
	// Files are their SHA-256, at most MaxKBFilesAsked.
	Files []string `json:"files"`
}

// KBFilesAnswer is control's answer.
type KBFilesAnswer struct {
	Rig   string `json:"rig"`
	Nonce string `json:"nonce"`
	// Kept are those that control keeps, each with an item that names it.
	Kept []string `json:"kept"`
	// Waiting are those that control keeps and whose item has not come: they
	// need not be put again.
	Waiting []string `json:"waiting,omitempty"`
	Refused string   `json:"refused,omitzero"`
}

// IsKBID says whether s can be an item's id.
func IsKBID(s string) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && n > 0 && strconv.FormatInt(n, 10) == s
}

// EncodeKBSearchAsk gives the ask as JSON.
func EncodeKBSearchAsk(a KBSearchAsk) ([]byte, error) { return Canonical(a) }

// DecodeKBSearchAsk reads an ask and checks it.
func DecodeKBSearchAsk(b []byte) (KBSearchAsk, error) {
	return readKBAsk(b, "a search", func(a KBSearchAsk) error {
		return first(checkNonce(a.Nonce), CheckName("run", a.Run), a.Query.Check())
	})
}

// EncodeKBReadAsk gives the ask as JSON.
func EncodeKBReadAsk(a KBReadAsk) ([]byte, error) { return Canonical(a) }

// DecodeKBReadAsk reads an ask and checks it.
func DecodeKBReadAsk(b []byte) (KBReadAsk, error) {
	return readKBAsk(b, "a read", func(a KBReadAsk) error {
		if err := first(checkNonce(a.Nonce), CheckName("run", a.Run), count("offset", a.Offset)); err != nil {
			return err
		}
		if !IsKBID(a.ID) {
			return fmt.Errorf("id %q is no item's", clip(a.ID))
		}
		return nil
	})
}

// EncodeKBFilesAsk gives the ask as JSON.
func EncodeKBFilesAsk(a KBFilesAsk) ([]byte, error) { return Canonical(a) }

// DecodeKBFilesAsk reads an ask and checks it.
func DecodeKBFilesAsk(b []byte) (KBFilesAsk, error) {
	return readKBAsk(b, "a kb-files ask", func(a KBFilesAsk) error {
		return first(checkNonce(a.Nonce), checkSums("files", a.Files))
	})
}

func checkSums(field string, sums []string) error {
	if len(sums) > MaxKBFilesAsked {
		return fmt.Errorf("%s has %d entries, at most %d", field, len(sums), MaxKBFilesAsked)
	}
	for _, s := range sums {
		if !IsSHA256(s) {
			return fmt.Errorf("%s: %q is no SHA-256 in hex", field, clip(s))
		}
	}
	return nil
}

// EncodeKBSearchAnswer signs the answer with control's key.
func EncodeKBSearchAnswer(s *Signer, a KBSearchAnswer) ([]byte, error) {
	return sealSigned(DomainAnswer, s, a)
}

// DecodeKBSearchAnswer reads the answer to the rig's ask with nonce, signed by
// control's key.
func DecodeKBSearchAnswer(control PublicKey, rig, nonce string, b []byte) (KBSearchAnswer, error) {
	return readKBAnswer(control, "a search's answer", b, func(a KBSearchAnswer) error {
		return first(kbAnswers(a.Rig, a.Nonce, rig, nonce), there("hits", a.Hits))
	})
}

// EncodeKBReadAnswer signs the answer with control's key.
func EncodeKBReadAnswer(s *Signer, a KBReadAnswer) ([]byte, error) {
	return sealSigned(DomainAnswer, s, a)
}

// DecodeKBReadAnswer reads the answer to the rig's ask with nonce, signed by
// control's key.
func DecodeKBReadAnswer(control PublicKey, rig, nonce string, b []byte) (KBReadAnswer, error) {
	return readKBAnswer(control, "a read's answer", b, func(a KBReadAnswer) error {
		if (a.Item == nil) != (a.Refused != "") {
			return errors.New("it has an item or says why not")
		}
		return kbAnswers(a.Rig, a.Nonce, rig, nonce)
	})
}

// EncodeKBFilesAnswer signs the answer with control's key.
func EncodeKBFilesAnswer(s *Signer, a KBFilesAnswer) ([]byte, error) {
	return sealSigned(DomainAnswer, s, a)
}

// DecodeKBFilesAnswer reads the answer to the rig's ask with nonce, signed by
// control's key.
func DecodeKBFilesAnswer(control PublicKey, rig, nonce string, b []byte) (KBFilesAnswer, error) {
	return readKBAnswer(control, "the answer to a kb-files ask", b, func(a KBFilesAnswer) error {
		return first(kbAnswers(a.Rig, a.Nonce, rig, nonce), there("kept", a.Kept), checkSums("kept", a.Kept), checkSums("waiting", a.Waiting))
	})
}

// there says that a list is missing, which may be empty.
func there[T any](field string, list []T) error {
	if list == nil {
		return fmt.Errorf("%s is missing", field)
	}
	return nil
}

// kbAnswers says whether an answer is to the rig's ask.
func kbAnswers(is, nonce, rig, asked string) error {
	if is != rig || nonce != asked {
		return fmt.Errorf("it answers rig %q and nonce %q, not %q and %q", clip(is), clip(nonce), rig, asked)
	}
	return nil
}

// readKBAsk reads an ask strictly and checks it.
func readKBAsk[T any](b []byte, what string, check func(T) error) (T, error) {
	var a, none T
	if len(b) > MaxAskBytes {
		return none, fmt.Errorf("reading %s: it has %d bytes, at most %d", what, len(b), MaxAskBytes)
	}
	err := DecodeStrict(b, &a)
	if err == nil {
		err = check(a)
	}
	if err != nil {
		return none, fmt.Errorf("reading %s: %w", what, err)
	}
	return a, nil
}

// readKBAnswer reads an answer that control signed, and checks it.
func readKBAnswer[T any](control PublicKey, what string, b []byte, check func(T) error) (T, error) {
	var a, none T
	if len(b) > maxKBAnswer {
		return none, fmt.Errorf("reading %s: it has %d bytes, at most %d", what, len(b), maxKBAnswer)
	}
	err := openSigned(DomainAnswer, control, b, &a)
	if err == nil {
		err = check(a)
	}
	if err != nil {
		return none, fmt.Errorf("reading %s: %w", what, err)
	}
	return a, nil
}

// maxKBAnswer is the largest answer: a text's part of MaxKBTextBytes, each
// byte of which JSON may write as six, with what is around it.
const maxKBAnswer = 6*MaxKBTextBytes + MaxAskBytes
