package broker_test

func doThing(what string, args []string) int { return 99 }
