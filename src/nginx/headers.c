/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nginx keeps request headers in a list of arrays, and other parts of it point into those arrays (to Host, to the cookies):
 * so an element may not be moved. Marking one as hidden does not help, since proxy_pass sends everything that is in the list.
 * What remains is to cut the arrays around it: [a b X c] becomes the parts [a b] and [c], which point into the same memory.
 *
 * Two habits of nginx must be kept. Its loops expect that no part but the first is empty. And it appends to the last part
 * as long as that has fewer than `nalloc` elements: after a cut there is less space than that, so `nalloc` is set to what the
 * last part holds, and the next header begins a part of its own.
 *
 * A subrequest begins with a copy of its parent's list that points into it: what is added to the one appears in the other,
 * and in that of every sister. The cut gives it parts of its own, and takes what the parent's gate has said out of it.
 */
#include "nginx/headers.h"

#include "base/ascii.h"

static const struct span prefix = SPAN("x-weir-");

static bool is_ours(const ngx_table_elt_t *header);
static bool part_is_clean(const ngx_list_part_t *part);
static ngx_int_t list_cut(ngx_pool_t *pool, ngx_list_t *list);
static ngx_int_t run_append(ngx_pool_t *pool, ngx_list_t *list, ngx_table_elt_t *first, ngx_uint_t count);

ngx_int_t headers_strip(ngx_http_request_t *r)
{
    for (const ngx_list_part_t *part = &r->headers_in.headers.part; part != NULL; part = part->next)
        if (!part_is_clean(part))
            return list_cut(r->pool, &r->headers_in.headers);
    return NGX_OK;
}

static bool part_is_clean(const ngx_list_part_t *part)
{
    const ngx_table_elt_t *headers = part->elts;
    for (ngx_uint_t i = 0; i < part->nelts; i++)
        if (is_ours(&headers[i]))
            return false;
    return true;
}

/* Whatever stands for a hyphen: CGI and its heirs make one thing of `-` and `_`, and some of `.` too. */
static bool is_ours(const ngx_table_elt_t *header)
{
    if (header->key.len < prefix.len)
        return false;
    for (size_t i = 0; i < prefix.len; i++) {
        u_char c = header->lowcase_key[i];
        if ((ascii_is_alnum((char)c) ? c : '-') != (u_char)prefix.data[i])
            return false;
    }
    return true;
}

static ngx_int_t list_cut(ngx_pool_t *pool, ngx_list_t *list)
{
    ngx_list_part_t first = list->part;
    list->part.nelts = 0;
    list->part.next = NULL;
    list->last = &list->part;
    for (ngx_list_part_t *part = &first; part != NULL; part = part->next) {
        ngx_table_elt_t *headers = part->elts;
        for (ngx_uint_t i = 0, start = 0; i <= part->nelts; i++) {
            if (i < part->nelts && !is_ours(&headers[i]))
                continue;
            if (i > start && run_append(pool, list, &headers[start], i - start) != NGX_OK)
                return NGX_ERROR;
            start = i + 1;
        }
    }
    if (list->last->nelts > 0)
        list->nalloc = list->last->nelts;
    return NGX_OK;
}

static ngx_int_t run_append(ngx_pool_t *pool, ngx_list_t *list, ngx_table_elt_t *first, ngx_uint_t count)
{
    ngx_list_part_t *part = list->last;
    if (part->nelts > 0) {
        part = ngx_palloc(pool, sizeof(*part));
        if (part == NULL)
            return NGX_ERROR;
        part->next = NULL;
        list->last->next = part;
        list->last = part;
    }
    part->elts = first;
    part->nelts = count;
    return NGX_OK;
}

ngx_int_t headers_begin(ngx_http_request_t *r)
{
    return r == r->main ? NGX_OK : list_cut(r->pool, &r->headers_in.headers);
}

ngx_int_t headers_add(ngx_http_request_t *r, struct span name, struct span lowcase, struct span value)
{
    ngx_table_elt_t *header = ngx_list_push(&r->headers_in.headers);
    if (header == NULL)
        return NGX_ERROR;
    ngx_memzero(header, sizeof(*header));
    header->key = (ngx_str_t){name.len, (u_char *)name.data};
    header->lowcase_key = (u_char *)lowcase.data;
    header->hash = ngx_hash_key((u_char *)lowcase.data, lowcase.len);
    header->value = (ngx_str_t){value.len, (u_char *)value.data};
    return NGX_OK;
}
