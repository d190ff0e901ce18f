package bus

// BatchError is batchError, for what the server says to what PublishBatch
// would not send.
var BatchError = batchError

// AccountHash is accountHash, to compare with what the server makes of it.
var AccountHash = accountHash

// SetPage sets how many connections one answer of the server holds.
func (a *Admin) SetPage(n int) { a.page = n }
