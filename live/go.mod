module github.com/trunklb/trunk/live

go 1.25.0

require (
	github.com/stretchr/testify v1.12.1
	github.com/trunklb/trunk v0.0.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace github.com/trunklb/trunk => ../
