/* SPDX-License-Identifier: BSD-2-Clause */
/* What an operator may write as the store, what is refused and with which words, and that nobody ever sees a password. */
#include "redis/store_url.h"

#include "rig.h"

#include <string.h>

#define SECRET "s3cr3t-Pa55"

static struct store_url good(const char *text)
{
    struct store_url url;
    const char *refusal = store_url_read(span_of(text), &url);
    if (refusal != NULL)
        fail_msg("%s: %s", text, refusal);
    return url;
}

static void expect_printed(const char *text, const char *printed)
{
    struct store_url url = good(text);
    char out[STORE_PRINTED_MAX];
    assert_int_equal(store_url_print(&url, out), strlen(printed));
    assert_string_equal(out, printed);
}

/* One sentence, and nothing of the URL stays behind. */
static void expect_refused(const char *text, const char *part)
{
    static const struct store_url empty;
    struct store_url url;
    const char *refusal = store_url_read(span_of(text), &url);
    if (refusal == NULL)
        refusal = "taken";
    if (strstr(refusal, part) == NULL)
        fail_msg("%s: %s", text, refusal);
    assert_int_equal(refusal[strlen(refusal) - 1], '.');
    assert_memory_equal(&url, &empty, sizeof(url));
}

static void one_address_is_enough(void **state)
{
    (void)state;
    struct store_url url = good("redis://cache.example");
    assert_int_equal(url.address_count, 1);
    assert_string_equal(url.addresses[0].host, "cache.example");
    assert_int_equal(url.addresses[0].port, 6379);
    assert_int_equal(url.database, 0);
    assert_int_equal(url.login.source, SECRET_NONE);
    assert_false(url.tls.is_on || url.is_sentinel);
}

static void every_part_is_read(void **state)
{
    (void)state;
    struct store_url url =
        good("rediss+sentinel://we%3Air:" SECRET "%40%2f@s1,[::1]:7,10.0.0.1:26380/my%20master/12?"
             "ca=/etc/ca.pem&cert=/c&key=/k&name=redis.example&verify=ca&"
             "sentinel_user=watch&sentinel_password_env=SENTINEL_PASSWORD");
    assert_true(url.tls.is_on && url.is_sentinel);
    assert_string_equal(url.login.user.data, "we:ir");
    assert_int_equal(url.login.source, SECRET_GIVEN);
    assert_string_equal(url.login.secret.data, SECRET "@/");
    assert_int_equal(url.login.secret.len, strlen(SECRET "@/"));
    assert_int_equal(url.address_count, 3);
    assert_int_equal(url.addresses[0].port, 26379);
    assert_string_equal(url.addresses[1].host, "::1");
    assert_int_equal(url.addresses[1].port, 7);
    assert_int_equal(url.addresses[2].port, 26380);
    assert_string_equal(url.master_name.data, "my master");
    assert_int_equal(url.database, 12);
    assert_string_equal(url.tls.ca.data, "/etc/ca.pem");
    assert_string_equal(url.tls.cert.data, "/c");
    assert_string_equal(url.tls.key.data, "/k");
    assert_string_equal(url.tls.name.data, "redis.example");
    assert_int_equal(url.tls.verify, STORE_VERIFY_CA);
    assert_string_equal(url.sentinel_login.user.data, "watch");
    assert_int_equal(url.sentinel_login.source, SECRET_ENVIRONMENT);
    assert_string_equal(url.sentinel_login.secret.data, "SENTINEL_PASSWORD");
}

static void a_password_may_come_from_a_file_or_a_variable(void **state)
{
    (void)state;
    struct store_url file = good("redis://h?user=weir&password_file=/run/secrets/redis");
    assert_int_equal(file.login.source, SECRET_FILE);
    assert_string_equal(file.login.secret.data, "/run/secrets/redis");
    assert_string_equal(file.login.user.data, "weir");
    struct store_url variable = good("redis://h/?password_env=REDIS_PASSWORD");
    assert_int_equal(variable.login.source, SECRET_ENVIRONMENT);
    assert_string_equal(variable.login.secret.data, "REDIS_PASSWORD");
}

