package rest

// NewWith is New with another time for a body to come.
var NewWith = newAPI
