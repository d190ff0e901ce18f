package rig

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"os"
	"os/user"
	"slices"
	"strconv"

	"crypto/rand"

	"github.com/go-json-experiment/json"

	"thermite/pkg/files"
)

// The numbers that roles' users have: those that systemd keeps for users that
// come and go, so that no account is made with one.
const (
	firstUser = 61184
	lastUser  = 65519
)

// errNoUsers says that this root has not the numbers that roles would have, as
// in a container with few. Candidates never run as root instead.
var errNoUsers = fmt.Errorf("this root has not the users %d to %d, which roles need (/proc/self/uid_map): "+
	"start it as an ordinary user, whom all roles then share, or where root has these", firstUser, lastUser)

// keepUsers gives each role its user, by number: the one that the file has,
// and else one that no account, no group and no other role has, which it
// keeps there.
func keepUsers(path string, roles []string, random io.Reader) (map[string]int, error) {
	users := map[string]int{}
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &users)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading which users the roles have, from %s: %w", path, err)
	}
	if err := checkUsers(users); err != nil {
		return nil, fmt.Errorf("reading which users the roles have, from %s: %w", path, err)
	}
	if !mapped(firstUser, lastUser) {
		return nil, errNoUsers
	}
	changed := false
	for _, role := range roles {
		if _, ok := users[role]; !ok {
			if users[role], err = freeUser(users, random); err != nil {
				return nil, err
			}
			changed = true
		}
	}
	if !changed {
		return users, nil
	}
	if b, err = json.Marshal(users, json.Deterministic(true)); err != nil {
		return nil, fmt.Errorf("keeping which users the roles have: %w", err)
	}
	return users, files.Write(path, append(b, '\n'), 0o600)
}

func checkUsers(users map[string]int) error {
	of := map[int]string{}
	for role, uid := range users {
		if uid < firstUser || uid > lastUser {
			return fmt.Errorf("role %s has user %d, which is not from %d to %d", role, uid, firstUser, lastUser)
		}
		if other, taken := of[uid]; taken {
			return fmt.Errorf("roles %s and %s both have user %d", role, other, uid)
		}
		of[uid] = role
	}
	return nil
}

// freeUser draws a number that nobody has. It is drawn so that two Thermites
// on one machine have different ones.
func freeUser(users map[string]int, random io.Reader) (int, error) {
	const tries = 1000
	for range tries {
		n, err := rand.Int(random, big.NewInt(lastUser-firstUser+1))
		if err != nil {
			return 0, fmt.Errorf("drawing a role's user: %w", err)
		}
		uid := firstUser + int(n.Int64())
		taken := slices.ContainsFunc([]string{"", "group"}, func(kind string) bool { return account(kind, strconv.Itoa(uid)) })
		for _, other := range users {
			taken = taken || other == uid
		}
		if !taken {
			return uid, nil
		}
	}
	return 0, fmt.Errorf("drawing a role's user: accounts have all numbers from %d to %d", firstUser, lastUser)
}

// account says whether the machine has a user, or a group, of the number.
func account(kind, id string) bool {
	var err error
	if kind == "group" {
		_, err = user.LookupGroupId(id)
	} else {
		_, err = user.LookupId(id)
	}
	return err == nil
}

// mapped says whether this root has all of these users: in a user namespace
// it may have few.
func mapped(from, to int) bool {
	f, err := os.Open("/proc/self/uid_map")
	if err != nil {
		return true // there are no user namespaces
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var inside, outside, count int
		if n, _ := fmt.Sscan(lines.Text(), &inside, &outside, &count); n == 3 && inside <= from && to < inside+count {
			return true
		}
	}
	return false
}
