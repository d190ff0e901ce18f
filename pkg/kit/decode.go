package kit

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// FileName is where a kit states itself.
const FileName = "kit.toml"

// maxFile bounds kit.toml, and maxProblems what is said of it.
const (
	maxFile     = 64 << 10
	maxProblems = 50
)

// A Problem is one thing that is wrong in a kit.toml.
type Problem struct {
	File string
	Line int // 0 where it is about the whole file
	// Key is what it is about, as tables and keys are written with dots.
	Key   string
	Words string
}

// Error implements error.
func (p *Problem) Error() string {
	at := p.File
	if p.Line > 0 {
		at = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	if p.Key == "" {
		return at + ": " + p.Words
	}
	return at + ": " + p.Key + ": " + p.Words
}

// Decode reads a kit.toml strictly, sets the defaults and checks it. Its
// error holds every Problem, in the file's order.
func Decode(b []byte) (Kit, error) {
	if len(b) > maxFile {
		return Kit{}, &Problem{File: FileName, Words: fmt.Sprintf("has %d bytes, at most %d", len(b), maxFile)}
	}
	if line := tooDeep(string(b)); line > 0 {
		return Kit{}, &Problem{File: FileName, Line: line, Words: fmt.Sprintf("a key has more than %d parts", maxParts)}
	}
	var k Kit
	meta, err := toml.Decode(string(b), &k)
	if err != nil {
		return Kit{}, parseProblem(err)
	}
	lines := linesOf(string(b))
	if problems := unknown(meta.Undecoded(), lines); len(problems) > 0 {
		return Kit{}, join(problems)
	}
	k.setDefaults()
	if problems := k.check(); len(problems) > 0 {
		for _, p := range problems {
			p.Line = lines.of(p.Key)
		}
		return Kit{}, join(problems)
	}
	return k, nil
}

// maxParts bounds the parts of a key: what the library does with them grows
// with their square, and more.
const maxParts = 100

// tooDeep gives the line of a key with too many parts.
func tooDeep(text string) int {
	for i, line := range strings.Split(text, "\n") {
		if key, _, _ := strings.Cut(line, "="); strings.Count(key, ".") > maxParts {
			return i + 1
		}
	}
	return 0
}

// atLine is how the library begins an error that it has no type for.
var atLine = regexp.MustCompile(`\A(?:toml: )?line (\d+) \(last key "([^"]*)"\): `)

func parseProblem(err error) error {
	p := &Problem{File: FileName, Words: err.Error()}
	var parse toml.ParseError
	if errors.As(err, &parse) {
		p.Line, p.Key = parse.Position.Line, parse.LastKey
		if parse.Message != "" {
			p.Words = parse.Message
		}
	}
	if m := atLine.FindStringSubmatch(p.Words); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		p.Key, p.Words = m[2], p.Words[len(m[0]):]
	}
	p.Words = strings.TrimPrefix(p.Words, "toml: ")
	return p
}

func join(problems []*Problem) error {
	slices.SortStableFunc(problems, func(a, b *Problem) int { return cmp.Compare(a.Line, b.Line) })
	var errs []error
	for i, p := range problems {
		if i == maxProblems {
			errs = append(errs, &Problem{File: FileName, Words: fmt.Sprintf("and %d more", len(problems)-i)})
			break
		}
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// unknown are the keys that no field took. Of an unknown table, its name
// alone is said.
func unknown(keys []toml.Key, lines lineIndex) []*Problem {
	var problems []*Problem
	said := map[string]bool{}
	for _, key := range keys {
		known := reflect.TypeFor[Kit]()
		for i, name := range key {
			if known.Kind() == reflect.Map { // any name
				known = known.Elem()
				continue
			}
			names, at := keysOf(known)
			next, ok := at[name]
			if ok {
				known = next
				continue
			}
			path := strings.Join(key[:i+1], ".")
			if !said[path] {
				said[path] = true
				problems = append(problems, &Problem{File: FileName, Line: lines.of(path), Key: clip(path),
					Words: fmt.Sprintf("no such key; the nearest is %s", nearest(name, names))})
			}
			break
		}
	}
	return problems
}

// keysOf gives the keys of a table that is decoded into t, and what each
// holds.
func keysOf(t reflect.Type) (names []string, at map[string]reflect.Type) {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	at = map[string]reflect.Type{}
	if t.Kind() != reflect.Struct {
		return nil, at
	}
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("toml"); name != "" {
			names, at[name] = append(names, name), t.Field(i).Type
		}
	}
	return names, at
}

// nearest gives the name that takes the fewest edits to reach.
func nearest(name string, names []string) string {
	if len(names) == 0 {
		return "none: it holds no table"
	}
	return slices.MinFunc(names, func(a, b string) int { return cmp.Compare(edits(name, a), edits(name, b)) })
}

// edits is Levenshtein's distance.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// lineIndex has the line of each table and key: build.command,
// metric[1].direction.
type lineIndex map[string]int

// linesOf finds them well enough for a message: what an inline table or a
// text of many lines holds counts to the line it begins on.
func linesOf(text string) lineIndex {
	lines := lineIndex{}
	seen := map[string]int{}
	table, quote := "", ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if quote != "" {
			if strings.Contains(line, quote) {
				quote = ""
			}
			continue
		}
		switch {
		case strings.HasPrefix(line, "[["):
			name, _, _ := strings.Cut(line[2:], "]]")
			name = plainKey(name)
			table = fmt.Sprintf("%s[%d]", name, seen[name])
			seen[name]++
			lines.add(table, i+1)
		case strings.HasPrefix(line, "["):
			name, _, _ := strings.Cut(line[1:], "]")
			table = plainKey(name)
			lines.add(table, i+1)
		default:
			key, value, ok := strings.Cut(line, "=")
			if !ok || strings.HasPrefix(key, "#") {
				continue
			}
			for _, q := range []string{`"""`, `'''`} {
				if strings.Count(value, q) == 1 {
					quote = q
				}
			}
			path := plainKey(key)
			if table != "" {
				path = table + "." + path
			}
			lines.add(path, i+1)
		}
	}
	return lines
}

// plainKey takes quotes and spaces out of a dotted key.
func plainKey(key string) string {
	parts := strings.Split(key, ".")
	for i, p := range parts {
		parts[i] = strings.Trim(strings.TrimSpace(p), `"'`)
	}
	return strings.Join(parts, ".")
}

// add keeps the first line of a path, with its indexes and without.
func (l lineIndex) add(path string, line int) {
	for _, p := range []string{path, withoutIndexes(path)} {
		if _, ok := l[p]; !ok {
			l[p] = line
		}
	}
}

func withoutIndexes(path string) string {
	for {
		before, rest, ok := strings.Cut(path, "[")
		if !ok {
			return path
		}
		_, after, _ := strings.Cut(rest, "]")
		path = before + after
	}
}

// of gives the line of the key, or of the nearest table around it.
func (l lineIndex) of(path string) int {
	for path != "" {
		if line, ok := l[path]; ok {
			return line
		}
		if cut := strings.LastIndexAny(path, ".["); cut >= 0 {
			path = path[:cut]
			continue
		}
		return 0
	}
	return 0
}
