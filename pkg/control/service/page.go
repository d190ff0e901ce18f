package service

import (
	"fmt"
	"strconv"
)

// limit gives how many entries to give, by what was asked.
func (q PageQuery) limit() (int, error) {
	switch {
	case q.Limit == 0:
		return DefaultPage, nil
	case q.Limit < 0 || q.Limit > MaxPage:
		return 0, invalid("query.limit", fmt.Errorf("limit must be 1 to %d", MaxPage))
	default:
		return q.Limit, nil
	}
}

// before gives the id of the page before's last entry; 0 for the first page.
func (q PageQuery) before() (int64, error) {
	if q.After == "" {
		return 0, nil
	}
	return readID("query.after", "after must be the next of another page", q.After)
}

// readID reads an id of the store's, in the one form that it has.
func readID(location, words, text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 || strconv.FormatInt(id, 10) != text {
		return 0, invalid(location, fmt.Errorf("%s", words))
	}
	return id, nil
}

func idOf(id int64) string { return strconv.FormatInt(id, 10) }
