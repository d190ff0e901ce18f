package kit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var versionIn = regexp.MustCompile(versionForm)

// Satisfied says whether the version that output names, the first in it with
// a dot (or, of one that has none, the first number), is at least least.
func Satisfied(output, least string) (version string, ok bool) {
	found := versionIn.FindAllString(output, -1)
	if len(found) == 0 {
		return "", false
	}
	version = found[0]
	if i := slices.IndexFunc(found, func(v string) bool { return strings.Contains(v, ".") }); i >= 0 {
		version = found[i]
	}
	return version, slices.CompareFunc(strings.Split(version, "."), strings.Split(least, "."), compareNumbers) >= 0
}

func compareNumbers(a, b string) int {
	x, _ := strconv.ParseUint(a, 10, 64)
	y, _ := strconv.ParseUint(b, 10, 64)
	return cmp.Compare(x, y)
}

// Lacks says which programs of those the kit requires are not there, with
// why, in the order of their names. output runs a version command.
func (k Kit) Lacks(ctx context.Context, output func(ctx context.Context, argv []string) (string, error)) []string {
	var lacks []string
	for _, name := range slices.Sorted(maps.Keys(k.Requires)) {
		p := k.Requires[name]
		text, err := output(ctx, p.Version)
		if err != nil {
			lacks = append(lacks, fmt.Sprintf("%s %s or later: %v", name, p.Least, err))
			continue
		}
		if version, ok := Satisfied(text, p.Least); !ok {
			lacks = append(lacks, fmt.Sprintf("%s %s or later: here is %q", name, p.Least, version))
		}
	}
	return lacks
}
