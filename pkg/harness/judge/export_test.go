package judge

// Always has each candidate run on secret cases, whatever the public ones say.
func (j *Judge) Always() { j.always = true }
