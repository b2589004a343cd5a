package parity

import (
	_ "github.com/stretchr/testify/require"
	_ "pgregory.net/rapid"
)
