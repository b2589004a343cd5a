module github.com/trunklb/trunk/contrib/debugpage

go 1.25.0

require (
	github.com/trunklb/trunk v0.1.0
	golang.org/x/net v0.50.0
)
