package bus

// BatchError is batchError, for what the server says to what PublishBatch
// would not send.
var BatchError = batchError
