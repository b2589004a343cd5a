module github.com/trunklb/trunk/live

go 1.25.0

require (
	github.com/miekg/dns v1.1.73
	github.com/stretchr/testify v1.12.1
	github.com/trunklb/trunk v0.0.0
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/trunklb/trunk => ../
