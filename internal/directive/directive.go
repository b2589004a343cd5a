// Package directive has the methods by their directives in an upstream block: the other
// direction of peer.Description.Directive.
package directive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/trunklb/trunk/hash"
	"github.com/trunklb/trunk/iphash"
	"github.com/trunklb/trunk/leastconn"
	"github.com/trunklb/trunk/leasttime"
	"github.com/trunklb/trunk/peer"
	"github.com/trunklb/trunk/random"
)

// ErrUnknown: no method has such a directive.
var ErrUnknown = errors.New("no such method")

// Methods are the methods' directives, each with what makes the method of its arguments,
// which nginx has accepted.
var Methods = map[string]func(args []string) (peer.Method, error){
	"least_conn": func([]string) (peer.Method, error) { return leastconn.New(), nil },
	"ip_hash":    func([]string) (peer.Method, error) { return iphash.New(), nil },
	"random": func(args []string) (peer.Method, error) {
		return random.Method{Two: arg(args, 0) == "two"}, nil
	},
	"hash": func(args []string) (peer.Method, error) {
		return hash.Method{Key: arg(args, 0), Consistent: arg(args, 1) == "consistent"}, nil
	},
	"least_time": func(args []string) (peer.Method, error) {
		mode, ok := leasttime.ParseMode(arg(args, 0))
		if !ok {
			return nil, fmt.Errorf("no mode %q", arg(args, 0))
		}
		return leasttime.Method{Mode: mode, Inflight: arg(args, 1) == "inflight"}, nil
	},
}

func arg(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// Method makes the method of a directive, with remedies, by their names, that the
// directive has no words for. ErrUnknown if no method has it.
func Method(words []string, remedies json.RawMessage) (peer.Method, error) {
	make, ok := Methods[words[0]]
	if !ok {
		return nil, ErrUnknown
	}
	m, err := make(words[1:])
	if err != nil || len(remedies) == 0 {
		return m, err
	}
	// A field that the method does not have might be a remedy that would be missing.
	of := reflect.New(reflect.TypeOf(m))
	of.Elem().Set(reflect.ValueOf(m))
	d := json.NewDecoder(bytes.NewReader(remedies))
	d.DisallowUnknownFields()
	if err := d.Decode(of.Interface()); err != nil {
		return nil, err
	}
	return of.Elem().Interface().(peer.Method), nil
}
