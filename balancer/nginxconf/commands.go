package nginxconf

import (
	"slices"
	"strings"
)

// A place is a set of the places where a directive may stand.
type place uint16

// The places. HTTP and Stream are the insides of http { } and stream { }.
const (
	inMain place = 1 << iota
	inEvents
	inMail
	inHTTP
	inHTTPServer
	inLocation
	inServerIf
	inLocationIf
	inLimitExcept
	inUpstream
	inStream
	inStreamServer
	inStreamUpstream

	anyHTTP   = inHTTP | inHTTPServer | inLocation | inServerIf | inLocationIf | inLimitExcept
	anyStream = inStream | inStreamServer
	// anywhere is every place.
	anywhere = place(1<<16 - 1)
)

// A verdict is what nginx says of a directive's name in a place.
type verdict uint8

const (
	// unknown: no directive has the name.
	unknown verdict = iota
	// notHere: it has its place elsewhere.
	notHere
	// simple: it stands here and ends with ";".
	simple
	// braces: it stands here and ends with a block.
	braces
)

// command looks up a directive of nginx's own in a place.
func command(name string, where place) verdict {
	variants, known := commands[name]
	if !known {
		return unknown
	}
	for _, v := range variants {
		if v.where&where != 0 {
			return v.form
		}
	}
	return notHere
}

// misspelt returns the directive of nginx's own that a word is but for one
// letter, or "".
func misspelt(word string) string {
	for _, name := range commandNames[len(word)] {
		if oneEdit(word, name) {
			return name
		}
	}
	return ""
}

// commandNames are the directives by the lengths of words that may be meant as
// them.
var commandNames = func() map[int][]string {
	m := map[int][]string{}
	for name := range commands {
		for n := len(name) - 1; n <= len(name)+1; n++ {
			m[n] = append(m[n], name)
		}
	}
	for _, names := range m {
		slices.Sort(names)
	}
	return m
}()

// oneEdit reports whether one letter put in, taken out or changed, or two
// neighbours exchanged, make a into b.
func oneEdit(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	switch {
	case len(a) == len(b) && len(a) >= 2 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]:
		return true
	case len(a) == len(b):
		return len(a) > 0 && a[1:] == b[1:]
	case len(a) > len(b):
		return a[1:] == b
	}
	return a == b[1:]
}

// A variant is one of the directives that share a name.
type variant struct {
	where place
	form  verdict
}

// commands are nginx's directives by name. Outside upstream blocks the places
// are as fine as they must be to read a configuration, not as fine as nginx's.
var commands = makeCommands()

func makeCommands() map[string][]variant {
	m := map[string][]variant{}
	add := func(where place, form verdict, names string) {
		for _, name := range strings.Fields(names) {
			m[name] = append(m[name], variant{where, form})
		}
	}
	add(anywhere, simple, "include")

	add(inMain, braces, "events http stream mail")
	add(inMain, simple, mainCommands)
	add(inEvents, simple, eventsCommands)
	add(inMail, simple, mailCommands)
	add(inMail, braces, "server imap pop3 smtp")

	add(inHTTP, braces, "upstream server map geo split_clients charset_map")
	add(inHTTP|inHTTPServer|inLocation, braces, "types")
	add(inHTTPServer|inLocation, braces, "location if")
	add(inLocation, braces, "limit_except")
	add(inHTTPServer, simple, "listen server_name")
	add(inLocation|inLocationIf|inLimitExcept, simple,
		"proxy_pass fastcgi_pass uwsgi_pass scgi_pass grpc_pass memcached_pass")
	add(inHTTPServer|inLocation|inServerIf|inLocationIf, simple, "set return rewrite break")
	add(inHTTPServer|inLocation, simple, "try_files")
	add(inLocation, simple, "alias internal")
	add(anyHTTP, simple, httpCommands)

	add(inStream, braces, "upstream server map geo split_clients")
	add(inStreamServer, simple, "listen server_name proxy_pass")
	add(anyStream, simple, streamCommands)

	add(inUpstream|inStreamUpstream, simple,
		"server zone hash least_conn least_time random resolver resolver_timeout")
	add(inUpstream, simple,
		"ip_hash sticky keepalive keepalive_requests keepalive_time keepalive_timeout")
	return m
}

