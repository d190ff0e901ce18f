package dash

import (
	"encoding/csv"
	"strconv"
	"strings"
)

// csvOf answers with rows as CSV.
func (v *visit) csvOf(name string, rows [][]string) error {
	h := v.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	h.Set("Content-Disposition", `inline; filename="`+name+`.csv"`)
	w := csv.NewWriter(v.w)
	for _, row := range rows {
		for i := range row {
			row[i] = cell(row[i])
		}
	}
	_ = w.WriteAll(rows) // a browser that went away
	return nil
}

// cell keeps a spreadsheet from taking a rig's word for a formula.
func cell(s string) string {
	if s == "" || !strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}