static void what_people_see_has_no_password_and_reads_the_same(void **state)
{
    (void)state;
    expect_printed("redis://h", "redis://h:6379/0");
    expect_printed("redis://:" SECRET "@h/3", "redis://:***@h:6379/3");
    expect_printed("redis://we%2fir:" SECRET "@h", "redis://we%2Fir:***@h:6379/0");
    expect_printed("rediss://[fe80::1],b:1/?ca=/a/%25b%26&verify=ca",
                   "rediss://[fe80::1]:6379,b:1/0?ca=/a/%25b%26&verify=ca");
    expect_printed(
        "redis+sentinel://a,b/m%2f1/2?user=u&password_file=/p&sentinel_password_env=E",
        "redis+sentinel://a:26379,b:26379/m%2F1/2?user=u&password_file=/p&sentinel_password_env=E");
    expect_printed("rediss://h?verify=none&name=x", "rediss://h:6379/0?name=x&verify=none");
}

static void what_is_refused_is_refused_in_one_sentence(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "begins with none of"},
        {"http://h", "begins with none of"},
        {"REDIS://h", "begins with none of"},
        {"redis:/h", "begins with none of"},
        {"redis+sentinel+tls://h", "begins with none of"},
        {"redis://h h", "percent-encoded"},
        {"redis://h\xc3\xa9", "percent-encoded"},
        {"redis://", "is not a host"},
        {"redis://a,", "is not a host"},
        {"redis://,a", "is not a host"},
        {"redis://a,,b", "is not a host"},
        {"redis://h:", "is not a host"},
        {"redis://h:0", "is not a host"},
        {"redis://h:65536", "is not a host"},
        {"redis://h:006379", "is not a host"},
        {"redis://h:+1", "is not a host"},
        {"redis://h:1.0", "is not a host"},
        {"redis://::1", "is not a host"},
        {"redis://[::1", "is not a host"},
        {"redis://[h]", "is not a host"},
        {"redis://[::1]6379", "is not a host"},
        {"redis://[]", "is not a host"},
        {"redis://-h", "is not a host"},
        {"redis://h%2e", "is not a host"},
        {"redis://a:1,A:1", "twice"},
        {"redis://a,a:6379", "twice"},
        {"redis://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "more than 16"},
        {"redis://h/x", "database"},
        {"redis://h/-1", "database"},
        {"redis://h/65536", "database"},
        {"redis://h/1/2", "database"},
        {"redis://h/1#x", "#"},
        {"redis+sentinel://h", "name of the master"},
        {"redis+sentinel://h/", "name of the master"},
        {"redis+sentinel://h//1", "name of the master"},
        {"redis+sentinel://h/m%zz", "name of the master"},
        {"redis+sentinel://h/m/x", "database"},
        {"redis://user@h", "no :password"},
        {"redis://@h", "no :password"},
        {"redis://user:@h", "no :password"},
        {"redis://:p%0@h", "badly percent-encoded"},
        {"redis://:p%00q@h", "badly percent-encoded"},
        {"redis://u%:p@h", "percent-encoded"},
        {"redis://h?", "An option in"},
        {"redis://h?password=x", "is none of"},
        {"redis://h?CA=x", "is none of"},
        {"redis://h?user=a&", "is none of"},
        {"redis://h?user", "no value"},
        {"redis://h?user=", "no value"},
        {"rediss://h?ca=a&ca=a", "twice"},
        {"rediss://h?ca=%", "badly percent-encoded"},
        {"redis://h?user=a", "needs a password"},
        {"redis+sentinel://h/m?sentinel_user=a", "needs a password"},
        {"redis://u:p@h?user=v", "two users"},
        {"redis://:p@h?password_file=/x", "more than one password"},
        {"redis://h?password_env=P&password_file=/x", "more than one password"},
        {"redis://h?ca=/x", "for TLS"},
        {"redis://h?verify=full", "for TLS"},
        {"rediss://h?sentinel_password_env=P", "for redis+sentinel"},
        {"rediss://h?cert=/x", "go together"},
        {"rediss://h?key=/x", "go together"},
        {"rediss://h?verify=no", "verify"},
        {"rediss://h?verify=none&ca=/x", "no use"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_refused(rows[i][0], rows[i][1]);
}

/* Whatever is wrong with it, a password that was not encoded never becomes a host, a database or an option. */
static void a_password_that_was_not_encoded_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "redis://:pa@ss@h",   "redis://u:pa/ss@h",        "redis://u:pa?ss@h",     "redis://u:pa:ss@h",
        "redis://u:pa#ss@h",  "redis://u/:pass@h",        "redis://u?:pass@h",     "redis://h/0?user=a@b",
        "redis://u:pa,ss/@h", "redis+sentinel://u@p@h/m", "redis://h:6379:pass@h",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        expect_refused(texts[i], "percent-encoded");
}

