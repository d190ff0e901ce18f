package kb

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

// Search is a search of a person's, or of a program that may read everything.
type Search struct {
	// Words are as wire.KBQuery has them.
	Words string
	// Collection, Rig and Run, when not empty, must be the item's.
	Collection, Rig, Run string
	Limit                int
	// After is the Next of the page before; empty for the first.
	After string
}

// Found are the items that a search found, the best first.
type Found struct {
	Hits []store.KBHit
	// Any says that no item has every word, and these have some.
	Any bool
	// Next is the After of the next page; empty on the last.
	Next string
}

// BadSearchError says what is wrong with a search, in words for who made it.
type BadSearchError struct{ Field, Words string }

// Error implements error.
func (e *BadSearchError) Error() string { return e.Words }

// mostDeep is how deep into what was found a page may begin.
const mostDeep = 1000

// Search finds items.
func (k *KB) Search(ctx context.Context, q Search) (Found, error) {
	if err := (wire.KBQuery{Words: q.Words}).Check(); err != nil {
		return Found{}, &BadSearchError{"q", err.Error()}
	}
	s := store.KBSearch{Limit: q.Limit}
	if q.Collection != "" || q.Rig != "" || q.Run != "" {
		in, err := k.Store.KBScopes(ctx, q.Collection, q.Rig, q.Run)
		if err != nil || len(in) == 0 {
			return Found{}, err
		}
		s.In = in
	}
	return k.find(ctx, q.Words, q.After, s)
}

// find finds what has every word; if nothing has, what has any.
func (k *KB) find(ctx context.Context, words, after string, s store.KBSearch) (Found, error) {
	terms := termsOf(words)
	if len(terms) == 0 {
		return Found{}, &BadSearchError{"q", "the words to search for have no letter and no digit"}
	}
	any, offset, ok := readAfter(after)
	if !ok {
		return Found{}, &BadSearchError{"after", "after must be the next of another page"}
	}
	s.Offset, s.Limit = offset, s.Limit+1
	for {
		joined := " AND "
		if any {
			joined = " OR "
		}
		s.Match = strings.Join(terms, joined)
		hits, err := k.Store.SearchKB(ctx, s)
		if err != nil {
			return Found{}, err
		}
		if len(hits) == 0 && !any && offset == 0 && len(terms) > 1 {
			any = true
			continue
		}
		f := Found{Hits: hits, Any: any && len(hits) > 0}
		if most := s.Limit - 1; len(hits) > most {
			f.Hits = hits[:most]
			if next := offset + most; next <= mostDeep {
				f.Next = writeAfter(any, next)
			}
		}
		return f, nil
	}
}

// A page's after is how many items were before it: a12 when they have any of
// the words, 12 when every one.
func writeAfter(any bool, offset int) string {
	if any {
		return "a" + strconv.Itoa(offset)
	}
	return strconv.Itoa(offset)
}

func readAfter(s string) (any bool, offset int, ok bool) {
	if s == "" {
		return false, 0, true
	}
	digits, any := strings.CutPrefix(s, "a")
	offset, err := strconv.Atoi(digits)
	return any, offset, err == nil && offset > 0 && offset <= mostDeep && strconv.Itoa(offset) == digits
}

// termsOf gives the words as FTS5 takes them: each a phrase in quotes, with a
// star after one that only begins so.
func termsOf(words string) []string {
	var terms []string
	for rest := words; rest != ""; {
		rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
		var word string
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			word, rest, _ = strings.Cut(quoted, `"`)
		} else {
			end := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
			if end < 0 {
				end = len(rest)
			}
			word, rest = rest[:end], rest[end:]
		}
		begins := strings.HasSuffix(word, "*") || strings.HasPrefix(rest, "*")
		rest = strings.TrimPrefix(rest, "*")
		if !strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			continue
		}
		term := `"` + strings.TrimRight(word, "*") + `"`
		if begins {
			term += "*"
		}
		terms = append(terms, term)
	}
	return terms
}

