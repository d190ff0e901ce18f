package wire_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"thermite/pkg/wire"
)

var timesEqual = cmp.Comparer(func(a, b wire.Time) bool { return a.Time().Equal(b.Time()) })

// Promise: what a ledger encodes, everyone reads back the same, and encodes
// to the same bytes again.
func TestEventComesBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anyEvent().Draw(t, "event")
		b, err := wire.EncodeEvent(e)
		if err != nil {
			t.Fatalf("encoding %+v: %v", e, err)
		}
		if err := wire.CheckCanonical(b); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		for name, decode := range map[string]func([]byte) (wire.Event, error){"DecodeEvent": wire.DecodeEvent, "ReadEvent": wire.ReadEvent} {
			got, err := decode(b)
			if err != nil {
				t.Fatalf("%s of %s: %v", name, b, err)
			}
			if err := e.Body.Canonicalize(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(e, got, timesEqual); diff != "" {
				t.Fatalf("%s differs (-want +got):\n%s", name, diff)
			}
			if again := must(wire.EncodeEvent(got)); !bytes.Equal(b, again) {
				t.Fatalf("%s\nencodes again as\n%s", b, again)
			}
		}
	})
}

// good is an event whose parts the tests below change.
const good = `{"actor":"controller","body":{"a":1},"id":1,"kind":"note","run":"pack26","subject":"attempt:1","time":"2026-11-30T12:00:00.000001Z"}`

