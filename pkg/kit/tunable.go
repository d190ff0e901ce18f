package kit

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxInt is how large an int may be: a double holds it exactly.
const maxInt = 1 << 53

var (
	intForm    = regexp.MustCompile(`\A[-+]?[0-9]+`)
	floatForm  = regexp.MustCompile(`\A[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?`)
	choiceForm = regexp.MustCompile(`\A(?:"[A-Za-z0-9_.+-]*"|[A-Za-z0-9_.+-]+)`)
	isChoice   = regexp.MustCompile(`\A[A-Za-z0-9_+][A-Za-z0-9_.+-]{0,63}\z`)
)

// Bounds are the ends of an int's or a float's range.
func (t Tunable) Bounds() (low, high float64) { return number(t.Range[0]), number(t.Range[1]) }

// Choices are a choice's words.
func (t Tunable) Choices() []string {
	words := make([]string, len(t.Range))
	for i, r := range t.Range {
		words[i], _ = r.(string)
	}
	return words
}

func number(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return math.NaN()
}

func (t Tunable) checkRange() error {
	if t.Kind == KindChoice {
		seen := map[string]bool{}
		for _, w := range t.Choices() {
			if !isChoice.MatchString(w) || seen[w] {
				return fmt.Errorf("%q: a choice is of different words of letters, digits, _ + . and -", clip(w))
			}
			seen[w] = true
		}
		if len(seen) < 2 || len(seen) > maxList {
			return fmt.Errorf("has %d words, 2 to %d", len(seen), maxList)
		}
		return nil
	}
	if len(t.Range) != 2 {
		return fmt.Errorf("has %d ends, where it has a least and a most", len(t.Range))
	}
	for _, r := range t.Range {
		if _, whole := r.(int64); t.Kind == KindInt && !whole {
			return fmt.Errorf("of an int has whole ends")
		}
		if n := number(r); math.IsNaN(n) || math.IsInf(n, 0) || math.Abs(n) > maxInt && t.Kind == KindInt {
			return fmt.Errorf("%v is no end of a range", r)
		}
	}
	low, high := t.Bounds()
	if low >= high {
		return fmt.Errorf("ends at %v, not above its start, %v", high, low)
	}
	if t.Scale == "log" && low <= 0 {
		return fmt.Errorf("starts at %v: a log scale starts above 0", low)
	}
	return nil
}

// find gives where the value of t is in the file.
func (t Tunable) find(file []byte) (from, to int, err error) {
	switch n := bytes.Count(file, []byte(t.Marker)); n {
	case 0:
		return 0, 0, t.failed("marker %q is not there", t.Marker)
	case 1:
	default:
		return 0, 0, t.failed("marker %q is there %d times", t.Marker, n)
	}
	from = bytes.Index(file, []byte(t.Marker)) + len(t.Marker)
	for from < len(file) && (file[from] == ' ' || file[from] == '\t') {
		from++
	}
	form := map[string]*regexp.Regexp{KindInt: intForm, KindFloat: floatForm, KindChoice: choiceForm}[t.Kind]
	found := form.Find(file[from:])
	to = from + len(found)
	if found == nil || to < len(file) && partOfWord(file[to]) {
		line, _, _ := bytes.Cut(file[from:], []byte("\n"))
		return 0, 0, t.failed("after marker %q is no %s but %q", t.Marker, t.Kind, clip(string(line)))
	}
	return from, to, nil
}

// partOfWord says whether c goes on with a number or word before it.
func partOfWord(c byte) bool {
	return c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func (t Tunable) failed(format string, args ...any) error {
	return fmt.Errorf("tunable %s in %s: %s", t.Name, t.File, fmt.Sprintf(format, args...))
}

// Read gives the value that the file has, as Value writes it.
func (t Tunable) Read(file []byte) (string, error) {
	from, to, err := t.find(file)
	if err != nil {
		return "", err
	}
	return t.Value(strings.Trim(string(file[from:to]), `"`))
}

// Write gives the file with the value in it, as Value writes it; a word in
// quotes keeps them.
func (t Tunable) Write(file []byte, value string) ([]byte, error) {
	value, err := t.Value(value)
	if err != nil {
		return nil, err
	}
	from, to, err := t.find(file)
	if err != nil {
		return nil, err
	}
	if file[from] == '"' {
		value = `"` + value + `"`
	}
	return slices.Concat(file[:from], []byte(value), file[to:]), nil
}

// Value gives a value the one way it is written: an int in digits, a float
// as the shortest that reads back the same and is still a float, a choice as
// its word. It fails on one that is out of range.
func (t Tunable) Value(s string) (string, error) {
	switch t.Kind {
	case KindInt:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return "", t.failed("%q is no int", clip(s))
		}
		// Compared as integers, which no rounding moves.
		low, high := t.Bounds()
		if n < int64(low) || n > int64(high) {
			return "", t.failed("%d is not from %v to %v", n, int64(low), int64(high))
		}
		return strconv.FormatInt(n, 10), nil
	case KindFloat:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || floatForm.FindString(s) != s {
			return "", t.failed("%q is no float", clip(s))
		}
		if low, high := t.Bounds(); !(f >= low && f <= high) {
			return "", t.failed("%v is not from %v to %v", f, low, high)
		}
		return formatFloat(f), nil
	default:
		if !slices.Contains(t.Choices(), s) {
			return "", t.failed("%q is none of %s", clip(s), strings.Join(t.Choices(), ", "))
		}
		return s, nil
	}
}

func formatFloat(f float64) string {
	if f == 0 {
		f = 0 // no -0
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// ReadTunables gives the values that a project's tree has, by name.
func (k Kit) ReadTunables(tree Tree) (map[string]string, error) {
	values := map[string]string{}
	for _, t := range k.Worker.Tunables {
		f, ok := tree.File(t.File)
		if !ok {
			return nil, t.failed("no such file")
		}
		v, err := t.Read(f.Data)
		if err != nil {
			return nil, err
		}
		values[t.Name] = v
	}
	return values, nil
}

// WriteTunables gives the tree with the values in it; what they do not name
// stays as it is.
func (k Kit) WriteTunables(tree Tree, values map[string]string) (Tree, error) {
	tree = slices.Clone(tree)
	for name := range values {
		if !slices.ContainsFunc(k.Worker.Tunables, func(t Tunable) bool { return t.Name == name }) {
			return nil, fmt.Errorf("the kit %s has no tunable %q", k.About.Name, clip(name))
		}
	}
	for _, t := range k.Worker.Tunables {
		v, ok := values[t.Name]
		if !ok {
			continue
		}
		i, ok := tree.find(t.File)
		if !ok {
			return nil, t.failed("no such file")
		}
		b, err := t.Write(tree[i].Data, v)
		if err != nil {
			return nil, err
		}
		tree[i].Data = b
	}
	return tree, nil
}
