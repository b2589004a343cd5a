package balancer

import "fmt"

// caught makes a panic of the user's code an error, where it runs in a goroutine in which
// the user cannot recover: it would end the program.
func caught(whose string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("trunk: %s panicked: %v", whose, v)
		}
	}()
	return f()
}
