package bus

// BatchError is batchError, for what the server says to what PublishBatch
// would not send.
var BatchError = batchError

// AccountHash is accountHash, to compare with what the server makes of it.
var AccountHash = accountHash
