package wire

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// This file reads canonical JSON in one pass, without the general parser:
// pages are most of what control does. It only ever says yes. What is wrong it
// leaves to the general reader, which says why; tests hold that both agree. It
// knows all that is canonical: the general reader takes seconds for a large
// page, and a rig that signs such pages would keep the others waiting.

// maxDepth is how deep an event's body may nest.
const maxDepth = 1000

// depth gives how deep b nests, at most, whether it is JSON or not.
func depth(b []byte) (deepest int) {
	now, text := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// plain are the bytes that a string holds as they are: ASCII without
// controls, quotes and backslashes.
var plain = func() (is [256]bool) {
	for c := 0x20; c < 0x80; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// quickValue gives the end of the canonical value that starts at b[i], or -1.
func quickValue(b []byte, i, depth int) int {
	if i >= len(b) || depth == maxDepth && (b[i] == '{' || b[i] == '[') {
		return -1
	}
	switch b[i] {
	case '{':
		return quickObject(b, i, depth)
	case '[':
		return quickArray(b, i, depth)
	case '"':
		return quickString(b, i)
	case 't':
		return after(b, i, "true")
	case 'f':
		return after(b, i, "false")
	case 'n':
		return after(b, i, "null")
	}
	return quickNumber(b, i)
}

// after gives the end of word if it is at b[i], or -1; also for i = -1, so
// that calls can follow each other.
func after(b []byte, i int, word string) int {
	if i < 0 || len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

func quickObject(b []byte, i, depth int) int {
	i++
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	var before []byte
	for first := true; ; first = false {
		name, next := quickName(b, i)
		if next < 0 || !first && compareNames(before, name) >= 0 {
			return -1
		}
		before = name
		if i = after(b, next, ":"); i < 0 {
			return -1
		}
		if i = quickValue(b, i, depth+1); i < 0 || i >= len(b) {
			return -1
		}
		switch b[i] {
		case ',':
			i++
		case '}':
			return i + 1
		default:
			return -1
		}
	}
}

func quickArray(b []byte, i, depth int) int {
	i++
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = quickValue(b, i, depth+1); i < 0 || i >= len(b) {
			return -1
		}
		switch b[i] {
		case ',':
			i++
		case ']':
			return i + 1
		default:
			return -1
		}
	}
}

// plainString gives what is between the quotes of the string at b[i], if all
// of it is plain, and the end of the string, or -1.
func plainString(b []byte, i int) ([]byte, int) {
	if i < 0 || i >= len(b) || b[i] != '"' {
		return nil, -1
	}
	from := i + 1
	for i = from; i < len(b) && plain[b[i]]; i++ {
	}
	if i >= len(b) || b[i] != '"' {
		return nil, -1
	}
	return b[from:i], i + 1
}

// quickName gives the string at b[i] without its quotes and escapes, and its
// end, or -1.
func quickName(b []byte, i int) ([]byte, int) {
	if name, end := plainString(b, i); end >= 0 {
		return name, end
	}
	if i < 0 || i >= len(b) || b[i] != '"' {
		return nil, -1
	}
	end := quickString(b, i)
	if end < 0 {
		return nil, -1
	}
	if name := b[i+1 : end-1]; bytes.IndexByte(name, '\\') < 0 {
		return name, end
	}
	name, err := jsontext.AppendUnquote(nil, b[i:end])
	if err != nil {
		return nil, -1
	}
	return name, end
}

// compareNames compares two names, in UTF-8, as RFC 8785 does: by their UTF-16
// code units.
func compareNames(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n == len(a) || n == len(b) {
		return cmp.Compare(len(a), len(b))
	}
	if a[n] < utf8.RuneSelf && b[n] < utf8.RuneSelf {
		return cmp.Compare(a[n], b[n])
	}
	for !utf8.RuneStart(a[n]) {
		n--
	}
	ra, _ := utf8.DecodeRune(a[n:])
	rb, _ := utf8.DecodeRune(b[n:])
	return cmp.Or(cmp.Compare(firstUnit(ra), firstUnit(rb)), cmp.Compare(ra, rb))
}

// firstUnit is the first UTF-16 code unit of r.
func firstUnit(r rune) rune {
	if high, _ := utf16.EncodeRune(r); high != utf8.RuneError {
		return high
	}
	return r
}

func quickString(b []byte, i int) int {
	from, ascii := i+1, true
	for i = from; i < len(b); i++ {
		switch c := b[i]; {
		case plain[c]:
		case c == '"':
			if !ascii && !utf8.Valid(b[from:i]) {
				return -1
			}
			return i + 1
		case c == '\\':
			n := quickEscape(b[i+1:])
			if n < 0 {
				return -1
			}
			i += n
		case c >= 0x80:
			ascii = false
		default:
			return -1
		}
	}
	return -1
}

// quickEscape gives the length of the escape after its backslash, if RFC 8785
// writes its character so, or -1.
func quickEscape(b []byte) int {
	if len(b) == 0 {
		return -1
	}
	switch b[0] {
	case '"', '\\', 'b', 't', 'n', 'f', 'r':
		return 1
	case 'u':
	default:
		return -1
	}
	if len(b) < 5 || b[1] != '0' || b[2] != '0' || b[3] != '0' && b[3] != '1' {
		return -1
	}
	low := bytes.IndexByte([]byte("0123456789abcdef"), b[4])
	if low < 0 || b[3] == '0' && bytes.IndexByte([]byte("\b\t\n\f\r"), byte(low)) >= 0 {
		return -1
	}
	return 5
}

// exactDigits is how many digits an integer may have and always be exact.
const exactDigits = 15

func quickNumber(b []byte, i int) int {
	from := i
	if i < len(b) && b[i] == '-' {
		i++
	}
	first := i
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	digits := i - first
	if digits == 0 || b[first] == '0' && digits > 1 {
		return -1
	}
	if digits > exactDigits || i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		return anyNumber(b, from)
	}
	if i == len(b) || b[i] != '.' {
		if b[first] == '0' && first > from {
			return -1 // -0 is written 0
		}
		return i
	}
	return quickFraction(b, from, i+1)
}

// quickFraction gives the end of the number that starts at from and has its
// point before i, if it is written as RFC 8785 writes it.
func quickFraction(b []byte, from, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') || i-from > maxNumber {
		return anyNumber(b, from)
	}
	f, err := strconv.ParseFloat(string(b[from:i]), 64)
	if err != nil || math.Abs(f) < 1e-6 || math.Abs(f) >= 1e21 {
		return -1 // those are written with an exponent
	}
	var form [40]byte
	if !bytes.Equal(b[from:i], strconv.AppendFloat(form[:0], f, 'f', -1, 64)) {
		return -1
	}
	return i
}