const mainCommands = `
daemon master_process pid error_log env lock_file load_module user
worker_processes worker_priority worker_cpu_affinity worker_rlimit_nofile
worker_rlimit_core worker_shutdown_timeout working_directory thread_pool
timer_resolution debug_points ssl_engine ssl_object_cache_inheritable pcre_jit
google_perftools_profiles quic_bpf`

const eventsCommands = `
worker_connections use multi_accept accept_mutex accept_mutex_delay
debug_connection worker_aio_requests epoll_events kqueue_changes kqueue_events
devpoll_changes devpoll_events eventport_events`

const mailCommands = `
listen protocol server_name timeout resolver resolver_timeout error_log
max_errors auth_http auth_http_header auth_http_pass_client_cert
auth_http_timeout imap_auth imap_capabilities imap_client_buffer pop3_auth
pop3_capabilities proxy proxy_buffer proxy_pass_error_message proxy_protocol
proxy_smtp_auth proxy_timeout set_real_ip_from smtp_auth smtp_capabilities
smtp_client_buffer smtp_greeting_delay ssl ssl_certificate ssl_certificate_key
ssl_ciphers ssl_client_certificate ssl_conf_command ssl_crl ssl_dhparam
ssl_ecdh_curve ssl_password_file ssl_prefer_server_ciphers ssl_protocols
ssl_session_cache ssl_session_ticket_key ssl_session_tickets
ssl_session_timeout ssl_trusted_certificate ssl_verify_client ssl_verify_depth
starttls xclient`

