package nginxconf

import "strings"

// knownVariable reports whether nginx has a variable of that name, in http or
// in stream, without anything being defined in the configuration.
func knownVariable(name string, stream bool) bool {
	names, prefixes := httpVariables, httpPrefixes
	if stream {
		names, prefixes = streamVariables, nil
	}
	if names[name] {
		return true
	}
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// The prefixes alone are names too: $arg_ is the argument without a name.
var httpPrefixes = []string{
	"arg_", "cookie_", "http_", "sent_http_", "sent_trailer_",
	"upstream_cookie_", "upstream_http_", "upstream_trailer_",
}

var httpVariables = words(`
ancient_browser args binary_remote_addr body_bytes_sent bytes_sent connection
connection_id connection_requests connection_time connections_active
connections_reading connections_waiting connections_writing content_length
content_type date_gmt date_local document_root document_uri fastcgi_path_info
fastcgi_script_name geoip_area_code geoip_city geoip_city_continent_code
geoip_city_country_code geoip_city_country_code3 geoip_city_country_name
geoip_country_code geoip_country_code3 geoip_country_name geoip_dma_code
geoip_latitude geoip_longitude geoip_org geoip_postal_code geoip_region
geoip_region_name gzip_ratio host hostname http2 http3 https invalid_referer
is_args is_request_port limit_conn_status limit_rate limit_req_status
modern_browser msec msie nginx_version pid pipe proxy_add_x_forwarded_for
proxy_host proxy_internal_body_length proxy_internal_chunked
proxy_internal_connect proxy_port proxy_protocol_addr proxy_protocol_port
proxy_protocol_server_addr proxy_protocol_server_port query_string
realip_remote_addr realip_remote_port realpath_root remote_addr remote_port
remote_user request request_body request_body_file request_completion
request_filename request_id request_length request_method request_port
request_time request_uri scheme secure_link secure_link_expires
sent_http_cache_control sent_http_connection sent_http_content_length
sent_http_content_type sent_http_keep_alive sent_http_last_modified
sent_http_link sent_http_location sent_http_transfer_encoding server_addr
server_name server_port server_protocol slice_range ssl_alpn_protocol
ssl_cipher ssl_ciphers ssl_client_cert ssl_client_escaped_cert
ssl_client_fingerprint ssl_client_i_dn ssl_client_i_dn_legacy
ssl_client_raw_cert ssl_client_s_dn ssl_client_s_dn_legacy ssl_client_serial
ssl_client_sigalg ssl_client_v_end ssl_client_v_remain ssl_client_v_start
ssl_client_verify ssl_curve ssl_curves ssl_early_data
ssl_ech_outer_server_name ssl_ech_status ssl_protocol ssl_server_name
ssl_session_id ssl_session_reused ssl_sigalg status tcpinfo_rcv_space
tcpinfo_rtt tcpinfo_rttvar tcpinfo_snd_cwnd time_iso8601 time_local uid_got
uid_reset uid_set upstream_addr upstream_bytes_received upstream_bytes_sent
upstream_cache_age upstream_cache_key upstream_cache_last_modified
upstream_cache_etag upstream_cache_status upstream_connect_time
upstream_header_time upstream_last_addr upstream_last_server_name
upstream_queue_time upstream_response_length upstream_response_time
upstream_status uri`)

var streamVariables = words(`
binary_remote_addr bytes_received bytes_sent connection geoip_area_code
geoip_city geoip_city_continent_code geoip_city_country_code
geoip_city_country_code3 geoip_city_country_name geoip_country_code
geoip_country_code3 geoip_country_name geoip_dma_code geoip_latitude
geoip_longitude geoip_org geoip_postal_code geoip_region geoip_region_name
hostname limit_conn_status msec nginx_version pid protocol proxy_protocol_addr
proxy_protocol_port proxy_protocol_server_addr proxy_protocol_server_port
realip_remote_addr realip_remote_port remote_addr remote_port server_addr
server_name server_port session_time ssl_alpn_protocol ssl_cipher ssl_ciphers
ssl_client_cert ssl_client_fingerprint ssl_client_i_dn ssl_client_raw_cert
ssl_client_s_dn ssl_client_serial ssl_client_sigalg ssl_client_v_end
ssl_client_v_remain ssl_client_v_start ssl_client_verify ssl_curve ssl_curves
ssl_preread_alpn_protocols ssl_preread_protocol ssl_preread_server_name
ssl_protocol ssl_server_name ssl_session_id ssl_session_reused ssl_sigalg
status time_iso8601 time_local upstream_addr upstream_bytes_received
upstream_bytes_sent upstream_connect_time upstream_first_byte_time
upstream_session_time`)

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}