// maxNumber is more than a number has, as RFC 8785 writes it.
const maxNumber = 30

// anyNumber is quickNumber for the rare numbers.
func anyNumber(b []byte, i int) int {
	from := i
	for i < len(b) && i-from <= maxNumber && strings.IndexByte("0123456789+-.eE", b[i]) >= 0 {
		i++
	}
	v := jsontext.Value(bytes.Clone(b[from:i]))
	if i-from > maxNumber || v.Canonicalize() != nil || !bytes.Equal(v, b[from:i]) {
		return -1
	}
	return i
}

// quickUint reads an integer without a sign.
func quickUint(b []byte, i int) (n uint64, end int) {
	from := i
	if i < 0 {
		return 0, -1
	}
	for ; i < len(b) && '0' <= b[i] && b[i] <= '9'; i++ {
		n = n*10 + uint64(b[i]-'0')
	}
	if i == from || i-from > exactDigits || b[from] == '0' && i-from > 1 {
		return 0, -1
	}
	return n, i
}

// quickTime reads what timeLayout writes.
func quickTime(b []byte) (Time, bool) {
	if len(b) != len(timeLayout) || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' || b[19] != '.' || b[26] != 'Z' {
		return Time{}, false
	}
	ok := true
	part := func(from, to int) (n int) {
		for _, c := range b[from:to] {
			ok = ok && '0' <= c && c <= '9'
			n = n*10 + int(c-'0')
		}
		return n
	}
	year, month, day := part(0, 4), time.Month(part(5, 7)), part(8, 10)
	hour, minute, second, micro := part(11, 13), part(14, 16), part(17, 19), part(20, 26)
	if !ok || year < 1 || month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59 {
		return Time{}, false
	}
	t := time.Date(year, month, day, hour, minute, second, micro*1000, time.UTC)
	return Time{t}, t.Day() == day && t.Month() == month && !t.IsZero()
}

// quickEvent reads the event that starts at b[i], and gives its end. Its
// checks are checkEvent's to make.
func quickEvent(b []byte, i int) (e Event, end int, ok bool) {
	actor, i := plainString(b, after(b, i, `{"actor":`))
	body := after(b, i, `,"body":`)
	if body < 0 || body >= len(b) || b[body] != '{' {
		return e, 0, false
	}
	if i = quickValue(b, body, 0); i < 0 {
		return e, 0, false
	}
	e.Body = jsontext.Value(b[body:i:i])
	e.ID, i = quickUint(b, after(b, i, `,"id":`))
	kind, i := plainString(b, after(b, i, `,"kind":`))
	var run, subject []byte
	if next := after(b, i, `,"run":`); next >= 0 {
		if run, i = plainString(b, next); len(run) == 0 {
			return e, 0, false
		}
	}
	if next := after(b, i, `,"subject":`); next >= 0 {
		if subject, i = quickName(b, next); len(subject) == 0 {
			return e, 0, false
		}
	}
	at, i := plainString(b, after(b, i, `,"time":`))
	if i = after(b, i, "}"); i < 0 {
		return e, 0, false
	}
	if e.Time, ok = quickTime(at); !ok {
		return e, 0, false
	}
	e.Actor, e.Kind, e.Run, e.Subject = word(actor), word(kind), string(run), string(subject)
	return e, i, true
}

// words are the texts that most events have, so that each is in memory once.
var words = func() map[string]string {
	m := map[string]string{}
	for _, list := range [][]string{plainActors, kinds} {
		for _, s := range list {
			m[s] = s
		}
	}
	return m
}()

func word(b []byte) string {
	if s, ok := words[string(b)]; ok {
		return s
	}
	return string(b)
}

// appendEvent writes e in canonical form. The caller checked e, and its body
// is canonical.
func appendEvent(b []byte, e Event) []byte {
	b = append(b, `{"actor":"`...)
	b = append(b, e.Actor...)
	b = append(b, `","body":`...)
	b = append(b, e.Body...)
	b = append(b, `,"id":`...)
	b = strconv.AppendUint(b, e.ID, 10)
	b = append(b, `,"kind":"`...)
	b = append(b, e.Kind...)
	if e.Run != "" {
		b = append(b, `","run":"`...)
		b = append(b, e.Run...)
	}
	b = append(b, '"')
	if e.Subject != "" {
		b = append(b, `,"subject":`...)
		b, _ = jsontext.AppendQuote(b, e.Subject) // checked to be UTF-8
	}
	b = append(b, `,"time":"`...)
	b = e.Time.t.AppendFormat(b, timeLayout)
	return append(b, `"}`...)
}