func TestEventRefusesWhatItShould(t *testing.T) {
	if _, err := wire.DecodeEvent([]byte(good)); err != nil {
		t.Fatal(err)
	}
	change := func(from, to string) string {
		if !strings.Contains(good, from) {
			t.Fatalf("the good event has no %s", from)
		}
		return strings.Replace(good, from, to, 1)
	}
	tooDeep := strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000)
	for name, c := range map[string]struct {
		event, says string
		forBus      bool
	}{
		"nothing":               {event: "", says: "EOF"},
		"no JSON":               {event: "{", says: "EOF"},
		"null":                  {event: "null", says: "kind", forBus: true},
		"a list":                {event: "[]", says: "Go"},
		"unknown field":         {event: change(`"id":1`, `"id":1,"key":1`), says: "unknown"},
		"field twice":           {event: change(`"id":1`, `"id":1,"id":1`), says: "duplicate"},
		"field of other case":   {event: change(`"id":1`, `"ID":1`), says: "unknown"},
		"trailing bytes":        {event: good + " ", says: "canonical"},
		"trailing value":        {event: good + "{}", says: "after"},
		"leading space":         {event: " " + good, says: "canonical"},
		"order":                 {event: change(`"id":1,"kind":"note"`, `"kind":"note","id":1`), says: "canonical"},
		"space":                 {event: change(`"id":1`, `"id": 1`), says: "canonical"},
		"number in other form":  {event: change(`{"a":1}`, `{"a":1.0}`), says: "canonical"},
		"minus zero":            {event: change(`{"a":1}`, `{"a":-0}`), says: "canonical"},
		"exponent":              {event: change(`{"a":1}`, `{"a":1e2}`), says: "canonical"},
		"too many digits":       {event: change(`{"a":1}`, `{"a":9007199254740993}`), says: "canonical"},
		"NaN":                   {event: change(`{"a":1}`, `{"a":NaN}`), says: "invalid"},
		"infinity":              {event: change(`{"a":1}`, `{"a":1e999}`), says: "canonical"},
		"plus":                  {event: change(`{"a":1}`, `{"a":+1}`), says: "invalid"},
		"leading zero":          {event: change(`{"a":1}`, `{"a":01}`), says: "invalid"},
		"name twice in body":    {event: change(`{"a":1}`, `{"a":1,"a":1}`), says: "duplicate"},
		"names' order in body":  {event: change(`{"a":1}`, `{"b":1,"a":1}`), says: "canonical"},
		"escape for nothing":    {event: change(`{"a":1}`, `{"\u0061":1}`), says: "canonical"},
		"upper-case escape":     {event: change(`{"a":1}`, `{"a":"\u001F"}`), says: "canonical"},
		"escaped slash":         {event: change(`{"a":1}`, `{"a":"\/"}`), says: "canonical"},
		"lone surrogate":        {event: change(`{"a":1}`, `{"a":"\ud800"}`), says: "surrogate"},
		"swapped surrogates":    {event: change(`{"a":1}`, `{"a":"\ude00\ud83d"}`), says: "surrogate"},
		"no UTF-8":              {event: change(`{"a":1}`, "{\"a\":\"\xff\"}"), says: "UTF-8"},
		"overlong UTF-8":        {event: change(`{"a":1}`, "{\"a\":\"\xc0\xaf\"}"), says: "UTF-8"},
		"surrogate in UTF-8":    {event: change(`{"a":1}`, "{\"a\":\"\xed\xa0\x80\"}"), says: "UTF-8"},
		"control character":     {event: change(`{"a":1}`, "{\"a\":\"\n\"}"), says: "invalid"},
		"unclosed":              {event: change(`{"a":1}`, `{"a":1`), says: ""},
		"comma at the end":      {event: change(`{"a":1}`, `{"a":1,}`), says: ""},
		"comma at list's end":   {event: change(`{"a":1}`, `{"a":[1,]}`), says: ""},
		"too deep":              {event: change(`{"a":1}`, `{"a":`+tooDeep+`}`), says: "depth"},
		"no id":                 {event: change(`"id":1,`, ``), says: "id must be"},
		"id 0":                  {event: change(`"id":1`, `"id":0`), says: "id must be"},
		"negative id":           {event: change(`"id":1`, `"id":-1`), says: "id"},
		"id as text":            {event: change(`"id":1`, `"id":"1"`), says: "id"},
		"fraction as id":        {event: change(`"id":1`, `"id":1.5`), says: "id"},
		"id past exact":         {event: change(`"id":1`, `"id":9007199254740992`), says: "id must be"},
		"huge id":               {event: change(`"id":1`, `"id":99999999999999999999999`), says: "id"},
		"body null":             {event: change(`{"a":1}`, `null`), says: "body must be"},
		"body a list":           {event: change(`{"a":1}`, `[]`), says: "body must be"},
		"body a text":           {event: change(`{"a":1}`, `"{}"`), says: "body must be"},
		"no body":               {event: change(`"body":{"a":1},`, ``), says: "body must be"},
		"empty run":             {event: change(`"run":"pack26"`, `"run":""`), says: "canonical"},
		"null run":              {event: change(`"run":"pack26"`, `"run":null`), says: "canonical"},
		"empty subject":         {event: change(`"subject":"attempt:1"`, `"subject":""`), says: "canonical"},
		"bad run":               {event: change(`"run":"pack26"`, `"run":"a.b"`), says: "run"},
		"run with wildcard":     {event: change(`"run":"pack26"`, `"run":"*"`), says: "run"},
		"long subject":          {event: change(`attempt:1`, strings.Repeat("x", 201)), says: "subject"},
		"bad actor":             {event: change(`"controller"`, `"root"`), says: "actor"},
		"no actor":              {event: change(`"actor":"controller",`, ``), says: "actor"},
		"actor with no number":  {event: change(`"controller"`, `"lane:"`), says: "actor"},
		"actor with 01":         {event: change(`"controller"`, `"lane:01"`), says: "actor"},
		"no kind":               {event: change(`"kind":"note",`, ``), says: "kind", forBus: true},
		"kind with dot":         {event: change(`"note"`, `"a.b"`), says: "kind", forBus: true},
		"kind too long":         {event: change(`"note"`, `"`+strings.Repeat("k", 41)+`"`), says: "kind", forBus: true},
		"queue without op":      {event: change(`"note"`, `"queue"`), says: "op", forBus: true},
		"queue with bad op":     {event: strings.Replace(change(`"note"`, `"queue"`), `{"a":1}`, `{"op":"burnt"}`, 1), says: "op", forBus: true},
		"queue with op as list": {event: strings.Replace(change(`"note"`, `"queue"`), `{"a":1}`, `{"op":["added"]}`, 1), says: "op", forBus: true},
		"no time":               {event: change(`,"time":"2026-11-30T12:00:00.000001Z"`, ``), says: "time"},
		"time in other zone":    {event: change(`12:00:00.000001Z`, `12:00:00.000001+01:00`), says: "time"},
		"time without micros":   {event: change(`.000001Z`, `Z`), says: "time"},
		"time with comma":       {event: change(`.000001Z`, `,000001Z`), says: "time"},
		"30 February":           {event: change(`2026-11-30`, `2026-02-30`), says: "time"},
		"month 13":              {event: change(`2026-11-30`, `2026-13-01`), says: "time"},
		"hour 24":               {event: change(`T12:`, `T24:`), says: "time"},
		"second 60":             {event: change(`:00.000001Z`, `:60.000001Z`), says: "time"},
		"year 0":                {event: change(`2026-`, `0000-`), says: "time"},
		"zero time":             {event: change(`2026-11-30T12:00:00.000001Z`, `0001-01-01T00:00:00.000000Z`), says: "time"},
		"too large":             {event: change(`{"a":1}`, `{"a":"`+strings.Repeat("x", wire.MaxEventBytes)+`"}`), says: "too large for the message bus", forBus: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := wire.DecodeEvent([]byte(c.event))
			if err == nil {
				t.Fatal("it is taken")
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error does not say %q: %v", c.says, err)
			}
			if errors.Is(err, wire.ErrNotForBus) != c.forBus {
				t.Errorf("ErrNotForBus is %v: %v", !c.forBus, err)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
	for levels, good := range map[int]bool{1000: true, 1001: false} {
		body := `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
		_, err := wire.DecodeEvent([]byte(change(`{"a":1}`, body)))
		_, encoding := wire.EncodeEvent(wire.Event{ID: 1, Kind: "note", Actor: "controller", Time: wire.At(time.Unix(1, 0)), Body: []byte(body)})
		if (err == nil) != good || (encoding == nil) != good {
			t.Errorf("a body that is %d deep: %v, %v", levels, err, encoding)
		}
	}
}

// Promise: the largest event a ledger takes fits a page, and the page a
// message on the bus.
func TestLargestEventFitsAPage(t *testing.T) {
	e := wire.Event{ID: 1, Time: wire.At(time.Unix(1, 0)), Kind: "note", Actor: "controller"}
	e.Body = jsontext.Value(`{"a":""}`)
	room := wire.MaxEventBytes - len(must(wire.EncodeEvent(e)))
	e.Body = jsontext.Value(`{"a":"` + strings.Repeat("x", room) + `"}`)
	raw, err := wire.EncodeEvent(e)
	if err != nil || len(raw) != wire.MaxEventBytes {
		t.Fatalf("%d bytes: %v", len(raw), err)
	}
	b, err := wire.EncodePage(signer(t, 1), strings.Repeat("r", 40), testLedger, strings.Repeat("b", 100), 0, wire.ChainStart(testLedger), [][]byte{raw})
	if err != nil {
		t.Fatal(err)
	}
	if room := wire.MaxBusMessage - len(b); room < 16<<10 {
		t.Errorf("the page leaves %d bytes for a message's headers", room)
	}
	if _, err := wire.DecodePage(b); err != nil {
		t.Error(err)
	}
	e.Body = jsontext.Value(`{"a":"` + strings.Repeat("x", room+1) + `"}`)
	if _, err := wire.EncodeEvent(e); !errors.Is(err, wire.ErrNotForBus) {
		t.Errorf("one byte more: %v", err)
	}
}

func TestEncodeEventRefusesWhatItCantWrite(t *testing.T) {
	e := must(wire.DecodeEvent([]byte(good)))
	for name, change := range map[string]func(*wire.Event){
		"subject no UTF-8":   func(e *wire.Event) { e.Subject = "\xff" },
		"body no JSON":       func(e *wire.Event) { e.Body = jsontext.Value("{") },
		"body twice":         func(e *wire.Event) { e.Body = jsontext.Value("{}{}") },
		"body's names twice": func(e *wire.Event) { e.Body = jsontext.Value(`{"a":1,"a":2}`) },
		"body no UTF-8":      func(e *wire.Event) { e.Body = jsontext.Value("{\"a\":\"\xff\"}") },
		"year 10000":         func(e *wire.Event) { e.Time = wire.At(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)) },
		"no time":            func(e *wire.Event) { e.Time = wire.Time{} },
		"actor":              func(e *wire.Event) { e.Actor = `","x":"` },
		"kind":               func(e *wire.Event) { e.Kind = `","x":"` },
		"run":                func(e *wire.Event) { e.Run = `","x":"` },
	} {
		changed := e
		change(&changed)
		if b, err := wire.EncodeEvent(changed); err == nil {
			t.Errorf("%s: encoded as %s", name, b)
		}
	}
	// A body in any form is written in its one form.
	e.Body = jsontext.Value(" { \"b\" : 1.0 ,\n\"a\":\"\\u0041\" } ")
	if b := must(wire.EncodeEvent(e)); !bytes.Contains(b, []byte(`"body":{"a":"A","b":1},`)) {
		t.Errorf("the body is written as %s", b)
	}
}
