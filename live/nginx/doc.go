// Package nginx lets a real nginx judge trunk: one configuration is given to
// both, and the same requests, in the same order, onto the same backends. They must
// ask the same backends, attempt by attempt. Over HTTP nginx's http is compared with
// RoundTripper, and over TCP its stream with DialContext.
//
// Its tests need nginx and its module stream (Debian: apt-get install nginx
// libnginx-mod-stream). Without these they are skipped, but fail where the
// environment says CI.
package nginx