const httpCommands = `
absolute_redirect access_log add_after_body add_before_body add_header
add_header_inherit add_trailer add_trailer_inherit addition_types aio
aio_write allow ancient_browser ancient_browser_value auth_basic
auth_basic_user_file auth_delay auth_request auth_request_set autoindex
autoindex_exact_size autoindex_format autoindex_localtime charset
charset_types chunked_transfer_encoding client_body_buffer_size
client_body_in_file_only client_body_in_single_buffer client_body_temp_path
client_body_timeout client_header_buffer_size client_header_timeout
client_max_body_size connection_pool_size create_full_put_path dav_access
dav_methods default_type deny directio directio_alignment disable_symlinks
early_hints empty_gif error_log error_page etag expires fastcgi_allow_upstream
fastcgi_bind fastcgi_buffer_size fastcgi_buffering fastcgi_buffers
fastcgi_busy_buffers_size fastcgi_cache fastcgi_cache_background_update
fastcgi_cache_bypass fastcgi_cache_key fastcgi_cache_lock
fastcgi_cache_lock_age fastcgi_cache_lock_timeout
fastcgi_cache_max_range_offset fastcgi_cache_methods fastcgi_cache_min_uses
fastcgi_cache_path fastcgi_cache_revalidate fastcgi_cache_use_stale
fastcgi_cache_valid fastcgi_catch_stderr fastcgi_connect_timeout
fastcgi_force_ranges fastcgi_hide_header fastcgi_ignore_client_abort
fastcgi_ignore_headers fastcgi_index fastcgi_intercept_errors
fastcgi_keep_conn fastcgi_limit_rate fastcgi_max_temp_file_size
fastcgi_next_upstream fastcgi_next_upstream_timeout
fastcgi_next_upstream_tries fastcgi_no_cache fastcgi_param fastcgi_pass_header
fastcgi_pass_request_body fastcgi_pass_request_headers fastcgi_read_timeout
fastcgi_request_buffering fastcgi_send_lowat fastcgi_send_timeout
fastcgi_socket_keepalive fastcgi_split_path_info fastcgi_store
fastcgi_store_access fastcgi_temp_file_write_size fastcgi_temp_path flv
geoip_city geoip_country geoip_org geoip_proxy geoip_proxy_recursive grpc_bind
grpc_buffer_size grpc_connect_timeout grpc_hide_header grpc_ignore_headers
grpc_intercept_errors grpc_next_upstream grpc_next_upstream_timeout
grpc_next_upstream_tries grpc_pass_header grpc_read_timeout grpc_send_timeout
grpc_set_header grpc_socket_keepalive grpc_ssl_certificate
grpc_ssl_certificate_cache grpc_ssl_certificate_key grpc_ssl_ciphers
grpc_ssl_conf_command grpc_ssl_crl grpc_ssl_key_log grpc_ssl_name
grpc_ssl_password_file grpc_ssl_protocols grpc_ssl_server_name
grpc_ssl_session_reuse grpc_ssl_trusted_certificate grpc_ssl_verify
grpc_ssl_verify_depth gunzip gunzip_buffers gzip gzip_buffers gzip_comp_level
gzip_disable gzip_hash gzip_http_version gzip_min_length gzip_no_buffer
gzip_proxied gzip_static gzip_types gzip_vary gzip_window http2
http2_body_preread_size http2_chunk_size http2_idle_timeout
http2_max_concurrent_pushes http2_max_concurrent_streams http2_max_field_size
http2_max_header_size http2_max_requests http2_pool_size http2_push
http2_push_preload http2_recv_buffer_size http2_recv_timeout
http2_streams_index_size http3 http3_hq http3_max_concurrent_streams
http3_stream_buffer_size if_modified_since ignore_invalid_headers image_filter
image_filter_buffer image_filter_interlace image_filter_jpeg_quality
image_filter_sharpen image_filter_transparency image_filter_webp_quality index
keepalive_disable keepalive_min_timeout keepalive_requests keepalive_time
keepalive_timeout large_client_header_buffers limit_conn limit_conn_dry_run
limit_conn_log_level limit_conn_status limit_conn_zone limit_rate
limit_rate_after limit_req limit_req_dry_run limit_req_log_level
limit_req_status limit_req_zone lingering_close lingering_time
lingering_timeout log_format log_not_found log_subrequest map_hash_bucket_size
map_hash_max_size max_headers max_ranges memcached_bind memcached_buffer_size
memcached_connect_timeout memcached_gzip_flag memcached_next_upstream
memcached_next_upstream_timeout memcached_next_upstream_tries
memcached_read_timeout memcached_send_timeout memcached_socket_keepalive
merge_slashes min_delete_depth mirror mirror_request_body modern_browser
modern_browser_value mp4 mp4_buffer_size mp4_max_buffer_size
mp4_start_key_frame msie_padding msie_refresh open_file_cache
open_file_cache_errors open_file_cache_events open_file_cache_min_uses
open_file_cache_valid open_log_file_cache output_buffers override_charset perl
perl_modules perl_require perl_set port_in_redirect post_action
postpone_output proxy_allow_upstream proxy_bind proxy_buffer_size
proxy_buffering proxy_buffers proxy_busy_buffers_size proxy_cache
proxy_cache_background_update proxy_cache_bypass proxy_cache_convert_head
proxy_cache_key proxy_cache_lock proxy_cache_lock_age proxy_cache_lock_timeout
proxy_cache_max_range_offset proxy_cache_methods proxy_cache_min_uses
proxy_cache_path proxy_cache_revalidate proxy_cache_use_stale
proxy_cache_valid proxy_connect_timeout proxy_cookie_domain proxy_cookie_flags
proxy_cookie_path proxy_force_ranges proxy_headers_hash_bucket_size
proxy_headers_hash_max_size proxy_hide_header proxy_http_version
proxy_ignore_client_abort proxy_ignore_headers proxy_intercept_errors
proxy_limit_rate proxy_max_temp_file_size proxy_method proxy_next_upstream
proxy_next_upstream_timeout proxy_next_upstream_tries proxy_no_cache
proxy_pass_header proxy_pass_request_body proxy_pass_request_headers
proxy_pass_trailers proxy_read_timeout proxy_redirect proxy_request_buffering
proxy_request_dynamic proxy_send_lowat proxy_send_timeout proxy_set_body
proxy_set_header proxy_socket_keepalive proxy_ssl_certificate
proxy_ssl_certificate_cache proxy_ssl_certificate_key proxy_ssl_ciphers
proxy_ssl_conf_command proxy_ssl_crl proxy_ssl_key_log proxy_ssl_name
proxy_ssl_password_file proxy_ssl_protocols proxy_ssl_server_name
proxy_ssl_session_reuse proxy_ssl_trusted_certificate proxy_ssl_verify
proxy_ssl_verify_depth proxy_store proxy_store_access
proxy_temp_file_write_size proxy_temp_path quic_active_connection_id_limit
quic_gso quic_host_key quic_retry quic_stream_buffer_size random_index
read_ahead real_ip_header real_ip_recursive recursive_error_pages
referer_hash_bucket_size referer_hash_max_size request_pool_size
reset_timedout_connection resolver resolver_timeout rewrite_log root satisfy
scgi_allow_upstream scgi_bind scgi_buffer_size scgi_buffering scgi_buffers
scgi_busy_buffers_size scgi_cache scgi_cache_background_update
scgi_cache_bypass scgi_cache_key scgi_cache_lock scgi_cache_lock_age
scgi_cache_lock_timeout scgi_cache_max_range_offset scgi_cache_methods
scgi_cache_min_uses scgi_cache_path scgi_cache_revalidate scgi_cache_use_stale
scgi_cache_valid scgi_connect_timeout scgi_force_ranges scgi_hide_header
scgi_ignore_client_abort scgi_ignore_headers scgi_intercept_errors
scgi_limit_rate scgi_max_temp_file_size scgi_next_upstream
scgi_next_upstream_timeout scgi_next_upstream_tries scgi_no_cache scgi_param
scgi_pass_header scgi_pass_request_body scgi_pass_request_headers
scgi_read_timeout scgi_request_buffering scgi_send_timeout
scgi_socket_keepalive scgi_store scgi_store_access scgi_temp_file_write_size
scgi_temp_path secure_link secure_link_md5 secure_link_secret send_lowat
send_timeout sendfile sendfile_max_chunk server_name_in_redirect
server_names_hash_bucket_size server_names_hash_max_size server_tokens
set_real_ip_from slice source_charset spdy_chunk_size spdy_headers_comp ssi
ssi_ignore_recycled_buffers ssi_last_modified ssi_min_file_chunk
ssi_silent_errors ssi_types ssi_value_length ssl ssl_buffer_size
ssl_certificate ssl_certificate_cache ssl_certificate_compression
ssl_certificate_key ssl_ciphers ssl_client_certificate ssl_conf_command
ssl_crl ssl_dhparam ssl_early_data ssl_ecdh_curve ssl_ech_file ssl_key_log
ssl_ocsp ssl_ocsp_cache ssl_ocsp_responder ssl_password_file
ssl_prefer_server_ciphers ssl_protocols ssl_reject_handshake ssl_session_cache
ssl_session_ticket_key ssl_session_tickets ssl_session_timeout ssl_stapling
ssl_stapling_file ssl_stapling_responder ssl_stapling_verify
ssl_trusted_certificate ssl_verify_client ssl_verify_depth stub_status
sub_filter sub_filter_last_modified sub_filter_once sub_filter_types
subrequest_output_buffer_size tcp_nodelay tcp_nopush types_hash_bucket_size
types_hash_max_size underscores_in_headers uninitialized_variable_warn userid
userid_domain userid_expires userid_flags userid_mark userid_name userid_p3p
userid_path userid_service uwsgi_allow_upstream uwsgi_bind uwsgi_buffer_size
uwsgi_buffering uwsgi_buffers uwsgi_busy_buffers_size uwsgi_cache
uwsgi_cache_background_update uwsgi_cache_bypass uwsgi_cache_key
uwsgi_cache_lock uwsgi_cache_lock_age uwsgi_cache_lock_timeout
uwsgi_cache_max_range_offset uwsgi_cache_methods uwsgi_cache_min_uses
uwsgi_cache_path uwsgi_cache_revalidate uwsgi_cache_use_stale
uwsgi_cache_valid uwsgi_connect_timeout uwsgi_force_ranges uwsgi_hide_header
uwsgi_ignore_client_abort uwsgi_ignore_headers uwsgi_intercept_errors
uwsgi_limit_rate uwsgi_max_temp_file_size uwsgi_modifier1 uwsgi_modifier2
uwsgi_next_upstream uwsgi_next_upstream_timeout uwsgi_next_upstream_tries
uwsgi_no_cache uwsgi_param uwsgi_pass_header uwsgi_pass_request_body
uwsgi_pass_request_headers uwsgi_read_timeout uwsgi_request_buffering
uwsgi_send_timeout uwsgi_socket_keepalive uwsgi_ssl_certificate
uwsgi_ssl_certificate_cache uwsgi_ssl_certificate_key uwsgi_ssl_ciphers
uwsgi_ssl_conf_command uwsgi_ssl_crl uwsgi_ssl_key_log uwsgi_ssl_name
uwsgi_ssl_password_file uwsgi_ssl_protocols uwsgi_ssl_server_name
uwsgi_ssl_session_reuse uwsgi_ssl_trusted_certificate uwsgi_ssl_verify
uwsgi_ssl_verify_depth uwsgi_store uwsgi_store_access uwsgi_string
uwsgi_temp_file_write_size uwsgi_temp_path valid_referers
variables_hash_bucket_size variables_hash_max_size xml_entities
xslt_last_modified xslt_param xslt_string_param xslt_stylesheet xslt_types
tunnel_pass`

