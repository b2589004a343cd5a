// Package nginx lets a real nginx judge trunk: one configuration is given to
// both, and the same requests, in the same order, onto the same backends. They must
// ask the same backends, attempt by attempt.
//
// Its tests need nginx (Debian: apt-get install nginx). Without it they are
// skipped, but fail where the environment says CI.
package nginx
