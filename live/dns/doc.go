// Package dns lets trunk look names up at a real DNS server, over UDP and TCP: what
// net.Resolver makes of it is what users get. The server runs in the test.
package dns