// Asked is a search of a run's, as its rig asks. Refused says in words why it
// gets nothing.
func (k *KB) Asked(ctx context.Context, rig string, ask wire.KBSearchAsk) (hits wire.KBHits, refused string, err error) {
	own, refused, err := k.collectionOf(ctx, rig, ask.Run)
	if err != nil || refused != "" {
		return wire.KBHits{}, refused, err
	}
	out, err := k.Store.KBClosed(ctx, own)
	if err != nil {
		return wire.KBHits{}, "", err
	}
	found, err := k.find(ctx, ask.Query.Words, "", store.KBSearch{Out: out, Limit: ask.Query.Most()})
	if bad, ok := err.(*BadSearchError); ok {
		return wire.KBHits{}, bad.Words, nil
	}
	if err != nil {
		return wire.KBHits{}, "", err
	}
	hits = wire.KBHits{Hits: make([]wire.KBHit, len(found.Hits)), More: found.Next != "", Any: found.Any}
	for n, hit := range found.Hits {
		hits.Hits[n] = wire.KBHit{KBWhere: Where(hit.KBItem), Snippet: unmarked.Replace(hit.Snippet)}
	}
	return hits, "", nil
}

var unmarked = strings.NewReplacer(store.KBMarkOn, "", store.KBMarkOff, "")

// Where says which item it is.
func Where(i store.KBItem) wire.KBWhere {
	return wire.KBWhere{ID: strconv.FormatInt(i.ID, 10), Collection: i.Collection, Rig: i.Rig, Run: i.Run, Slot: i.Slot, Key: i.Key, Kind: i.Kind,
		Title: i.Title, Tags: i.Tags, File: i.File, At: wire.At(i.At)}
}

// Read is a read of a run's, as its rig asks.
func (k *KB) Read(ctx context.Context, rig string, ask wire.KBReadAsk) (text *wire.KBText, refused string, err error) {
	own, refused, err := k.collectionOf(ctx, rig, ask.Run)
	if err != nil || refused != "" {
		return nil, refused, err
	}
	id, err := strconv.ParseInt(ask.ID, 10, 64)
	if err != nil {
		return nil, "", err
	}
	item, has, err := k.Store.KBItemByID(ctx, id)
	if err != nil {
		return nil, "", err
	}
	if has && item.Collection != own {
		has, err = k.Store.KBOpen(ctx, item.Collection)
	}
	switch {
	case err != nil:
		return nil, "", err
	case !has:
		return nil, fmt.Sprintf("there is no item %s that run %s may read", ask.ID, ask.Run), nil
	case ask.Offset > uint64(len(item.Text)):
		return nil, fmt.Sprintf("item %s has %d bytes of text, and byte %d was asked for", ask.ID, len(item.Text), ask.Offset), nil
	}
	part, next := Part(item.Text, ask.Offset)
	return &wire.KBText{KBWhere: Where(item), Text: part, Size: uint64(len(item.Text)), Next: next}, "", nil
}

// Part gives the part of a text that begins at a byte of it, and where the
// next one begins; 0 after the last.
func Part(text string, offset uint64) (part string, next uint64) {
	part = text[offset:]
	if len(part) <= wire.MaxKBTextBytes {
		return strings.ToValidUTF8(part, ""), 0
	}
	cut := wire.MaxKBTextBytes
	for cut > 0 && part[cut]&0xc0 == 0x80 {
		cut--
	}
	return strings.ToValidUTF8(part[:cut], ""), offset + uint64(cut)
}

// collectionOf gives the collection of the rig's run, by control's records.
func (k *KB) collectionOf(ctx context.Context, rig, run string) (collection, refused string, err error) {
	if !k.Runs.Holds(run, rig) {
		return "", fmt.Sprintf("run %s is not rig %s's", run, rig), nil
	}
	if collection, err = k.Store.KBCollectionOf(ctx, rig, run); err != nil || collection != "" {
		return collection, "", err
	}
	for _, r := range k.Runs.Named(run) {
		if r.Rig == rig {
			return r.Campaign, "", nil
		}
	}
	return run, "", nil
}

// Kept gives those of the files that control keeps, as their rig asks.
func (k *KB) Kept(ctx context.Context, rig string, sums []string) (named, waiting []string, err error) {
	return k.Store.KBFilesOf(ctx, rig, sums)
}
