/* SPDX-License-Identifier: BSD-2-Clause */
/* Any text as a store: what is taken is printed without its password, and what is printed reads as the same store. */
#include "base/must.h"
#include "redis/store_url.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool text_equal(const struct store_text *a, const struct store_text *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static bool login_equal(const struct store_login *a, const struct store_login *b)
{
    if (a->source != b->source || !text_equal(&a->user, &b->user))
        return false;
    return a->source == SECRET_GIVEN ? strcmp(b->secret.data, "***") == 0
                                     : text_equal(&a->secret, &b->secret);
}

static bool tls_equal(const struct store_tls *a, const struct store_tls *b)
{
    return a->is_on == b->is_on && a->verify == b->verify && text_equal(&a->ca, &b->ca) &&
           text_equal(&a->cert, &b->cert) && text_equal(&a->key, &b->key) && text_equal(&a->name, &b->name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct store_url url, again;
    static char printed[STORE_PRINTED_MAX];
    if (store_url_read((struct span){(const char *)data, size}, &url) != NULL)
        return 0;
    size_t len = store_url_print(&url, printed);
    must(store_url_read((struct span){printed, len}, &again) == NULL);
    must(url.is_sentinel == again.is_sentinel && url.database == again.database);
    must(url.address_count == again.address_count && url.address_count > 0);
    for (size_t i = 0; i < url.address_count; i++)
        must(address_equal(&url.addresses[i], &again.addresses[i]));
    must(text_equal(&url.master_name, &again.master_name) && tls_equal(&url.tls, &again.tls));
    must(login_equal(&url.login, &again.login) && login_equal(&url.sentinel_login, &again.sentinel_login));
    return 0;
}
