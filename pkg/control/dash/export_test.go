package dash

// Ago is for tests that compare it with what the script says.
var Ago = ago
