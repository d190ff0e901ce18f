package wire

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The screens ask: a supervisor sends the screens of the trials that are
// watched, and control answers with those watched now: every second while one
// is, and every 5 seconds otherwise.

// TrialRef names a trial: its number counts in its run.
type TrialRef struct {
	Run   string `json:"run"`
	Trial uint64 `json:"trial"`
}

// Check says what is wrong with the name.
func (r TrialRef) Check() error { return first(CheckName("run", r.Run), number("trial", r.Trial)) }

// Screen is what a trial's worker printed last.
type Screen struct {
	TrialRef
	// At is when the harness looked.
	At Time `json:"at"`
	// Text are its last lines, at most MaxScreenBytes: plain text, with no
	// control character but line feeds and tabs.
	Text string `json:"text"`
	// Printed is how many bytes it printed in all.
	Printed uint64 `json:"printed"`
	// Gone says why there is no screen: the trial is not at work.
	Gone string `json:"gone,omitzero"`
}

// Check says what is wrong with the screen, by its field.
func (s Screen) Check() error {
	if s.At.IsZero() {
		return fmt.Errorf("at is missing")
	}
	if strings.ContainsFunc(s.Text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }) {
		return fmt.Errorf("text has a control character")
	}
	if len(s.Text) > MaxScreenBytes {
		return fmt.Errorf("text has %d bytes, at most %d: the screen is too large", len(s.Text), MaxScreenBytes)
	}
	return first(s.TrialRef.Check(), count("printed", s.Printed), atMost("gone", s.Gone, maxWhy))
}

// ScreenText gives what a worker printed as a screen has it: its last lines,
// without what moves a terminal's cursor or colours it. A line that was
// written over is as it was written last.
func ScreenText(printed []byte) string {
	var b strings.Builder
	for line := range strings.Lines(strings.ToValidUTF8(string(printed), "�")) {
		body, end := strings.CutSuffix(line, "\n")
		body = strings.TrimSuffix(body, "\r")
		body = body[strings.LastIndexByte(body, '\r')+1:]
		plainLine(&b, body)
		if end {
			b.WriteByte('\n')
		}
	}
	text := b.String()
	if over := len(text) - MaxScreenBytes; over > 0 {
		text = text[over:]
		for !utf8.RuneStart(text[0]) {
			text = text[1:]
		}
		if cut := strings.IndexByte(text, '\n'); cut >= 0 && cut < len(text)-1 {
			text = text[cut+1:]
		}
	}
	return text
}

// plainLine writes a line without escape sequences and control characters.
func plainLine(b *strings.Builder, line string) {
	for i := 0; i < len(line); {
		c := line[i]
		if c == 0x1b {
			i = afterEscape(line, i+1)
			continue
		}
		if (c >= ' ' || c == '\t') && c != 0x7f {
			b.WriteByte(c)
		}
		i++
	}
}

// afterEscape gives where an escape sequence ends that began before i: one of
// ESC [ … letter, ESC ] … BEL, or ESC and one more.
func afterEscape(line string, i int) int {
	if i >= len(line) {
		return i
	}
	switch line[i] {
	case '[':
		for i++; i < len(line); i++ {
			if line[i] >= '@' && line[i] <= '~' {
				return i + 1
			}
		}
		return i
	case ']':
		for i++; i < len(line); i++ {
			if line[i] == 0x07 {
				return i + 1
			}
		}
		return i
	}
	if line[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// ScreensAsk is what a supervisor sends on its screens subject.
type ScreensAsk struct {
	// Nonce is random and comes back in the answer, so that an old answer
	// can't pass for this one's.
	Nonce   string   `json:"nonce"`
	Screens []Screen `json:"screens,omitzero"`
}

// ScreensAnswer is control's answer.
type ScreensAnswer struct {
	Rig   string `json:"rig"`
	Nonce string `json:"nonce"`
	// Watched are the trials whose screens the supervisor sends next.
	Watched []TrialRef `json:"watched,omitzero"`
	// Refused is why control refused the ask, in words; else empty.
	Refused string `json:"refused,omitzero"`
}

// Check says what is wrong with the ask, by its field.
func (a ScreensAsk) Check() error {
	if err := checkNonce(a.Nonce); err != nil {
		return err
	}
	if len(a.Screens) > MaxScreens {
		return fmt.Errorf("screens has %d entries, at most %d: they are too large", len(a.Screens), MaxScreens)
	}
	for n, s := range a.Screens {
		if err := s.Check(); err != nil {
			return fmt.Errorf("screens[%d].%w", n, err)
		}
	}
	return nil
}

// EncodeScreen gives the screen as JSON, after its check.
func EncodeScreen(s Screen) ([]byte, error) {
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("giving a trial's screen: %w", err)
	}
	return Canonical(s)
}

// DecodeScreen reads a screen and checks it.
func DecodeScreen(b []byte) (Screen, error) {
	var s Screen
	err := decodeHarness(b, &s)
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return Screen{}, fmt.Errorf("reading a trial's screen: %w", err)
	}
	return s, nil
}

// EncodeScreensAsk gives the ask as JSON, after its check.
func EncodeScreensAsk(a ScreensAsk) ([]byte, error) {
	if err := a.Check(); err != nil {
		return nil, fmt.Errorf("making a screens ask: %w", err)
	}
	return Canonical(a)
}

// DecodeScreensAsk reads an ask and checks it.
func DecodeScreensAsk(b []byte) (ScreensAsk, error) {
	var a ScreensAsk
	if err := decodeAsk("screens", b, &a); err != nil {
		return ScreensAsk{}, err
	}
	if err := a.Check(); err != nil {
		return ScreensAsk{}, fmt.Errorf("reading a screens ask: %w", err)
	}
	return a, nil
}

// EncodeScreensAnswer signs the answer with control's key.
func EncodeScreensAnswer(s *Signer, a ScreensAnswer) ([]byte, error) {
	return sealSigned(DomainAnswer, s, a)
}

// DecodeScreensAnswer reads the answer to the rig's ask with nonce, signed by
// control's key.
func DecodeScreensAnswer(control PublicKey, rig, nonce string, b []byte) (ScreensAnswer, error) {
	var a ScreensAnswer
	if err := openAnswer("screens", control, b, &a); err != nil {
		return ScreensAnswer{}, err
	}
	if err := answers("screens", a.Rig, a.Nonce, rig, nonce); err != nil {
		return ScreensAnswer{}, err
	}
	if len(a.Watched) > MaxScreens {
		return ScreensAnswer{}, fmt.Errorf("reading the screens ask's answer: watched has %d entries, at most %d", len(a.Watched), MaxScreens)
	}
	for n, r := range a.Watched {
		if err := r.Check(); err != nil {
			return ScreensAnswer{}, fmt.Errorf("reading the screens ask's answer: watched[%d]: %w", n, err)
		}
	}
	return a, nil
}
