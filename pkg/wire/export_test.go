package wire

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Resign signs a page's bytes anew, whatever they hold.
func Resign(s *Signer, page []byte) []byte { return ResignAs(DomainPage, s, page) }

// ResignAs is Resign under another domain.
func ResignAs(d Domain, s *Signer, page []byte) []byte {
	b := bytes.Clone(page[:len(page)-sigTail])
	sig, err := s.sign(d, append(bytes.Clone(b), '}')).MarshalText()
	if err != nil {
		panic(err)
	}
	b = append(append(b, `,"sig":"`...), sig...)
	return append(b, `"}`...)
}

// QuickValue says whether the quick look takes b for canonical.
func QuickValue(b []byte) bool { return quickValue(b, 0, 0) == len(b) }

// ReadPage is DecodePage by the general reader alone.
func ReadPage(b []byte) (*Page, error) { return readPage(b) }

// ReadEventSlowly is DecodeEvent by the general reader alone.
func ReadEventSlowly(b []byte) (Event, error) {
	var e Event
	if err := decodeCanonical(b, &e); err != nil {
		return Event{}, err
	}
	if err := checkEvent(e, len(b)); err != nil {
		return Event{}, err
	}
	if !bytes.Equal(b, appendEvent(nil, e)) {
		return Event{}, ErrNotCanonical
	}
	return e, nil
}

// RawValue is JSON as it is.
type RawValue = jsontext.Value

// QuickPage says whether the quick look takes the page.
func QuickPage(b []byte) bool {
	_, _, list, ok := quickFrame(b)
	for i := 0; ok && i < len(list); {
		var end int
		_, end, ok = quickEvent(list, i)
		i = end + 1
	}
	return ok
}

// SignCommand signs what stands for a command, whatever it is.
func SignCommand(s *Signer, raw []byte) []byte {
	b := append([]byte(`{"command":`), raw...)
	key, _ := s.public.MarshalText()
	sig, _ := s.sign(DomainCommand, raw).MarshalText()
	b = append(append(b, `,"key":"`...), key...)
	return append(append(append(b, `","sig":"`...), sig...), `"}`...)
}

// ResignConfig changes what is in CONFIG and signs it anew.
func ResignConfig(s *Signer, b []byte, change func(*SealedConfig)) []byte {
	var m SealedConfig
	if err := openSigned(DomainConfig, s.public, b, &m); err != nil {
		panic(err)
	}
	change(&m)
	out, err := sealSigned(DomainConfig, s, m)
	if err != nil {
		panic(err)
	}
	return out
}