static void a_text_of_1024_bytes_is_taken_and_one_more_refused(void **state)
{
    (void)state;
    char text[64 + STORE_TEXT_MAX] = "redis://:";
    size_t head = strlen(text);
    memset(text + head, 'x', STORE_TEXT_MAX);
    memcpy(text + head + STORE_TEXT_MAX, "@h", 3);
    assert_int_equal(good(text).login.secret.len, STORE_TEXT_MAX);
    memcpy(text + head + STORE_TEXT_MAX, "x@h", 4);
    expect_refused(text, "longer than 1024");
}

static void nothing_is_read_behind_the_end(void **state)
{
    (void)state;
    static const char text[] = "redis://h?password_env=P%41";
    struct store_url url;
    assert_null(store_url_read((struct span){text, sizeof(text) - 1}, &url));
    assert_non_null(store_url_read((struct span){text, sizeof(text) - 2}, &url));
    assert_non_null(store_url_read((struct span){text, sizeof(text) - 3}, &url));
}

static void the_longest_url_can_be_printed(void **state)
{
    (void)state;
    struct store_url url =
        good("rediss+sentinel://h/m?password_file=/p&sentinel_password_file=/q&verify=none");
    struct store_text *texts[] = {&url.login.user,
                                  &url.login.secret,
                                  &url.sentinel_login.user,
                                  &url.sentinel_login.secret,
                                  &url.tls.ca,
                                  &url.tls.cert,
                                  &url.tls.key,
                                  &url.tls.name,
                                  &url.master_name};
    char out[STORE_PRINTED_MAX];
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        memset(texts[i]->data, '%', STORE_TEXT_MAX);
        texts[i]->len = STORE_TEXT_MAX;
    }
    url.address_count = STORE_ADDRESSES_MAX;
    for (size_t i = 0; i < STORE_ADDRESSES_MAX; i++) {
        memset(url.addresses[i].host, ':', ADDRESS_HOST_MAX);
        url.addresses[i].port = UINT16_MAX;
    }
    size_t len = store_url_print(&url, out);
    assert_int_equal(len, strlen(out));
}

static void a_password_file_is_one_line(void **state)
{
    (void)state;
    struct store_text password;
    static const char *const same[] = {"pass word", "pass word\n", "pass word\r\n"};
    for (size_t i = 0; i < 3; i++) {
        assert_null(store_password_read(span_of(same[i]), &password));
        assert_string_equal(password.data, "pass word");
        assert_int_equal(password.len, 9);
    }
    assert_non_null(store_password_read(SPAN(""), &password));
    assert_non_null(store_password_read(SPAN("\n"), &password));
    assert_non_null(store_password_read(SPAN("a\nb"), &password));
    assert_non_null(store_password_read(SPAN("a\n\n"), &password));
    assert_non_null(store_password_read(SPAN("a\0b"), &password));
    assert_int_equal(password.len, 0);
}

static void servers_write_addresses_in_their_own_way(void **state)
{
    (void)state;
    struct address asked = {"10.0.0.9", 7000}, told;
    assert_true(address_read_told(SPAN("10.0.0.1:7001"), &asked, &told));
    assert_string_equal(told.host, "10.0.0.1");
    assert_int_equal(told.port, 7001);
    assert_true(address_read_told(SPAN("fe80::1:7001"), &asked, &told));
    assert_string_equal(told.host, "fe80::1");
    assert_true(address_read_told(SPAN(":7002"), &asked, &told));
    assert_string_equal(told.host, "10.0.0.9");
    assert_int_equal(told.port, 7002);
    assert_false(address_read_told(SPAN("host"), &asked, &told));
    assert_false(address_read_told(SPAN("host:"), &asked, &told));
    assert_false(address_read_told(SPAN("?:7002"), &asked, &told));
    assert_false(address_read_told(SPAN("h:70000"), &asked, &told));
    assert_false(address_read_told(SPAN(""), &asked, &told));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_address_is_enough),
        cmocka_unit_test(every_part_is_read),
        cmocka_unit_test(a_password_may_come_from_a_file_or_a_variable),
        cmocka_unit_test(what_people_see_has_no_password_and_reads_the_same),
        cmocka_unit_test(what_is_refused_is_refused_in_one_sentence),
        cmocka_unit_test(a_password_that_was_not_encoded_is_refused),
        cmocka_unit_test(a_text_of_1024_bytes_is_taken_and_one_more_refused),
        cmocka_unit_test(nothing_is_read_behind_the_end),
        cmocka_unit_test(the_longest_url_can_be_printed),
        cmocka_unit_test(a_password_file_is_one_line),
        cmocka_unit_test(servers_write_addresses_in_their_own_way),
    };

    return cmocka_run_group_tests_name("store_url", tests, NULL, NULL);
}
