package wire

// Place is how far control holds a ledger: the ledger and the id of the last
// event it holds of it. The zero Place holds nothing.
type Place struct {
	Ledger string `json:"ledger"`
	Cursor uint64 `json:"cursor"`
}
