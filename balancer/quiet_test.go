package balancer_test

import (
	"io"
	"log"
)

// quiet is where servers log what is meant to go wrong.
var quiet = log.New(io.Discard, "", 0)