const streamCommands = `
access_log allow deny error_log limit_conn limit_conn_dry_run
limit_conn_log_level limit_conn_zone log_format map_hash_bucket_size
map_hash_max_size open_log_file_cache pass preread_buffer_size preread_timeout
proxy_bind proxy_buffer_size proxy_connect_timeout proxy_download_rate
proxy_half_close proxy_next_upstream proxy_next_upstream_timeout
proxy_next_upstream_tries proxy_protocol proxy_protocol_timeout proxy_requests
proxy_responses proxy_socket_keepalive proxy_ssl proxy_ssl_certificate
proxy_ssl_certificate_cache proxy_ssl_certificate_key proxy_ssl_ciphers
proxy_ssl_conf_command proxy_ssl_crl proxy_ssl_key_log proxy_ssl_name
proxy_ssl_password_file proxy_ssl_protocols proxy_ssl_server_name
proxy_ssl_session_reuse proxy_ssl_trusted_certificate proxy_ssl_verify
proxy_ssl_verify_depth proxy_timeout proxy_upload_rate resolver
resolver_timeout return server_names_hash_bucket_size
server_names_hash_max_size set set_real_ip_from ssl ssl_alpn ssl_certificate
ssl_certificate_cache ssl_certificate_key ssl_ciphers ssl_client_certificate
ssl_conf_command ssl_crl ssl_dhparam ssl_ecdh_curve ssl_ech_file
ssl_handshake_timeout ssl_key_log ssl_ocsp ssl_ocsp_cache ssl_ocsp_responder
ssl_password_file ssl_prefer_server_ciphers ssl_preread ssl_protocols
ssl_reject_handshake ssl_session_cache ssl_session_ticket_key
ssl_session_tickets ssl_session_timeout ssl_stapling ssl_stapling_file
ssl_stapling_responder ssl_stapling_verify ssl_trusted_certificate
ssl_verify_client ssl_verify_depth tcp_nodelay variables_hash_bucket_size
variables_hash_max_size`
