package wire

import "errors"

// Place is how far control holds a ledger: the ledger and the id of the last
// event it holds of it. The zero Place holds nothing.
type Place struct {
	Ledger string `json:"ledger"`
	Cursor uint64 `json:"cursor"`
}

// check says what is wrong with p, read from another part.
func (p Place) check() error {
	if p.Ledger == "" {
		if p.Cursor != 0 {
			return errors.New("place: it has a cursor and no ledger")
		}
		return nil
	}
	return first(CheckLedger(p.Ledger), count("place.cursor", p.Cursor))
}
